//! The rules in schemas (`x-kubernetes-validations`): compiles them when they are first needed, and
//! reports what they refuse as an API server does.

mod compile;
mod path;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use biplane_model::{Map, Object, Value};

use crate::cel::{Cost, EvaluateError, PER_RUN, Shape, Type};
use crate::structural::{FieldError, Problem};

pub(crate) use compile::{Compiled, Program};
pub(crate) use path::normalized as field_path;

/// What the rules of one object may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One expression.
    pub per_call: u64,
    /// All expressions together.
    pub total: u64,
}

impl Limits {
    /// What an API server allows.
    pub const API_SERVER: Self = Self { per_call: PER_RUN, total: 10 * PER_RUN };
    /// What the command line of Crossplane allows.
    pub const COMMAND_LINE: Self = Self { per_call: PER_RUN, total: PER_RUN };
}

/// The rules of a schema.
#[derive(Debug)]
pub struct Rules {
    shape: Shape,
    root: Node,
}

/// The rules of one level of a schema, and of what is below.
#[derive(Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    compiled: OnceLock<Result<Vec<Compiled>, String>>,
    items: Option<Box<Node>>,
    additional: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    all_of: Vec<Node>,
}

/// A rule as the schema has it.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // the names of the schema
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: String,
    pub(crate) message_expression: String,
    reason: String,
    pub(crate) field_path: String,
    optional_old_self: bool,
}

impl Rule {
    pub(crate) fn read(value: &Value) -> Self {
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            optional_old_self: value
                .get("optionalOldSelf")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
        }
    }

    /// The rule as errors name it.
    fn shown(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    fn default_detail(&self) -> String {
        match self.message.as_str() {
            "" => format!("failed rule: {}", self.shown()),
            message => message.trim().to_owned(),
        }
    }

    fn error(&self, path: &str, value: Shown<'_>, detail: String) -> FieldError {
        let problem = match self.reason.as_str() {
            "FieldValueForbidden" => return FieldError::new(Problem::Forbidden, path, "", detail),
            "FieldValueRequired" => return FieldError::new(Problem::Required, path, "", detail),
            "FieldValueDuplicate" => Problem::Duplicate,
            _ => Problem::Invalid,
        };
        let detail = if problem == Problem::Duplicate { String::new() } else { detail };
        match value {
            Shown::Value(value) => FieldError::new(problem, path, value.clone(), detail),
            Shown::Nothing => FieldError::without_value(problem, path, detail),
        }
    }
}

/// Whether an error shows the value that a rule refused.
#[derive(Clone, Copy)]
enum Shown<'a> {
    Value(&'a Value),
    Nothing,
}

impl Rules {
    /// The rules of a schema, if it has any outside of `allOf`.
    pub fn read(schema: &Value) -> Option<Self> {
        if !has_rules(schema) {
            return None;
        }
        let shape = Shape::read(schema, true);
        let root = Node::read(schema, &shape)?;
        Some(Self { shape, root })
    }

    /// Reports what the rules refuse. Rules that compare with the state before apply if it is
    /// given, and errors of parts that did not change are left out.
    pub fn validate(
        &self,
        object: &Object,
        old: Option<&Object>,
        limits: Limits,
    ) -> Vec<FieldError> {
        let (object, old) = (object.to_value(), old.map(Object::to_value));
        let mut run = Run { limits, left: limits.total.cast_signed(), errors: Vec::new() };
        let ratchet = Ratchet { current: old.as_ref().map(Some), parent: false };
        let place = Place { path: String::new(), old: old.as_ref(), ratchet, root: true };
        run.visit(&self.root, &self.shape, &object, &place);
        run.errors
    }
}

fn has_rules(schema: &Value) -> bool {
    let list = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    list.is_some_and(|list| !list.is_empty())
        || ["items", "additionalProperties"]
            .iter()
            .any(|name| schema.get(*name).is_some_and(has_rules))
        || schema
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|properties| properties.values().any(has_rules))
}

impl Node {
    /// The rules of a schema for data of the given shape.
    fn read(schema: &Value, shape: &Shape) -> Option<Self> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let rules: Vec<Rule> = rules.into_iter().flatten().map(Rule::read).collect();
        let inner = |name: &str, shape: Option<&Shape>| {
            let inner = schema.get(name).filter(|inner| inner.is_object())?;
            Self::read(inner, shape?).map(Box::new)
        };
        let items = inner("items", shape.items.as_deref());
        let additional = inner("additionalProperties", shape.additional.as_deref());
        let mut properties = BTreeMap::new();
        let declared = schema.get("properties").and_then(Value::as_object);
        for (name, property) in declared.into_iter().flatten() {
            // Without a declared type a field is left out of all rules.
            let Some(shape) = shape.properties.as_ref().and_then(|shapes| shapes.get(name)) else {
                continue;
            };
            let visible = crate::cel::shape::escape(name).is_none() || has_type(shape);
            if visible && let Some(node) = Self::read(property, shape) {
                properties.insert(name.clone(), node);
            }
        }
        let all_of = schema.get("allOf").and_then(Value::as_array);
        let all_of: Vec<Self> =
            all_of.into_iter().flatten().filter_map(|part| Self::read(part, shape)).collect();
        let node = Self { rules, compiled: OnceLock::new(), items, additional, properties, all_of };
        let empty = node.rules.is_empty()
            && node.items.is_none()
            && node.additional.is_none()
            && node.properties.is_empty()
            && node.all_of.is_empty();
        (!empty).then_some(node)
    }

    fn compiled(&self, shape: &Shape) -> Result<&[Compiled], &str> {
        let compile = || {
            if self.rules.is_empty() {
                return Ok(Vec::new());
            }
            let kind: Option<Type> = shape.declared("selfType");
            let kind = kind.ok_or("failed to convert to declType for CEL validation rules")?;
            Ok(self.rules.iter().map(|rule| Compiled::new(rule, &kind, shape)).collect())
        };
        match self.compiled.get_or_init(compile) {
            Ok(compiled) => Ok(compiled),
            Err(reason) => Err(reason),
        }
    }
}

