//! Readiness by a user's rule, a CEL expression over the observed object.

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_function::Budget;
use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_schema::cel::{self, CompileError, Cost, EvaluateError, Program, Type, Value};

use crate::kept::{self, Kept};

/// The bytes of all compiled rules.
const MAX_BYTES: usize = 16 << 20;

/// More rules than a control plane has.
const MAX_RULES: usize = 1000;

/// What all rules of one call may cost together. Kubernetes allows the rules of one object the same.
const COST_PER_CALL: u64 = 10 * cel::PER_RUN;

/// About how many steps one unit of cost is.
const STEPS_PER_UNIT: u64 = 5;

/// The name of the object in rules.
const OBJECT: &str = "object";

/// Why a rule could not be compiled or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RuleError {
    #[error("failed to compile query: {0}")]
    Compile(#[from] CompileError),
    #[error("celQuery does not return a bool type")]
    NotBool,
    #[error("failed to eval the program: {0}")]
    Run(#[from] EvaluateError),
}

/// Caches the compiled rules.
#[derive(Debug)]
pub(super) struct Rules(Kept<Arc<str>, Program>);

impl Default for Rules {
    fn default() -> Self {
        Self(Kept::new(MAX_BYTES, MAX_RULES))
    }
}

impl Rules {
    fn compiled(&self, rule: &str) -> Result<Arc<Program>, RuleError> {
        let hash = kept::hash(&rule);
        if let Some((known, program)) = self.0.find_hash(hash)
            && *known == *rule
        {
            return Ok(program);
        }
        let program = Arc::new(compile(rule)?);
        let bytes = program.size() + rule.len();
        self.0.keep(hash, rule.into(), Arc::clone(&program), bytes);
        Ok(program)
    }
}

/// The rules of one call. Each is compiled once, also if that fails.
pub(super) struct Asked<'a> {
    rules: BTreeMap<String, String>,
    cache: &'a Rules,
    budget: &'a Budget,
    compiled: BTreeMap<String, Result<Arc<Program>, RuleError>>,
    cost: u64,
}

impl<'a> Asked<'a> {
    pub(super) fn new(
        rules: BTreeMap<String, String>,
        cache: &'a Rules,
        budget: &'a Budget,
    ) -> Self {
        Self { rules, cache, budget, compiled: BTreeMap::new(), cost: COST_PER_CALL }
    }

    /// Returns the result of the rule for the object's kind, or `None` if there is no rule. The outer
    /// error is the message of a fatal result: the rule costs more than it may.
    pub(super) fn ask(
        &mut self,
        object: &Object,
    ) -> Result<Option<Result<bool, RuleError>>, String> {
        let key = key(object);
        let Some(rule) = self.rules.get(&key) else { return Ok(None) };
        let known = self.compiled.get(&key).cloned();
        let compiled = known.unwrap_or_else(|| {
            let compiled = self.cache.compiled(rule);
            self.compiled.insert(key.clone(), compiled.clone());
            compiled
        });
        let program = match compiled {
            Ok(program) => program,
            Err(error) => return Ok(Some(Err(error))),
        };
        let goes_on = || self.budget.check().is_ok();
        let mut cost = Cost::new(self.cost.min(cel::PER_RUN), &goes_on);
        let result = run(&program, object, &mut cost);
        let spent = cost.spent();
        self.cost = self.cost.saturating_sub(spent);
        let failed = |reason: &dyn std::fmt::Display| {
            format!("cannot evaluate celHealthCheckCustomization {}: {reason}", quote(&key))
        };
        self.budget.steps(spent * STEPS_PER_UNIT).map_err(|exceeded| failed(&exceeded))?;
        match result {
            Err(RuleError::Run(error @ EvaluateError::CostExceeded)) => Err(failed(&format!(
                "{error}: a rule may cost {}, and all rules of a call {COST_PER_CALL}",
                cel::PER_RUN
            ))),
            Err(RuleError::Run(error @ EvaluateError::Interrupted)) => Err(failed(&error)),
            result => Ok(Some(result)),
        }
    }
}

/// Compiles a rule and checks that it returns a boolean.
fn compile(rule: &str) -> Result<Program, RuleError> {
    let program = cel::parse(rule)?.check(&[OBJECT])?;
    if *program.result() == Type::Bool { Ok(program) } else { Err(RuleError::NotBool) }
}

fn run(program: &Program, object: &Object, cost: &mut Cost<'_>) -> Result<bool, RuleError> {
    let object = Value::JsonMap(object);
    // The check cannot exclude every other type. Such a result counts as false.
    Ok(matches!(program.evaluate_within(&[(OBJECT, object)], cost)?, Value::Bool(true)))
}

