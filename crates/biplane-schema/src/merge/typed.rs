//! Walks a value along its type, to validate it or to collect the fields that it sets.

use std::collections::BTreeSet;
use std::fmt;

use biplane_go::fmt::quote;
use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use super::types::{ListType, MapType, Scalar, Shape, TypeRef};
use crate::value;

/// One type error, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    path: String,
    message: String,
}

/// All type errors of a value, with the API server's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeErrors(Vec<TypeError>);

impl TypeErrors {
    pub(super) fn one(message: impl Into<String>) -> Self {
        Self(vec![TypeError { path: String::new(), message: message.into() }])
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn below(mut self, element: &PathElement) -> Self {
        for error in &mut self.0 {
            error.path.insert_str(0, &element.to_string());
        }
        self
    }

    pub(super) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(f, "{only}");
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for TypeErrors {}

pub(super) fn no_such_type() -> TypeErrors {
    TypeErrors::one("schema error: invalid atom: inlined")
}

/// Checks a scalar. Null always fits.
pub(super) fn check_scalar(
    scalar: Scalar,
    value: Option<&Value>,
    side: &str,
) -> Result<(), TypeErrors> {
    let Some(value) = value.filter(|v| !v.is_null()) else { return Ok(()) };
    let problem = match scalar {
        Scalar::Numeric if !value.is_number() => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        Scalar::String if !value.is_string() => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value))
        }
        Scalar::Boolean if !value.is_boolean() => {
            format!("expected boolean, got &{{{}}}", value::plain(value))
        }
        Scalar::Untyped if value.is_array() || value.is_object() => {
            format!("expected any scalar, got &{{{}}}", value::plain(value))
        }
        _ => return Ok(()),
    };
    Err(TypeErrors::one(format!("{side}{problem}")))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_syntax(value: &Value) -> String {
    let inner = match value {
        Value::Null => return "interface {}(nil)".into(),
        Value::String(text) => return quote(text),
        Value::Array(items) => items.iter().map(go_syntax).collect::<Vec<_>>(),
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{}:{}", quote(k), go_syntax(v))).collect()
        }
        Value::Bool(_) | Value::Number(_) => return value::plain(value),
    };
    format!("{}{{{}}}", go_type(value), inner.join(", "))
}

/// The path element that identifies an item of an associative list.
pub(super) fn item_element(list: &ListType, item: &Value) -> Result<PathElement, String> {
    if !list.associative {
        return Err("invalid indexing of non-associative list".into());
    }
    if list.keys.is_empty() {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".into())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".into())
            }
            scalar => Ok(PathElement::Value(scalar.clone())),
        };
    }
    let map = match item {
        Value::Null => {
            return Err("associative list with keys may not have a null element".into());
        }
        Value::Object(map) => map,
        _ => return Err("associative list with keys may not have non-map elements".into()),
    };
    let defaults = list.element.resolve().map();
    let mut fields: Vec<(String, Value)> = Vec::with_capacity(list.keys.len());
    for key in &list.keys {
        let default = || defaults?.fields.get(key)?.default.as_ref();
        if let Some(value) = map.get(key).or_else(default) {
            fields.push((key.clone(), value.clone()));
        }
    }
    if fields.is_empty() {
        let keys: Vec<String> = list.keys.iter().map(|key| quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and \
             doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(fields))
}

/// Checks that a value fits its type.
///
/// Lists that are sets or maps may hold the same item twice only if `duplicates` is set, as in
/// objects that are already stored.
pub fn validate(type_ref: &TypeRef, value: &Value, duplicates: bool) -> Result<(), TypeErrors> {
    let atom = type_ref.resolve();
    match atom.shape(atom.fitting(Some(value))) {
        Shape::Scalar(scalar) => check_scalar(scalar, Some(value), ""),
        Shape::Map(map) => match value {
            Value::Null => Ok(()),
            Value::Object(fields) => validate_fields(map, fields, duplicates),
            other => {
                Err(TypeErrors::one(format!("expected map, got &{{{}}}", value::plain(other))))
            }
        },
        Shape::List(list) => match value {
            Value::Null => Ok(()),
            Value::Array(items) => validate_items(list, items, duplicates),
            other => {
                Err(TypeErrors::one(format!("expected list, got &{{{}}}", value::plain(other))))
            }
        },
        Shape::Nothing => Err(no_such_type()),
    }
}

fn validate_fields(
    map: &MapType,
    fields: &Map<String, Value>,
    duplicates: bool,
) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    for (name, value) in fields {
        let element = PathElement::field(name);
        let Some(type_ref) = map.type_of(name) else {
            errors.add(TypeErrors::one("field not declared in schema").below(&element));
            break;
        };
        if let Err(inner) = validate(type_ref, value, duplicates) {
            errors.add(inner.below(&element));
        }
    }
    errors.into_result()
}

fn validate_items(list: &ListType, items: &[Value], duplicates: bool) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let element = if list.associative {
            match item_element(list, item) {
                Ok(element) => {
                    if !seen.insert(element.clone()) && !duplicates {
                        errors.add(TypeErrors::one(format!("duplicate entries for key {element}")));
                    }
                    element
                }
                Err(problem) => {
                    errors.add(TypeErrors::one(format!("element {index}: {problem}")));
                    break;
                }
            }
        } else {
            PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
        };
        if let Err(inner) = validate(&list.element, item, duplicates) {
            errors.add(inner.below(&element));
        }
    }
    errors.into_result()
}

/// The fields that a value sets.
pub fn field_set(type_ref: &TypeRef, value: &Value) -> Result<FieldSet, TypeErrors> {
    let mut set = FieldSet::default();
    collect(Some(type_ref), value, &mut Vec::new(), &mut set)?;
    Ok(set)
}

fn collect(
    type_ref: Option<&TypeRef>,
    value: &Value,
    path: &mut Vec<PathElement>,
    set: &mut FieldSet,
) -> Result<(), TypeErrors> {
    let atom = type_ref.ok_or_else(no_such_type)?.resolve();
    match atom.shape(atom.fitting(Some(value))) {
        Shape::Scalar(_) => set.insert(path),
        Shape::Map(map) if map.atomic => set.insert(path),
        Shape::List(list) if !list.associative => set.insert(path),
        Shape::Map(map) => {
            let Value::Object(fields) = value else { return Ok(()) };
            for (name, value) in fields {
                path.push(PathElement::field(name));
                collect(map.type_of(name), value, path, set)?;
                let hollow = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if hollow || !map.fields.contains_key(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Shape::List(list) => {
            let Value::Array(items) = value else { return Ok(()) };
            collect_items(list, items, path, set)?;
        }
        Shape::Nothing => return Err(no_such_type()),
    }
    Ok(())
}

fn collect_items(
    list: &ListType,
    items: &[Value],
    path: &mut Vec<PathElement>,
    set: &mut FieldSet,
) -> Result<(), TypeErrors> {
    let mut elements = Vec::with_capacity(items.len());
    let mut seen = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for item in items {
        // Values are validated before, so every item has a key. Only pruning leaves null in place of
        // an item that lost all its fields. The list still counts as one with items.
        let element = item_element(list, item).unwrap_or(PathElement::Index(-1));
        if !seen.insert(element.clone()) {
            twice.insert(element.clone());
        }
        elements.push((element, item));
    }
    for (element, item) in elements {
        let repeated = twice.contains(&element);
        path.push(element);
        if !repeated {
            collect(Some(&list.element), item, path, set)?;
        }
        set.insert(path);
        path.pop();
    }
    Ok(())
}
