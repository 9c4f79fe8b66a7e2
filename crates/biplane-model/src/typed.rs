//! Objects that upstream reads into a type: whether they fit it, and how they look once they have
//! been through it.
//!
//! Two readers exist, with other words for what does not fit: [`decoded`] for JSON, [`restored`] for
//! objects that come out of a store.

pub mod tables;

use serde_json::{Map, Value, json};

use crate::gonum::format_general;
use crate::gotime::{Instant, instant};
use crate::object::integer;
use crate::{Object, gobase64, gojson};

/// What a field holds.
#[derive(Debug)]
pub enum Shape {
    /// A text.
    Text,
    /// True or false.
    Boolean,
    /// A whole number.
    Integer,
    /// Base64 of bytes.
    Bytes,
    /// A moment.
    Time,
    /// Anything.
    Raw,
    /// Values by key.
    Map(&'static Shape),
    /// Values in order.
    List(&'static Shape),
    /// A type of its own.
    Struct(&'static [Field]),
}

/// When a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In any case.
    Always,
    /// When it is not empty.
    Filled,
    /// When it is not null.
    Set,
}

/// A field of a struct, in the order in which fields are read.
pub type Field = (&'static str, Shape, When);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Json,
    Store,
}

/// Fails where an object does not fit when it is read from JSON.
pub fn decoded(object: &Object, fields: &[Field]) -> Result<(), String> {
    members(object, fields, Reader::Json)
}

/// Fails where an object does not fit when it is read from a store.
pub fn restored(object: &Object, fields: &[Field]) -> Result<(), String> {
    members(object, fields, Reader::Store)
}

fn members(from: &Map<String, Value>, fields: &[Field], reader: Reader) -> Result<(), String> {
    fields.iter().try_for_each(|(key, shape, _)| match from.get(*key) {
        None | Some(Value::Null) => Ok(()),
        Some(value) => check(value, shape, reader),
    })
}

fn check(value: &Value, shape: &Shape, reader: Reader) -> Result<(), String> {
    match (shape, value) {
        (_, Value::Null)
        | (Shape::Raw, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Boolean, Value::Bool(_)) => Ok(()),
        (Shape::Integer, Value::Number(_)) if integer(value).is_some() => Ok(()),
        (Shape::Bytes, Value::String(text)) => match (bytes(text), reader) {
            (Ok(_), _) => Ok(()),
            (Err(why), Reader::Json) => Err(why),
            (Err(why), Reader::Store) => Err(format!("error decoding from json: {why}")),
        },
        (Shape::Time, Value::String(text)) => time(text).map(drop),
        (Shape::Map(each), Value::Object(map)) => {
            map.values().try_for_each(|value| check(value, each, reader))
        }
        (Shape::List(each), Value::Array(items)) => {
            items.iter().try_for_each(|item| check(item, each, reader))
        }
        (Shape::Struct(fields), Value::Object(map)) => members(map, fields, reader),
        _ => Err(mismatch(value, shape, reader)),
    }
}

fn mismatch(value: &Value, shape: &Shape, reader: Reader) -> String {
    let (json_kind, go_kind) = match value {
        Value::Null => ("null", "invalid"),
        Value::Bool(_) => ("bool", "bool"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", "string"),
        Value::Array(_) => ("array", "slice"),
        Value::Object(_) => ("object", "map"),
    };
    match (reader, shape) {
        (Reader::Json, _) | (_, Shape::Time) => {
            format!("json: cannot unmarshal {json_kind} into Go value")
        }
        (_, Shape::Map(_)) => format!("cannot restore map from {go_kind}"),
        (_, Shape::List(_) | Shape::Bytes) => format!("cannot restore slice from {go_kind}"),
        (_, Shape::Struct(_)) => format!("cannot restore struct from: {go_kind}"),
        (_, Shape::Integer) if value.is_number() => "cannot convert float64 to int64".into(),
        // A number can be made a text in Go, but not one that means the same.
        (_, Shape::Text) => "unrecognized type: string".into(),
        (_, Shape::Boolean) => "unrecognized type: bool".into(),
        (_, Shape::Integer) => "unrecognized type: int64".into(),
        (_, Shape::Raw) => String::new(),
    }
}

/// Decodes base64 as Go does. The text of a failure never holds a value.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    gobase64::decode(text.as_bytes())
        .map_err(|at| format!("illegal base64 data at input byte {at}"))
}

fn time(text: &str) -> Result<String, String> {
    let time = instant(text).and_then(Instant::timestamp);
    time.map(crate::condition::seconds).ok_or_else(|| {
        format!(
            "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
            gojson::quote(text)
        )
    })
}

/// Makes texts of the numbers and booleans that stand where the type has texts, as the reader of YAML
/// files does. It does not mind the case of keys either.
pub fn text_scalars(object: &mut Map<String, Value>, fields: &[Field]) {
    for (key, shape, _) in fields {
        if !object.contains_key(*key) {
            let other = object.keys().rfind(|other| other.eq_ignore_ascii_case(key)).cloned();
            if let Some(value) = other.and_then(|other| object.remove(&other)) {
                object.insert((*key).to_owned(), value);
            }
        }
        if let Some(value) = object.get_mut(*key) {
            scalars(value, shape);
        }
    }
}

fn scalars(value: &mut Value, shape: &Shape) {
    match (shape, &mut *value) {
        (Shape::Text, Value::Bool(flag)) => *value = flag.to_string().into(),
        (Shape::Text, Value::Number(number)) => {
            let whole = number.is_i64() || number.is_u64();
            let float = number.as_f64().map(format_general);
            *value = float.filter(|_| !whole).unwrap_or_else(|| number.to_string()).into();
        }
        (Shape::Map(each), Value::Object(map)) => {
            for value in map.values_mut() {
                scalars(value, each);
            }
        }
        (Shape::List(each), Value::Array(items)) => {
            for item in items {
                scalars(item, each);
            }
        }
        (Shape::Struct(fields), Value::Object(map)) => text_scalars(map, fields),
        _ => {}
    }
}

/// The object as it looks after it has been through its type: fields that the type does not know
/// are gone, and those that it always has are there.
pub fn normal(from: &Map<String, Value>, fields: &[Field]) -> Map<String, Value> {
    let mut into = Map::new();
    for (key, shape, when) in fields {
        let value = from.get(*key).unwrap_or(&Value::Null);
        let keep = match when {
            When::Always => true,
            When::Set => !value.is_null(),
            When::Filled => filled(value, shape),
        };
        if keep {
            into.insert((*key).to_owned(), convert(value, shape));
        }
    }
    into
}

fn filled(value: &Value, shape: &Shape) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => integer(value) != Some(0),
        Value::Bool(yes) => *yes,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty() || matches!(shape, Shape::Struct(_)),
        Value::Null => matches!(shape, Shape::Struct(_)),
    }
}

fn convert(value: &Value, shape: &Shape) -> Value {
    match (shape, value) {
        (Shape::Text, Value::Null) => json!(""),
        (Shape::Boolean, Value::Null) => json!(false),
        (Shape::Integer, Value::Null) => json!(0),
        (Shape::Struct(fields), Value::Null) => Value::Object(normal(&Map::new(), fields)),
        (Shape::Struct(fields), Value::Object(map)) => Value::Object(normal(map, fields)),
        (Shape::Integer, value) => integer(value).map_or(Value::Null, Value::from),
        (Shape::Time, Value::String(text)) => time(text).map_or(Value::Null, Value::from),
        (Shape::Map(each), Value::Object(map)) => {
            map.iter().map(|(key, value)| (key.clone(), convert(value, each))).collect()
        }
        (Shape::List(each), Value::Array(items)) => {
            items.iter().map(|item| convert(item, each)).collect()
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests;