fn has_type(shape: &Shape) -> bool {
    if shape.int_or_string {
        return true;
    }
    match shape.type_name.as_str() {
        "array" => shape.items.as_deref().is_some_and(has_type),
        "object" => shape.additional.as_deref().is_none_or(has_type),
        "string" | "boolean" | "number" | "integer" => true,
        _ => false,
    }
}

/// The value that was here, if it is known which one that was. There may have been none.
type Known<'a> = Option<Before<'a>>;

/// The value that was here. There may have been none.
type Before<'a> = Option<&'a Value>;

/// What was here before, to leave out errors of what did not change.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Known<'a>,
    /// Whether the nearest part around this one whose old value is known did not change.
    parent: bool,
}

impl<'a> Ratchet<'a> {
    fn unchanged(self, value: &Value) -> bool {
        match self.current {
            Some(old) => old == Some(value),
            None => self.parent,
        }
    }

    /// The same for a part of the value, of which the old value is given if it is known.
    fn inner(self, value: &Value, part: Known<'a>) -> Self {
        match self.current {
            Some(_) => Self { current: part, parent: self.unchanged(value) },
            None => self,
        }
    }
}

/// Where a value stands.
struct Place<'a> {
    path: String,
    old: Option<&'a Value>,
    ratchet: Ratchet<'a>,
    root: bool,
}

impl Place<'_> {
    fn shown(&self) -> &str {
        if self.path.is_empty() { "<nil>" } else { &self.path }
    }

    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The rules over one object.
struct Run {
    limits: Limits,
    /// What is left to spend. Negative when everything stops.
    left: i64,
    errors: Vec<FieldError>,
}

impl Run {
    fn visit(&mut self, node: &Node, shape: &Shape, value: &Value, place: &Place<'_>) {
        if value.is_null() || self.left < 0 {
            return;
        }
        self.expressions(node, shape, value, place);
        for part in &node.all_of {
            if self.left < 0 {
                return;
            }
            let ratchet = Ratchet { current: None, parent: place.ratchet.parent };
            let place =
                Place { path: place.path.clone(), old: place.old, ratchet, root: place.root };
            self.visit(part, shape, value, &place);
        }
        match value {
            Value::Array(items) => self.items(node, shape, value, items, place),
            Value::Object(map) => self.fields(node, shape, value, map, place),
            _ => {}
        }
    }

    fn items(
        &mut self,
        node: &Node,
        shape: &Shape,
        value: &Value,
        items: &[Value],
        place: &Place<'_>,
    ) {
        let (Some(node), Some(inner)) = (&node.items, &shape.items) else { return };
        let before = place.old.and_then(Value::as_array);
        for (i, item) in items.iter().enumerate() {
            if self.left < 0 {
                return;
            }
            // Only items with keys can be told from each other.
            let old = match &shape.list {
                crate::cel::shape::ListType::Map(keys) => before.map(|before| {
                    let same = |old: &&Value| keys.iter().all(|key| old.get(key) == item.get(key));
                    before.iter().rev().find(same)
                }),
                _ => None,
            };
            let known = matches!(shape.list, crate::cel::shape::ListType::Map(_));
            let part = known.then_some(old.flatten());
            let place = Place {
                path: format!("{}[{i}]", place.path),
                old: old.flatten(),
                ratchet: place.ratchet.inner(value, part),
                root: false,
            };
            self.visit(node, inner, item, &place);
        }
    }

    fn fields(
        &mut self,
        node: &Node,
        shape: &Shape,
        value: &Value,
        map: &Map<String, Value>,
        place: &Place<'_>,
    ) {
        for (name, field) in map {
            if self.left < 0 {
                return;
            }
            let old = place.old.and_then(|old| old.get(name));
            let hidden = place.root && matches!(name.as_str(), "apiVersion" | "kind");
            let ratchet = if hidden {
                Ratchet { current: None, parent: false }
            } else {
                place.ratchet.inner(value, Some(old))
            };
            if let (Some(node), Some(inner)) = (&node.additional, &shape.additional) {
                let path = format!("{}[{name}]", place.path);
                self.visit(node, inner, field, &Place { path, old, ratchet, root: false });
            }
            let inner = shape.properties.as_ref().and_then(|shapes| shapes.get(name));
            if let (Some(node), Some(inner)) = (node.properties.get(name), inner) {
                let path = place.field(name);
                self.visit(node, inner, field, &Place { path, old, ratchet, root: false });
            }
        }
    }

