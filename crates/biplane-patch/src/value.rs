//! The values that transforms read and return: JSON values and a few more.

use std::sync::LazyLock;

use biplane_go::fmt::Arg;
use biplane_go::text::runes;
use biplane_go::{fmt, json, num};
use biplane_model::{Map, Number, Value};

/// A value between two transforms. Until it is written, numbers may be infinite and strings may be
/// invalid UTF-8.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Vec<u8>),
    Array(Vec<Value>),
    Object(Map<String, Value>),
    /// A list that was decoded from null: it is empty, and is written as null.
    NilArray,
    /// An object that was decoded from null.
    NilObject,
}

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

impl Val {
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Text(text.into())
    }

    pub fn as_arg(&self) -> Arg<'_> {
        match self {
            Self::Null => Arg::Nil,
            Self::Bool(flag) => Arg::Bool(*flag),
            Self::Int(integer) => Arg::Int(*integer),
            Self::Float(float) => Arg::Float(*float),
            Self::Text(text) => Arg::Text(text),
            Self::Array(items) => Arg::Array(items),
            Self::Object(map) => Arg::Object(map),
            Self::NilArray => Arg::Array(&[]),
            Self::NilObject => Arg::Object(&EMPTY),
        }
    }

    /// Returns Go's name of the type.
    pub fn type_name(&self) -> &str {
        self.as_arg().type_name()
    }

    /// Formats the value like `%v`.
    pub fn display(&self) -> Vec<u8> {
        fmt::display(self.as_arg())
    }

    /// Converts the value to JSON. Invalid bytes become replacement characters.
    pub fn into_json(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null | Self::NilArray | Self::NilObject => Value::Null,
            Self::Bool(flag) => flag.into(),
            Self::Int(integer) => integer.into(),
            Self::Float(float) => {
                Value::Number(Number::from_f64(float).ok_or_else(|| unsupported(float))?)
            }
            Self::Text(text) => match String::from_utf8(text) {
                Ok(text) => text.into(),
                Err(error) => runes(error.as_bytes())
                    .map(|(c, _)| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                    .collect::<String>()
                    .into(),
            },
            Self::Array(items) => items.into(),
            Self::Object(map) => Value::Object(map),
        })
    }

    /// Encodes the value as JSON.
    pub fn to_json_text(&self) -> Result<String, String> {
        if let Self::Text(text) = self
            && std::str::from_utf8(text).is_err()
        {
            return Ok(broken_text(text));
        }
        Ok(json::to_string(&self.clone().into_json()?))
    }
}

impl From<Value> for Val {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text.into_bytes()),
            Value::Array(items) => Self::Array(items),
            Value::Object(map) => Self::Object(map),
        }
    }
}

fn unsupported(float: f64) -> String {
    format!("json: unsupported value: {}", num::format_float(float))
}

/// Encodes a string with invalid UTF-8 as JSON: each invalid byte is written as an escape.
fn broken_text(text: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in text.utf8_chunks() {
        let quoted = json::to_string(&Value::from(chunk.valid()));
        let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        out.push_str(inner);
        chunk.invalid().iter().for_each(|_| out.push_str("\\ufffd"));
    }
    out.push('"');
    out
}
