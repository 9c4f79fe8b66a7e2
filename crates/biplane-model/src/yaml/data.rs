//! Values as go-yaml decodes them, before they become JSON: keys of any kind, and exact numbers.

use std::collections::BTreeMap;

use biplane_go::fmt::{quote, quote_bytes};
use biplane_go::num;

use super::Dialect;
use super::error::Problem;
use super::resolve;
use crate::{Map, Number, Value};

/// A decoded value, or a value to print.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(String),
    /// A string that is not valid UTF-8.
    Bytes(Vec<u8>),
    /// A timestamp, as it is written.
    Time(String),
    List(Vec<Data>),
    /// Entries with different keys. They are sorted when they are printed.
    Map(Vec<(Data, Data)>),
    /// Entries that are printed in this order.
    Struct(Vec<(String, Data)>),
}

/// Why decoded YAML cannot be JSON.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NotJson {
    pub(super) problem: Problem,
    /// go-yaml's message.
    pub(super) words: String,
    /// Whether encoding fails, and not the conversion before it.
    pub(super) encoding: bool,
}

impl Data {
    /// Whether every key is a string.
    pub fn has_text_keys(entries: &[(Self, Self)]) -> bool {
        entries.iter().all(|(key, _)| matches!(key, Self::Text(_) | Self::Bytes(_)))
    }

    /// A text that is equal for equal keys of Go.
    pub(super) fn identity(&self) -> String {
        match self {
            Self::Null => "n".to_owned(),
            Self::Bool(truth) => format!("b{truth}"),
            Self::Int(whole) => format!("i{whole}"),
            Self::Uint(whole) => format!("u{whole}"),
            Self::Float(float) => format!("f{float}"),
            Self::Text(text) => format!("s{text}"),
            Self::Time(text) => format!("t{text}"),
            other => format!("x{}", other.go_syntax(Dialect::V2)),
        }
    }

    /// The value in Go's syntax, as `%#v` prints it.
    pub(super) fn go_syntax(&self, dialect: Dialect) -> String {
        match self {
            Self::Null => "<nil>".to_owned(),
            Self::Bool(truth) => truth.to_string(),
            Self::Int(whole) => whole.to_string(),
            Self::Uint(whole) => format!("{whole:#x}"),
            Self::Float(float) => num::format_general(*float),
            Self::Text(text) | Self::Time(text) => quote(text),
            Self::Bytes(bytes) => quote_bytes(bytes),
            Self::List(items) => {
                let items: Vec<String> =
                    items.iter().map(|item| item.inner_go_syntax(dialect)).collect();
                format!("[]interface {{}}{{{}}}", items.join(", "))
            }
            // The newer version knows when all keys are strings.
            Self::Map(entries) if dialect == Dialect::V3 && Self::has_text_keys(entries) => {
                Self::map_go_syntax(entries, "string", dialect)
            }
            Self::Map(entries) => Self::map_go_syntax(entries, "interface {}", dialect),
            Self::Struct(fields) => {
                let fields: Vec<_> =
                    fields.iter().map(|(k, v)| (Self::Text(k.clone()), v.clone())).collect();
                Self::map_go_syntax(&fields, "string", dialect)
            }
        }
    }

    fn map_go_syntax(entries: &[(Self, Self)], key: &str, dialect: Dialect) -> String {
        let syntax = |data: &Self| data.inner_go_syntax(dialect);
        let entries: BTreeMap<String, String> =
            entries.iter().map(|(k, v)| (syntax(k), syntax(v))).collect();
        let entries: Vec<String> = entries.into_iter().map(|(k, v)| format!("{k}:{v}")).collect();
        format!("map[{key}]interface {{}}{{{}}}", entries.join(", "))
    }

    fn inner_go_syntax(&self, dialect: Dialect) -> String {
        match self {
            Self::Null => "interface {}(nil)".to_owned(),
            other => other.go_syntax(dialect),
        }
    }

    /// Converts to JSON like sigs.k8s.io/yaml.
    pub(super) fn into_json(self) -> Result<Value, NotJson> {
        // Go first converts all keys, and then encodes.
        self.check_keys()?;
        self.encode()
    }

    /// The key of a JSON object that stands for this key, if there is one.
    pub(super) fn into_json_key(self) -> Option<String> {
        self.unusable_as_key().is_none().then(|| self.into_key())
    }

    /// What makes a key unusable, and the name of its type in Go's message.
    fn unusable_as_key(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Null => Some(("null", "%!s(<nil>)")),
            Self::Uint(_) => Some(("a number above 9223372036854775807", "uint64")),
            _ => None,
        }
    }

    fn check_keys(&self) -> Result<(), NotJson> {
        match self {
            Self::List(items) => items.iter().try_for_each(Self::check_keys),
            Self::Map(entries) => entries.iter().try_for_each(|(key, value)| {
                let Some((what, type_name)) = key.unusable_as_key() else {
                    return value.check_keys();
                };
                let (key, value) = (key.go_syntax(Dialect::V2), value.go_syntax(Dialect::V2));
                Err(NotJson {
                    problem: Problem::UnsupportedKey(what),
                    words: format!(
                        "unsupported map key of type: {type_name}, key: {key}, value: {value}"
                    ),
                    encoding: false,
                })
            }),
            Self::Struct(fields) => fields.iter().try_for_each(|(_, value)| value.check_keys()),
            _ => Ok(()),
        }
    }

    fn encode(self) -> Result<Value, NotJson> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(truth),
            Self::Int(whole) => Value::from(whole),
            Self::Uint(whole) => Value::from(whole as f64),
            Self::Float(float) => match Number::from_f64(float) {
                Some(number) => Value::Number(number),
                None => return Err(not_finite(float)),
            },
            Self::Text(text) | Self::Time(text) => Value::String(text),
            Self::Bytes(bytes) => Value::String(resolve::lossy(&bytes)),
            Self::List(items) => {
                Value::Array(items.into_iter().map(Self::encode).collect::<Result<_, _>>()?)
            }
            Self::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    map.insert(key.into_key(), value.encode()?);
                }
                Value::Object(map)
            }
            Self::Struct(fields) => {
                let mut map = Map::new();
                for (key, value) in fields {
                    map.insert(key, value.encode()?);
                }
                Value::Object(map)
            }
        })
    }

    /// The key of a JSON object that stands for this key.
    fn into_key(self) -> String {
        match self {
            Self::Text(text) | Self::Time(text) => text,
            Self::Bytes(bytes) => resolve::lossy(&bytes),
            Self::Bool(truth) => truth.to_string(),
            Self::Int(whole) => whole.to_string(),
            Self::Float(float) => resolve::float_key(float),
            other => other.go_syntax(Dialect::V2),
        }
    }
}

fn not_finite(float: f64) -> NotJson {
    let (ours, go) = match float {
        _ if float.is_nan() => (".nan", "NaN"),
        _ if float > 0.0 => (".inf", "+Inf"),
        _ => ("-.inf", "-Inf"),
    };
    let words = format!("unsupported value: {go}");
    NotJson { problem: Problem::NotJson(ours.to_owned()), words, encoding: true }
}
