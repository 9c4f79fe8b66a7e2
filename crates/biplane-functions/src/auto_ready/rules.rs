//! Readiness by a user's rule, a CEL expression over the observed object.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_model::Object;
use biplane_schema::cel::{self, CompileError, EvaluateError, Program, Type, Value};

/// More rules than a control plane has. Above this limit, all rules are compiled again.
const MAX_KEPT: usize = 1000;

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

type Compiled = Arc<Result<Program, RuleError>>;

/// Evaluates rules and caches the compiled ones.
#[derive(Debug, Default)]
pub(super) struct Rules {
    compiled: Mutex<BTreeMap<String, Compiled>>,
}

impl Rules {
    /// Returns the result of the rule for the object's kind, or `None` if there is no rule.
    pub(super) fn ask(
        &self,
        rules: &BTreeMap<String, String>,
        object: &Object,
    ) -> Option<Result<bool, RuleError>> {
        let compiled = self.compiled(rules.get(&key(object))?);
        Some(match compiled.as_ref() {
            Ok(program) => run(program, object),
            Err(error) => Err(error.clone()),
        })
    }

    fn compiled(&self, rule: &str) -> Compiled {
        let mut kept = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept.get(rule) {
            return Arc::clone(compiled);
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        let compiled = Arc::new(compile(rule));
        kept.insert(rule.to_owned(), Arc::clone(&compiled));
        compiled
    }
}

/// Compiles a rule and checks that it returns a boolean.
fn compile(rule: &str) -> Result<Program, RuleError> {
    let program = cel::parse(rule)?.check(&[OBJECT])?;
    if *program.result() == Type::Bool { Ok(program) } else { Err(RuleError::NotBool) }
}

fn run(program: &Program, object: &Object) -> Result<bool, RuleError> {
    let object = Value::JsonMap(object);
    // The check cannot exclude every other type. Such a result counts as false.
    Ok(matches!(program.evaluate(&[(OBJECT, object)])?, Value::Bool(true)))
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
    use super::Rules;
    use biplane_model::Object;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::sync::Arc;

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
            let rules = BTreeMap::from([(key.to_owned(), "true".to_owned())]);
            let object = json!({"apiVersion": api_version, "kind": "K"});
            let object = Object::from_value(object).unwrap();
            assert_eq!(Rules::default().ask(&rules, &object), Some(Ok(true)), "{api_version}");
        }
    }

    #[test]
    fn failures_say_what_was_tried() {
        let object = Object::from_value(json!({"apiVersion": "v1", "kind": "K"})).unwrap();
        for (rule, text) in [
            ("1", "celQuery does not return a bool type"),
            ("object.nothing == 1", "failed to eval the program: no such key: nothing"),
            (
                "x",
                "failed to compile query: ERROR: <input>:1:1: undeclared reference to 'x' \
                 (in container '')\n | x\n | ^",
            ),
        ] {
            let rules = BTreeMap::from([("_v1_K".to_owned(), rule.to_owned())]);
            let error = Rules::default().ask(&rules, &object).unwrap().unwrap_err();
            assert_eq!(error.to_string(), text, "{rule}");
        }
    }

    #[test]
    fn a_rule_is_compiled_once() {
        let rules = Rules::default();
        assert!(Arc::ptr_eq(&rules.compiled("1 == 1"), &rules.compiled("1 == 1")));
        assert!(Arc::ptr_eq(&rules.compiled("1 +"), &rules.compiled("1 +")));
    }
}
