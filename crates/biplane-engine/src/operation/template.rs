//! The `operationTemplate` of a CronOperation or WatchOperation, in the shape that its type has.
//!
//! Only fields that the type knows come through, and those that it always has are there even where
//! the template leaves them out.

use biplane_model::{Map, Object, Value};
use serde_json::json;

/// A template is not what its type says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

/// What a field of the type holds.
enum Shape {
    Text,
    Integer,
    /// Anything.
    Raw,
    /// Texts by key.
    Texts,
    Object(&'static [Field]),
    List(&'static [Field]),
}

/// A field, its shape, and whether it is there even when empty.
type Field = (&'static str, Shape, bool);

const METADATA: &[Field] = &[
    ("name", Shape::Text, false),
    ("generateName", Shape::Text, false),
    ("namespace", Shape::Text, false),
    ("uid", Shape::Text, false),
    ("resourceVersion", Shape::Text, false),
    ("generation", Shape::Integer, false),
    ("creationTimestamp", Shape::Text, false),
    ("deletionTimestamp", Shape::Text, false),
    ("labels", Shape::Texts, false),
    ("annotations", Shape::Texts, false),
    ("ownerReferences", Shape::Raw, false),
    ("finalizers", Shape::Raw, false),
];

const SPEC: &[Field] = &[
    ("mode", Shape::Text, true),
    ("pipeline", Shape::List(STEP), true),
    ("retryLimit", Shape::Integer, false),
];

const NAME: &[Field] = &[("name", Shape::Text, true)];

const STEP: &[Field] = &[
    ("step", Shape::Text, true),
    ("functionRef", Shape::Object(NAME), true),
    ("input", Shape::Raw, false),
    ("credentials", Shape::List(CREDENTIAL), false),
    ("requirements", Shape::Object(REQUIREMENTS), false),
];

const CREDENTIAL: &[Field] = &[
    ("name", Shape::Text, true),
    ("source", Shape::Text, true),
    ("secretRef", Shape::Object(SECRET), false),
];

const SECRET: &[Field] = &[("name", Shape::Text, true), ("namespace", Shape::Text, true)];

const REQUIREMENTS: &[Field] = &[
    ("requiredResources", Shape::List(RESOURCE), false),
    ("requiredSchemas", Shape::List(SCHEMA), false),
];

const SCHEMA: &[Field] = &[
    ("requirementName", Shape::Text, true),
    ("apiVersion", Shape::Text, true),
    ("kind", Shape::Text, true),
];

const RESOURCE: &[Field] = &[
    ("requirementName", Shape::Text, true),
    ("apiVersion", Shape::Text, true),
    ("kind", Shape::Text, true),
    ("namespace", Shape::Text, false),
    ("name", Shape::Text, false),
    ("matchLabels", Shape::Texts, false),
];

/// The Operation that a template describes, without a name of its own.
pub(super) fn from(parent: &Object) -> Result<Object, TemplateError> {
    let empty = Value::Null;
    let part = |key: &str| parent.at(&["spec", "operationTemplate", key]).unwrap_or(&empty);
    let mut operation = Object::new();
    let metadata = object(METADATA, part("metadata"), "metadata")?;
    operation.set_at(&["metadata"], metadata);
    operation.set_at(&["spec"], object(SPEC, part("spec"), "spec")?);
    operation.set_at(&["status"], json!({}));
    Ok(operation)
}

fn wrong(path: &str, want: &str) -> TemplateError {
    TemplateError(format!(
        "cannot unmarshal JSON to object: spec.operationTemplate.{path} is not {want}"
    ))
}

fn object(fields: &[Field], from: &Value, path: &str) -> Result<Value, TemplateError> {
    let empty = Map::new();
    let from = match from {
        Value::Null => &empty,
        Value::Object(map) => map,
        _ => return Err(wrong(path, "an object")),
    };
    let mut into = Map::new();
    for (key, shape, always) in fields {
        let value = from.get(*key).unwrap_or(&Value::Null);
        let path = format!("{path}.{key}");
        if value.is_null() {
            if *always {
                into.insert((*key).to_owned(), zero(shape));
            }
            continue;
        }
        let value = convert(shape, value, &path)?;
        let empty = match &value {
            Value::String(s) => s.is_empty(),
            Value::Array(a) => a.is_empty(),
            // A present object of no fields is kept, since its pointer is set; a map is not.
            Value::Object(m) => matches!(shape, Shape::Texts) && m.is_empty(),
            _ => false,
        };
        // Optional texts of requirements are pointers, so that an empty one is something.
        let pointer = fields.len() == RESOURCE.len() && matches!(*key, "namespace" | "name");
        if !empty || *always || pointer {
            into.insert((*key).to_owned(), value);
        }
    }
    Ok(Value::Object(into))
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!(""),
        Shape::Integer => json!(0),
        Shape::Raw | Shape::List(_) => Value::Null,
        Shape::Texts => json!({}),
        Shape::Object(fields) => object(fields, &Value::Null, "").unwrap_or_default(),
    }
}

fn convert(shape: &Shape, value: &Value, path: &str) -> Result<Value, TemplateError> {
    match shape {
        Shape::Raw => Ok(value.clone()),
        Shape::Text if value.is_string() => Ok(value.clone()),
        Shape::Text => Err(wrong(path, "a string")),
        Shape::Integer => biplane_model::object::integer(value)
            .map(Value::from)
            .ok_or_else(|| wrong(path, "an integer")),
        Shape::Texts => match value.as_object() {
            Some(map) if map.values().all(Value::is_string) => Ok(value.clone()),
            _ => Err(wrong(path, "an object of strings")),
        },
        Shape::Object(fields) => object(fields, value, path),
        Shape::List(fields) => {
            let items = value.as_array().ok_or_else(|| wrong(path, "a list"))?;
            let convert = |(i, item)| object(fields, item, &format!("{path}[{i}]"));
            Ok(Value::Array(items.iter().enumerate().map(convert).collect::<Result<_, _>>()?))
        }
    }
}

/// Appends to the list at two keys, which is made where it is missing.
pub(super) fn push(value: &mut Value, outer: &str, inner: &str, item: Value) {
    if !value.is_object() {
        *value = json!({});
    }
    if !value[outer].is_object() {
        value[outer] = json!({});
    }
    match &mut value[outer][inner] {
        Value::Array(items) => items.push(item),
        slot => *slot = json!([item]),
    }
}
