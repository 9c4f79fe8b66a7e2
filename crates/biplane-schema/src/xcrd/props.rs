//! Reads the schema of a definition as an API server reads that of a CRD: unknown and empty keys
//! are dropped, keys of another type are an error.
//!
//! An API server would drop them anyway. Dropped here, the generated CRD equals the stored one.

use biplane_model::{Map, Value};

/// Why the schema of a version cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PropsError {
    /// There is none.
    #[error("custom resource validation cannot be nil")]
    Missing,
    /// It cannot be read.
    #[error("cannot parse validation schema: cannot parse validation schema: {0}")]
    Unreadable(String),
}

/// What the value of a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Text,
    /// Left out if it is false.
    Flag,
    /// Kept if it is false.
    Choice,
    Whole,
    Number,
    Texts,
    Anything,
    /// A list of values.
    Values,
    Schema,
    Schemas,
    /// Schemas by name.
    Named,
    /// A schema or a list of schemas.
    SchemaOrList,
    /// A schema or a boolean.
    SchemaOrFlag,
    /// By name, a schema or a list of texts.
    NamedOrTexts,
    Rules,
    Docs,
}

const KEYS: [(&str, Is); 43] = [
    ("$ref", Is::Text),
    ("$schema", Is::Text),
    ("additionalItems", Is::SchemaOrFlag),
    ("additionalProperties", Is::SchemaOrFlag),
    ("allOf", Is::Schemas),
    ("anyOf", Is::Schemas),
    ("default", Is::Anything),
    ("definitions", Is::Named),
    ("dependencies", Is::NamedOrTexts),
    ("description", Is::Text),
    ("enum", Is::Values),
    ("example", Is::Anything),
    ("exclusiveMaximum", Is::Flag),
    ("exclusiveMinimum", Is::Flag),
    ("externalDocs", Is::Docs),
    ("format", Is::Text),
    ("id", Is::Text),
    ("items", Is::SchemaOrList),
    ("maxItems", Is::Whole),
    ("maxLength", Is::Whole),
    ("maxProperties", Is::Whole),
    ("maximum", Is::Number),
    ("minItems", Is::Whole),
    ("minLength", Is::Whole),
    ("minProperties", Is::Whole),
    ("minimum", Is::Number),
    ("multipleOf", Is::Number),
    ("not", Is::Schema),
    ("nullable", Is::Flag),
    ("oneOf", Is::Schemas),
    ("pattern", Is::Text),
    ("patternProperties", Is::Named),
    ("properties", Is::Named),
    ("required", Is::Texts),
    ("title", Is::Text),
    ("type", Is::Text),
    ("uniqueItems", Is::Flag),
    ("x-kubernetes-embedded-resource", Is::Flag),
    ("x-kubernetes-int-or-string", Is::Flag),
    ("x-kubernetes-list-map-keys", Is::Texts),
    ("x-kubernetes-list-type", Is::Text),
    ("x-kubernetes-map-type", Is::Text),
    ("x-kubernetes-preserve-unknown-fields", Is::Choice),
];
const RULES: &str = "x-kubernetes-validations";

const RULE: [(&str, Is); 6] = [
    ("fieldPath", Is::Text),
    ("message", Is::Text),
    ("messageExpression", Is::Text),
    ("optionalOldSelf", Is::Choice),
    ("reason", Is::Text),
    ("rule", Is::Text),
];

/// Reads `schema` of a version.
pub(super) fn read(schema: Option<&Value>) -> Result<Map<String, Value>, PropsError> {
    let schema = schema.filter(|schema| !schema.is_null()).ok_or(PropsError::Missing)?;
    let unreadable = |text: String| PropsError::Unreadable(text);
    match schema.get("openAPIV3Schema") {
        None | Some(Value::Null) => Err(unreadable("unexpected end of JSON input".into())),
        Some(Value::Object(props)) => object(props, "").map_err(unreadable),
        Some(other) => Err(unreadable(format!(
            "json: cannot unmarshal {} into Go value of type v1.JSONSchemaProps",
            json_kind(other)
        ))),
    }
}

type Read<T> = Result<T, String>;

fn object(props: &Map<String, Value>, path: &str) -> Read<Map<String, Value>> {
    let mut out = Map::new();
    for (key, value) in props {
        let is = KEYS.iter().find(|(name, _)| name == key).map(|(_, is)| *is);
        let is = if key == RULES { Some(Is::Rules) } else { is };
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let Some(is) = is
            && let Some(value) = normal(value, is, &path)?
        {
            out.insert(key.clone(), value);
        }
    }
    Ok(out)
}