    fn stop(&mut self, path: &str, kind: &str, detail: &str) {
        self.errors.push(FieldError::new(Problem::Invalid, path, kind, detail));
        self.left = -1;
    }

    fn expressions(&mut self, node: &Node, shape: &Shape, value: &Value, place: &Place<'_>) {
        if node.rules.is_empty() {
            return;
        }
        let (path, kind) = (place.shown(), shape.type_name.as_str());
        let compiled = match node.compiled(shape) {
            Ok(compiled) => compiled,
            Err(reason) => {
                let detail = format!("rule compiler initialization error: {reason}");
                self.errors.push(FieldError::new(Problem::Invalid, path, kind, detail));
                return;
            }
        };
        if self.left <= 0 {
            self.stop(path, kind, OUT_OF_BUDGET);
            return;
        }
        let old = place.old.filter(|old| !old.is_null());
        for (rule, compiled) in node.rules.iter().zip(compiled) {
            let program = match &compiled.program {
                Program::Empty => continue,
                Program::Faulty(reason) => {
                    let detail = format!("rule compile error: {reason}");
                    self.errors.push(FieldError::new(Problem::Invalid, path, kind, detail));
                    continue;
                }
                Program::Ready(program) => program,
            };
            if compiled.uses_old && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let variables = compile::variables(shape, value, old, rule.optional_old_self);
            let mut cost = Cost::kubernetes(self.limits.per_call, &|| true);
            let outcome = program.evaluate_within(&variables, &mut cost);
            if cost.charged().cast_signed() > self.left {
                self.stop(path, kind, OUT_OF_BUDGET);
                return;
            }
            self.left -= cost.charged().cast_signed();
            let fault = match outcome {
                Ok(crate::cel::Value::Bool(true)) => continue,
                Ok(_) => None,
                Err(EvaluateError::CostExceeded) => {
                    let reason = EvaluateError::CostExceeded;
                    let detail = format!(
                        "'{reason}': no further validation rules will be run due to call cost \
                         exceeds limit for rule: {}",
                        rule.shown()
                    );
                    self.stop(path, kind, &detail);
                    return;
                }
                Err(reason) => Some(reason.to_string()),
            };
            if let Some(reason) = fault {
                let detail = if reason.starts_with("no such overload") {
                    format!(
                        "'{reason}': call arguments did not match a supported operator, function \
                         or macro signature for rule: {}",
                        rule.shown()
                    )
                } else {
                    format!("{reason} evaluating rule: {}", rule.shown())
                };
                self.errors.push(FieldError::new(Problem::Invalid, path, kind, detail));
                continue;
            }
            let field = match compiled.field_path.as_str() {
                "" => path.to_owned(),
                inner => place.field(inner),
            };
            let unchanged = !compiled.uses_old && place.ratchet.unchanged(value);
            let detail = match self.message(rule, compiled, &variables) {
                Ok(detail) => detail.unwrap_or_else(|| rule.default_detail()),
                Err(detail) => {
                    if unchanged {
                        self.left = -1;
                    } else {
                        self.stop(&field, kind, &detail);
                    }
                    return;
                }
            };
            if !unchanged {
                let shown = if matches!(kind, "object" | "array") {
                    Shown::Nothing
                } else {
                    Shown::Value(value)
                };
                self.errors.push(rule.error(&field, shown, detail));
            }
        }
    }

    /// The message that an expression gives. An error stops all rules.
    fn message<'a>(
        &mut self,
        rule: &Rule,
        compiled: &'a Compiled,
        variables: &[(&'a str, crate::cel::Value<'a>)],
    ) -> Result<Option<String>, String> {
        let Some(program) = &compiled.message else { return Ok(None) };
        let mut cost = Cost::kubernetes(self.limits.per_call, &|| true);
        let outcome = program.evaluate_within(variables, &mut cost);
        if cost.charged().cast_signed() > self.left {
            return Err(
                "messageExpression evaluation failed due to running out of cost budget, no \
                 further validation rules will be run"
                    .to_owned(),
            );
        }
        self.left -= cost.charged().cast_signed();
        let text = match outcome {
            Ok(crate::cel::Value::Text(text)) => text,
            Err(EvaluateError::CostExceeded) => {
                return Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for \
                     messageExpression: {}",
                    biplane_go::fmt::quote(&rule.message_expression)
                ));
            }
            _ => return Ok(None),
        };
        let text = text.trim();
        let usable = !text.is_empty() && text.len() <= MESSAGE_LIMIT && !text.contains('\n');
        Ok(usable.then(|| text.to_owned()))
    }
}

/// How many bytes the message of an expression may have.
const MESSAGE_LIMIT: usize = 5 << 10;

#[cfg(test)]
mod tests;
