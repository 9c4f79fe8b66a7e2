//! Objects that upstream decodes into Go types: checks whether they fit, and normalizes them as
//! decoding and encoding would.
//!
//! There are two decoders with different error messages: [`decoded`] for JSON, [`restored`] for
//! objects that come from a store.

mod names;
pub mod tables;

use std::fmt;

use biplane_go::base64;
use biplane_go::fmt::quote;
use biplane_go::num::format_general;
use biplane_go::time::{Instant, instant};
use serde_json::{Map, Value, json};

use crate::Object;
use crate::object::integer;

pub use names::Names;

/// The type of a field.
#[derive(Debug)]
pub enum Shape {
    /// A string.
    Text,
    /// A boolean.
    Boolean,
    /// An integer.
    Integer,
    /// Bytes in base64.
    Bytes,
    /// A timestamp.
    Time,
    /// Any value.
    Raw,
    /// A map from keys to values.
    Map(&'static Shape),
    /// A list of values.
    List(&'static Shape),
    /// A struct.
    Struct(&'static [Field]),
}

/// How an error message names the expected bytes.
pub const BYTES: &str = "a string in base64";

/// When a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// If it is not empty.
    Filled,
    /// If it is not null.
    Set,
}

/// A field of a struct. Fields are read in the order of the table.
pub type Field = (&'static str, Shape, When);

/// A part of an object that does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Upstream's error message.
    pub text: String,
    /// The keys and list indexes that lead to it.
    pub path: Vec<String>,
    /// The expected type, in words.
    pub wanted: &'static str,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The decoder whose messages are used.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Json(Names),
    Store,
}

/// Checks that an object can be decoded from JSON.
pub fn decoded(object: &Object, fields: &[Field], names: Names) -> Result<(), Misfit> {
    members(object, fields, Reader::Json(names), &mut Vec::new())
}

/// The error of the JSON decoder about a value that is not an object.
pub fn no_object(value: &Value, names: Names) -> String {
    format!("json: cannot unmarshal {} into Go value of type {}", json_kind(value), names.root())
}

/// Checks that an object can be decoded from a store.
pub fn restored(object: &Object, fields: &[Field]) -> Result<(), String> {
    members(object, fields, Reader::Store, &mut Vec::new()).map_err(|misfit| misfit.text)
}

/// One step to a value: a field, a list index, or a map key.
#[derive(Debug)]
enum Step<'v> {
    Field(&'static str),
    Key(&'v str),
    Place(usize),
}

type Way<'v> = Vec<Step<'v>>;

fn members<'v>(
    from: &'v Map<String, Value>,
    fields: &[Field],
    reader: Reader,
    way: &mut Way<'v>,
) -> Result<(), Misfit> {
    let mut member = |(key, shape, _): &Field, value: &'v Value| {
        way.push(Step::Field(key));
        let fits = check(value, shape, reader, way);
        way.pop();
        fits
    };
    match reader {
        // The JSON decoder reads keys in their own order.
        Reader::Json(_) => from.iter().try_for_each(|(key, value)| {
            let field = fields.iter().find(|(name, ..)| name == key);
            field.map_or(Ok(()), |field| member(field, value))
        }),
        Reader::Store => fields
            .iter()
            .try_for_each(|field| from.get(field.0).map_or(Ok(()), |value| member(field, value))),
    }
}

fn check<'v>(
    value: &'v Value,
    shape: &Shape,
    reader: Reader,
    way: &mut Way<'v>,
) -> Result<(), Misfit> {
    let text = match (shape, value) {
        (_, Value::Null)
        | (Shape::Raw, _)
        | (Shape::Text, Value::String(_))
        | (Shape::Boolean, Value::Bool(_)) => return Ok(()),
        (Shape::Integer, Value::Number(_)) if integer(value).is_some() => return Ok(()),
        (Shape::Bytes, Value::String(text)) => match (bytes(text), reader) {
            (Ok(_), _) => return Ok(()),
            (Err(why), Reader::Json(_)) => why,
            (Err(why), Reader::Store) => format!("error decoding from json: {why}"),
        },
        (Shape::Time, Value::String(text)) => match time(text) {
            Ok(_) => return Ok(()),
            Err(why) => why,
        },
        (Shape::Map(each), Value::Object(map)) => {
            return map.iter().try_for_each(|(key, value)| {
                way.push(Step::Key(key));
                let fits = check(value, each, reader, way);
                way.pop();
                fits
            });
        }
        (Shape::List(each), Value::Array(items)) => {
            return items.iter().enumerate().try_for_each(|(place, item)| {
                way.push(Step::Place(place));
                let fits = check(item, each, reader, way);
                way.pop();
                fits
            });
        }
        (Shape::Struct(fields), Value::Object(map)) => return members(map, fields, reader, way),
        _ => mismatch(value, shape, reader, way),
    };
    let path = way.iter().map(|step| match step {
        Step::Field(key) | Step::Key(key) => (*key).to_owned(),
        Step::Place(place) => place.to_string(),
    });
    Err(Misfit { text, path: path.collect(), wanted: shape.wanted() })
}