/// The value of a key, or `None` if it is left out.
fn normal(value: &Value, is: Is, path: &str) -> Read<Option<Value>> {
    let wrong = |wanted: &str| Err(mismatch(value, path, wanted));
    let kept = |value: Value, keep: bool| Ok(keep.then_some(value));
    match (is, value) {
        (_, Value::Null) => Ok(None),
        (Is::Anything, _)
        | (Is::Choice | Is::SchemaOrFlag, Value::Bool(_))
        | (Is::Number, Value::Number(_))
        | (Is::Docs, Value::Object(_)) => Ok(Some(value.clone())),
        (Is::Text, Value::String(text)) => kept(value.clone(), !text.is_empty()),
        (Is::Text, _) => wrong("string"),
        (Is::Flag, Value::Bool(flag)) => kept(value.clone(), *flag),
        (Is::Flag | Is::Choice, _) => wrong("bool"),
        (Is::Whole, Value::Number(_)) if biplane_model::object::integer(value).is_some() => {
            Ok(biplane_model::object::integer(value).map(Value::from))
        }
        (Is::Whole, _) => wrong("int64"),
        (Is::Number, _) => wrong("float64"),
        (Is::Texts, Value::Array(items)) => {
            if let Some(item) = items.iter().find(|item| !item.is_string()) {
                return Err(mismatch(item, path, "string"));
            }
            kept(value.clone(), !items.is_empty())
        }
        (Is::Texts, _) => wrong("[]string"),
        (Is::Values, Value::Array(items)) => kept(value.clone(), !items.is_empty()),
        (Is::Values, _) => wrong("[]v1.JSON"),
        (Is::Schema | Is::SchemaOrList | Is::SchemaOrFlag, Value::Object(inner)) => {
            Ok(Some(object(inner, path)?.into()))
        }
        (Is::Schemas | Is::SchemaOrList, Value::Array(items)) => {
            let items: Read<Vec<_>> = items.iter().map(|item| schema(item, path)).collect();
            let items = items?;
            let any = !items.is_empty();
            kept(items.into(), any)
        }
        (Is::Schema | Is::SchemaOrList | Is::SchemaOrFlag, _) => wrong("v1.JSONSchemaProps"),
        (Is::Schemas, _) => wrong("[]v1.JSONSchemaProps"),
        (Is::Named | Is::NamedOrTexts, Value::Object(inner)) => {
            let mut named = Map::new();
            for (name, value) in inner {
                let value = match value {
                    Value::Array(_) if is == Is::NamedOrTexts => value.clone(),
                    value => schema(value, path)?,
                };
                named.insert(name.clone(), value);
            }
            let any = !named.is_empty();
            kept(named.into(), any)
        }
        (Is::Named | Is::NamedOrTexts, _) => wrong("map[string]v1.JSONSchemaProps"),
        (Is::Rules, Value::Array(rules)) => {
            let rules: Read<Vec<_>> = rules.iter().map(|rule| read_rule(rule, path)).collect();
            let rules = rules?;
            let any = !rules.is_empty();
            kept(rules.into(), any)
        }
        (Is::Rules, _) => wrong("v1.ValidationRules"),
        (Is::Docs, _) => wrong("v1.ExternalDocumentation"),
    }
}

/// A schema within another. Null is an empty one.
fn schema(value: &Value, path: &str) -> Read<Value> {
    match value {
        Value::Null => Ok(Map::new().into()),
        Value::Object(inner) => Ok(object(inner, path)?.into()),
        other => Err(mismatch(other, path, "v1.JSONSchemaProps")),
    }
}

fn read_rule(rule: &Value, path: &str) -> Read<Value> {
    let Value::Object(rule) = rule else {
        return Err(mismatch(rule, path, "v1.ValidationRule"));
    };
    let mut out = Map::new();
    for (key, is) in RULE {
        if let Some(value) = rule.get(key)
            && let Some(value) = normal(value, is, &format!("{path}.{key}"))?
        {
            out.insert(key.to_owned(), value);
        }
    }
    out.entry("rule").or_insert_with(|| "".into());
    Ok(out.into())
}

fn mismatch(value: &Value, path: &str, wanted: &str) -> String {
    let kind = match (value, wanted) {
        (Value::Number(number), "int64") => format!("number {number}"),
        _ => json_kind(value).to_owned(),
    };
    format!(
        "json: cannot unmarshal {kind} into Go struct field JSONSchemaProps.{path} of type {wanted}"
    )
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