/// Returns `group_version_kind` of the object. The group of core kinds is empty.
fn key(object: &Object) -> String {
    let kind = object.kind();
    match object.api_version().split('/').collect::<Vec<_>>()[..] {
        [""] | ["", ""] => format!("__{kind}"),
        [version] => format!("_{version}_{kind}"),
        [group, version] => format!("{group}_{version}_{kind}"),
        // The version is malformed. Go returns an empty kind for it.
        _ => "__".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Asks a rule about an object, in a call of its own.
    fn ask(
        key: &str,
        rule: &str,
        object: serde_json::Value,
    ) -> Result<Option<Result<bool, RuleError>>, String> {
        let rules = BTreeMap::from([(key.to_owned(), rule.to_owned())]);
        let object = Object::from_value(object).unwrap();
        Asked::new(rules, &Rules::default(), &Budget::default()).ask(&object)
    }

    /// AR-22.
    #[test]
    fn rules_are_found_by_group_version_and_kind() {
        for (api_version, key) in [
            ("pkg.crossplane.io/v1", "pkg.crossplane.io_v1_K"),
            ("v1", "_v1_K"),
            ("/v1", "_v1_K"),
            ("", "__K"),
            ("/", "__K"),
            ("a/b/c", "__"),
        ] {
            let object = json!({"apiVersion": api_version, "kind": "K"});
            assert_eq!(ask(key, "true", object), Ok(Some(Ok(true))), "{api_version}");
        }
    }

    #[test]
    fn failures_say_what_was_tried() {
        for (rule, text) in [
            ("1", "celQuery does not return a bool type"),
            ("object.nothing == 1", "failed to eval the program: no such key: nothing"),
            (
                "x",
                "failed to compile query: ERROR: <input>:1:1: undeclared reference to 'x' \
                 (in container '')\n | x\n | ^",
            ),
        ] {
            let object = json!({"apiVersion": "v1", "kind": "K"});
            let error = ask("_v1_K", rule, object).unwrap().unwrap().unwrap_err();
            assert_eq!(error.to_string(), text, "{rule}");
        }
    }

    #[test]
    fn a_rule_is_compiled_once_unless_that_fails() {
        let rules = Rules::default();
        let first = rules.compiled("1 == 1").unwrap();
        assert!(Arc::ptr_eq(&first, &rules.compiled("1 == 1").unwrap()));
        rules.compiled("1 +").unwrap_err();
        assert_eq!(rules.0.find_hash(kept::hash(&"1 +")).map(|(rule, _)| rule), None);
    }

    #[test]
    fn in_a_call_a_rule_is_compiled_once_even_if_that_fails() {
        let rules = BTreeMap::from([("_v1_K".to_owned(), "1 +".to_owned())]);
        let (cache, budget) = (Rules::default(), Budget::default());
        let mut asked = Asked::new(rules, &cache, &budget);
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "K"})).unwrap();
        let first = asked.ask(&object).unwrap();
        asked.rules.insert("_v1_K".to_owned(), "true".to_owned());
        assert_eq!(asked.ask(&object).unwrap(), first);
    }

    /// A list that doubles 24 times would have sixteen million items.
    #[test]
    fn a_rule_that_costs_too_much_names_its_key_and_the_limit() {
        let mut rule = "[1,1]".to_owned();
        for _ in 0..24 {
            rule = format!("[{rule}].map(x, x + x)[0]");
        }
        let rule = format!("size({rule}) > 0");
        let error = ask("_v1_K", &rule, json!({"apiVersion": "v1", "kind": "K"})).unwrap_err();
        assert_eq!(
            error,
            "cannot evaluate celHealthCheckCustomization \"_v1_K\": operation cancelled: actual \
             cost limit exceeded: a rule may cost 1000000, and all rules of a call 10000000"
        );
    }

    #[test]
    fn the_rules_of_a_call_share_a_limit() {
        let rule = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, \
                    [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, \
                    [0,1,2,3,4,5,6,7,8,9].all(e, true)))))";
        let rules = BTreeMap::from([("_v1_K".to_owned(), rule.to_owned())]);
        let (cache, budget) = (Rules::default(), Budget::default());
        let mut asked = Asked::new(rules, &cache, &budget);
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "K"})).unwrap();
        let answers = (0..100).take_while(|_| asked.ask(&object).is_ok()).count();
        assert!((9..40).contains(&answers), "{answers}");
    }
}