impl Shape {
    fn wanted(&self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Boolean => "true or false",
            Self::Integer => "a whole number",
            Self::Bytes => BYTES,
            Self::Time => "a time",
            Self::Raw => "anything",
            Self::Map(_) | Self::Struct(_) => "an object",
            Self::List(_) => "a list",
        }
    }
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

fn mismatch(value: &Value, shape: &Shape, reader: Reader, way: &Way<'_>) -> String {
    let go_kind = match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    };
    match (reader, shape) {
        (Reader::Json(names), _) => {
            let mut kind = json_kind(value).to_owned();
            if let (Shape::Integer, Value::Number(number)) = (shape, value) {
                kind = format!("number {number}");
            }
            let fields = way.iter().filter_map(|step| match step {
                Step::Field(key) => Some(*key),
                _ => None,
            });
            let into = names.target(&fields.collect::<Vec<_>>(), shape);
            format!("json: cannot unmarshal {kind} into {into}")
        }
        (_, Shape::Time) => format!("json: cannot unmarshal {} into Go value", json_kind(value)),
        (_, Shape::Map(_)) => format!("cannot restore map from {go_kind}"),
        (_, Shape::List(_) | Shape::Bytes) => format!("cannot restore slice from {go_kind}"),
        (_, Shape::Struct(_)) => format!("cannot restore struct from: {go_kind}"),
        (_, Shape::Integer) if value.is_number() => "cannot convert float64 to int64".into(),
        // Go can convert a number to a string, but the result would have another meaning.
        (_, Shape::Text) => "unrecognized type: string".into(),
        (_, Shape::Boolean) => "unrecognized type: bool".into(),
        (_, Shape::Integer) => "unrecognized type: int64".into(),
        (_, Shape::Raw) => String::new(),
    }
}

/// Decodes base64 like Go. The error message never contains the value.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    base64::decode(text.as_bytes()).map_err(|at| format!("illegal base64 data at input byte {at}"))
}

fn time(text: &str) -> Result<String, String> {
    let time = instant(text).and_then(Instant::timestamp);
    time.map(crate::condition::seconds).ok_or_else(|| {
        format!(
            "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
            quote(text)
        )
    })
}

/// Converts numbers and booleans to strings where the type has strings, like the reader of YAML
/// files. It also ignores the case of keys. It does not look into embedded structs.
pub fn text_scalars(object: &mut Map<String, Value>, fields: &[Field], names: Names) {
    text_members(object, fields, names, &mut Vec::new());
}

fn text_members(
    object: &mut Map<String, Value>,
    fields: &[Field],
    names: Names,
    way: &mut Vec<&'static str>,
) {
    for (key, shape, _) in fields {
        if !object.contains_key(*key) {
            let other = object.keys().rfind(|other| other.eq_ignore_ascii_case(key)).cloned();
            if let Some(value) = other.and_then(|other| object.remove(&other)) {
                object.insert((*key).to_owned(), value);
            }
        }
        way.push(key);
        if let Some(value) = object.get_mut(*key)
            && names.embedded(way).is_none()
        {
            scalars(value, shape, names, way);
        }
        way.pop();
    }
}

fn scalars(value: &mut Value, shape: &Shape, names: Names, way: &mut Vec<&'static str>) {
    match (shape, &mut *value) {
        (Shape::Text, Value::Bool(flag)) => *value = flag.to_string().into(),
        (Shape::Text, Value::Number(number)) => {
            let whole = number.is_i64() || number.is_u64();
            let float = number.as_f64().map(format_general);
            *value = float.filter(|_| !whole).unwrap_or_else(|| number.to_string()).into();
        }
        (Shape::Map(each), Value::Object(map)) => {
            for value in map.values_mut() {
                scalars(value, each, names, way);
            }
        }
        (Shape::List(each), Value::Array(items)) => {
            for item in items {
                scalars(item, each, names, way);
            }
        }
        (Shape::Struct(fields), Value::Object(map)) => text_members(map, fields, names, way),
        _ => {}
    }
}

/// Normalizes an object as decoding and encoding would: unknown fields are removed, and fields that
/// are always written are added.
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
