//! Walks through a schema, part by part. Refuses rules that do not compile, compare with a past that
//! cannot be known, or may cost too much.

use biplane_model::Value;

use super::keywords::{self, Context};
use super::{is_true, not_supported, part, parts, properties};
use crate::cel::{Shape, Sizes};
use crate::rules::{Compiled, Program, Rule, field_path};
use crate::structural::{FieldError, Problem};

/// What all runs of one expression over an object may cost.
const PER_EXPRESSION: u64 = 10_000_000;
/// What all expressions of a schema may cost together.
const PER_SCHEMA: u64 = 100_000_000;
/// How many of the most expensive rules are named if the sum is too high.
const NAMED: usize = 4;

const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Reports what is wrong with the parts of a schema. Rules are compiled if the schema is in order.
pub(super) fn check(schema: &Value, at: &str, unchanged: bool, compiles: bool) -> Vec<FieldError> {
    let mut walk = Walk { unchanged, ..Walk::default() };
    let level = Level {
        path: at.to_owned(),
        occurs: Some(1),
        unknown_past: None,
        root: true,
        compiles,
        context: Context::default(),
    };
    walk.visit(schema, &level);
    let Walk { mut errors, rule_errors, total, mut expensive, .. } = walk;
    errors.extend(rule_errors);
    if total > PER_SCHEMA {
        expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        expensive.truncate(NAMED);
        errors.extend(expensive.into_iter().map(|(_, path)| {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            FieldError::new(Problem::Forbidden, path, "", detail)
        }));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::new(Problem::Forbidden, at, "", too_much(what, total, PER_SCHEMA)));
    }
    errors
}

/// A part of a schema.
#[derive(Clone, Debug)]
struct Level {
    path: String,
    /// How often its data can occur in an object. `None` if the schema does not limit that.
    occurs: Option<u64>,
    /// The list whose items cannot be told apart, if this is a part of one.
    unknown_past: Option<String>,
    root: bool,
    /// Whether rules are compiled.
    compiles: bool,
    context: Context,
}

#[derive(Debug, Default)]
struct Walk {
    unchanged: bool,
    /// Errors of the schema, which come first.
    errors: Vec<FieldError>,
    rule_errors: Vec<FieldError>,
    total: u64,
    expensive: Vec<(u64, String)>,
}

impl Walk {
    fn visit(&mut self, schema: &Value, level: &Level) {
        let before = self.errors.len();
        keywords::check(schema, level.context, &level.path, &mut self.errors);
        let inner = |name: &str| Level {
            path: format!("{}.{name}", level.path),
            occurs: level.occurs.zip(most_children(schema)).map(|(a, b)| a.saturating_mul(b)),
            root: false,
            ..level.clone()
        };
        if let Some(additional) = part(schema, "additionalProperties") {
            let mut inner = inner("additionalProperties");
            if level.context.in_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                inner.context.no_default = Some(reason);
            }
            self.visit(additional, &inner);
        }
        for (name, property) in properties(schema) {
            let mut inner = inner(&format!("properties[{name}]"));
            let is_resource = level.root || is_true(schema, "x-kubernetes-embedded-resource");
            let reason = match name.as_str() {
                "metadata" => "in top-level metadata",
                "kind" => "in top-level kind",
                "apiVersion" => "in top-level apiVersion",
                _ => "",
            };
            if is_resource && !reason.is_empty() {
                inner.context.in_metadata = true;
                if level.root {
                    inner.context.no_default = Some(reason);
                }
            }
            self.visit(property, &inner);
        }
        if let Some(not) = part(schema, "not") {
            self.visit(not, &Level { compiles: false, ..inner("not") });
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            for (place, part) in parts(schema, name).iter().enumerate() {
                let level = Level { compiles: false, ..inner(&format!("{name}[{place}]")) };
                self.visit(part, &level);
            }
        }
        if let Some(items) = part(schema, "items") {
            let mut inner = inner("items");
            let list = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
            if list != Some("map") {
                inner.unknown_past.get_or_insert_with(|| level.path.clone());
            }
            self.visit(items, &inner);
        }
        keywords::check_merging(schema, &level.path, &mut self.errors);
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let Some(rules) = rules.filter(|rules| !rules.is_empty()) else { return };
        let shape = Shape::read(schema, level.root);
        for (place, rule) in rules.iter().enumerate() {
            self.written(
                rule,
                &shape,
                &format!("{}.x-kubernetes-validations[{place}]", level.path),
            );
        }
        // The errors would not help until the schema itself is in order.
        if level.compiles && self.errors.len() == before {
            self.compiled(schema, rules, &shape, level);
        }
    }

    fn error(&mut self, problem: Problem, at: String, value: impl Into<Value>, detail: &str) {
        self.errors.push(FieldError::new(problem, at, value, detail));
    }

    /// Checks how a rule is written.
    fn written(&mut self, value: &Value, shape: &Shape, at: &str) {
        let rule = Rule::read(value);
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.rule.trim(), rule.message.trim());
        if text.is_empty() {
            self.error(Problem::Required, format!("{at}.rule"), "", "rule is not specified");
        } else if !rule.message.is_empty() && message.is_empty() {
            let given = rule.message.as_str();
            let detail = "must be non-empty if specified";
            self.error(Problem::Invalid, format!("{at}.message"), given, detail);
        } else if breaks(message) {
            let given = rule.message.as_str();
            self.error(
                Problem::Invalid,
                format!("{at}.message"),
                given,
                "must not contain line breaks",
            );
        } else if breaks(text) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.error(Problem::Required, format!("{at}.message"), "", detail);
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.error(Problem::Required, format!("{at}.messageExpression"), "", detail);
        }
        if let Some(reason) = value.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            self.errors.push(not_supported(format!("{at}.reason"), reason, &REASONS));
        }
        let field = rule.field_path.as_str();
        if !field.is_empty() {
            let at = format!("{at}.fieldPath");
            if field.trim().is_empty() {
                self.error(Problem::Invalid, at.clone(), field, "must be non-empty if specified");
            }
            if breaks(field) {
                self.error(Problem::Invalid, at.clone(), field, "must not contain line breaks");
            }
            if field_path(field, shape).is_none() {
                self.error(Problem::Invalid, at, field, "must be a valid path");
            }
        }
    }

    /// Compiles the rules of a level and estimates their cost.
    fn compiled(&mut self, schema: &Value, rules: &[Value], shape: &Shape, level: &Level) {
        let at = format!("{}.x-kubernetes-validations", level.path);
        let (Some(kind), Some(sizes)) =
            (shape.declared("selfType"), Sizes::read(schema, shape.resource))
        else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            self.rule_errors.push(FieldError::new(Problem::Internal, at, "", detail));
            return;
        };
        let occurs = level.occurs.unwrap_or_else(|| sizes.most_in_request());
        for (place, value) in rules.iter().enumerate() {
            let at = format!("{at}[{place}]");
            let rule = Rule::read(value);
            let compiled = Compiled::new(&rule, &kind, shape);
            let invalid = |at: String, detail: &str| {
                FieldError::without_value(
                    Problem::Invalid,
                    at,
                    format!("{}: {detail}", shown(value)),
                )
            };
            let mut errors = Vec::new();
            let cost = match &compiled.program {
                Program::Ready(program) => program.most_expensive(&sizes).saturating_mul(occurs),
                Program::Empty | Program::Faulty(_) => 0,
            };
            errors.extend(self.spend("estimated rule cost", &format!("{at}.rule"), cost));
            if let Program::Faulty(reason) = &compiled.program {
                errors.push(invalid(format!("{at}.rule"), reason));
            }
            if let Some(reason) = &compiled.message_fault {
                errors.push(invalid(format!("{at}.messageExpression"), reason));
            } else if let Some(message) = &compiled.message {
                let at = format!("{at}.messageExpression");
                let cost = message.most_expensive(&sizes);
                errors.extend(self.spend("estimated messageExpression cost", &at, cost));
            }
            if compiled.uses_old {
                if let Some(list) = &level.unknown_past {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                    );
                    let at = format!("{at}.rule");
                    errors.push(FieldError::new(Problem::Invalid, at, rule.rule.as_str(), detail));
                }
            } else if let Some(given) = value.get("optionalOldSelf").filter(|g| !g.is_null()) {
                let detail = "may not be set if oldSelf is not used in rule";
                let at = format!("{at}.optionalOldSelf");
                errors.push(FieldError::new(Problem::Invalid, at, given.clone(), detail));
            }
            self.rule_errors.extend(errors);
        }
    }

    /// Counts the cost of an expression. Returns an error if it is too much by itself.
    fn spend(&mut self, what: &str, at: &str, cost: u64) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= PER_SCHEMA / 100 {
            self.expensive.push((cost, at.to_owned()));
        }
        (cost > PER_EXPRESSION && !self.unchanged).then(|| {
            let detail = too_much(what, cost, PER_EXPRESSION);
            FieldError::new(Problem::Forbidden, at, "", detail)
        })
    }
}

/// How many children of each kind a value of the schema can have. `None` if there is no limit.
fn most_children(schema: &Value) -> Option<u64> {
    let limit = |name: &str| {
        let limit = schema.get(name).and_then(biplane_model::object::integer)?;
        Some(u64::try_from(limit).unwrap_or_default())
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => match schema.get("additionalProperties") {
            None | Some(Value::Null) => Some(1),
            Some(_) => limit("maxProperties"),
        },
        Some("array") => limit("maxItems"),
        _ => Some(1),
    }
}

fn too_much(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as errors show it: with the names of Go's fields, in their order.
fn shown(rule: &Value) -> String {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default().into();
    let given = |name: &str| rule.get(name).cloned().unwrap_or_default();
    let fields: [(&str, Value); 6] = [
        ("Rule", text("rule")),
        ("Message", text("message")),
        ("MessageExpression", text("messageExpression")),
        ("Reason", given("reason")),
        ("FieldPath", text("fieldPath")),
        ("OptionalOldSelf", given("optionalOldSelf")),
    ];
    let field = |(name, value): &(&str, Value)| {
        format!("\"{name}\":{}", biplane_go::json::to_string(value))
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    format!("{{{}}}", fields.join(","))
}
