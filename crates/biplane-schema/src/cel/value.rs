//! Values at run time.

use std::cmp::Ordering;
use std::rc::Rc;

use biplane_model::Map as JsonMap;
use biplane_model::Value as Json;

use super::ast::Literal;

/// A value. JSON that is passed to a program is borrowed, not copied.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A double, like every number in JSON.
    Double(f64),
    /// A string.
    Text(Rc<str>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// The name of a type.
    Type(&'static str),
    /// Nanoseconds since 1970.
    Timestamp(i128),
    /// Nanoseconds.
    Duration(i64),
    /// A list that the program created.
    List(Rc<Vec<Value<'a>>>),
    /// A list that was passed to the program.
    JsonList(&'a [Json]),
    /// A map that the program created.
    Map(Rc<Vec<(Value<'a>, Value<'a>)>>),
    /// A map that was passed to the program.
    JsonMap(&'a JsonMap<String, Json>),
}

impl<'a> From<&'a JsonMap<String, Json>> for Value<'a> {
    fn from(map: &'a JsonMap<String, Json>) -> Self {
        Self::JsonMap(map)
    }
}

impl<'a> From<&'a Json> for Value<'a> {
    fn from(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(*bool),
            Json::Number(number) => Self::Double(number.as_f64().unwrap_or_default()),
            Json::String(text) => Self::Text(text.as_str().into()),
            Json::Array(items) => Self::JsonList(items),
            Json::Object(map) => Self::JsonMap(map),
        }
    }
}

impl From<&Literal> for Value<'_> {
    fn from(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(bool) => Self::Bool(*bool),
            Literal::Int(int) => Self::Int(*int),
            Literal::Uint(uint) => Self::Uint(*uint),
            Literal::Double(double) => Self::Double(*double),
            Literal::Text(text) => Self::Text(text.as_str().into()),
            Literal::Bytes(bytes) => Self::Bytes(bytes.as_slice().into()),
            Literal::Type(name) => Self::Type(name),
        }
    }
}

impl<'a> Value<'a> {
    /// CEL's name of the type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Type(_) => "type",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) | Self::JsonList(_) => "list",
            Self::Map(_) | Self::JsonMap(_) => "map",
        }
    }

    /// Go's name of the type.
    pub(super) fn go_name(&self) -> &'static str {
        match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::Text(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Type(_) => "*types.Type",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::List(_) | Self::JsonList(_) => "traits.Lister",
            Self::Map(_) | Self::JsonMap(_) => "traits.Mapper",
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<Box<dyn Iterator<Item = Value<'a>> + '_>> {
        match self {
            Self::List(items) => Some(Box::new(items.iter().cloned())),
            Self::JsonList(items) => Some(Box::new(items.iter().map(Value::from))),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> Option<Box<dyn Iterator<Item = (Value<'a>, Value<'a>)> + '_>> {
        match self {
            Self::Map(entries) => Some(Box::new(entries.iter().cloned())),
            Self::JsonMap(map) => Some(Box::new(
                map.iter().map(|(key, value)| (Value::Text(key.as_str().into()), value.into())),
            )),
            _ => None,
        }
    }

    /// The number of characters, bytes, items or entries.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Text(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len(),
            Self::JsonList(items) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::JsonMap(map) => map.len(),
            _ => return None,
        })
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (Self::JsonMap(map), Value::Text(key)) => map.get(key.as_ref()).map(Value::from),
            (Self::Map(entries), _) => {
                entries.iter().find(|(known, _)| known.equals(key)).map(|(_, value)| value.clone())
            }
            _ => None,
        }
    }

    /// Equality. Numbers of all types are compared by value, everything else only with the same
    /// type.
    pub(super) fn equals(&self, other: &Value<'_>) -> bool {
        if let (Some(mut left), Some(mut right)) = (self.items(), other.items()) {
            return self.size() == other.size()
                && left.by_ref().zip(right.by_ref()).all(|(a, b)| a.equals(&b));
        }
        if let (Some(mut entries), Some(_)) = (self.entries(), other.entries()) {
            return self.size() == other.size()
                && entries
                    .all(|(key, value)| other.get(&key).is_some_and(|found| value.equals(&found)));
        }
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Type(a), Value::Type(b)) => a == b,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// The order of two values, if they have one.
    pub(super) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Value::Double(a), b) => double_order(*a, b.integer()?),
            (a, Value::Double(b)) => double_order(*b, a.integer()?).map(Ordering::reverse),
            (a, b) => Some(a.integer()?.cmp(&b.integer()?)),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Value::Int(int) => Some(i128::from(*int)),
            Value::Uint(uint) => Some(i128::from(*uint)),
            _ => None,
        }
    }
}

/// Compares a double with an integer. Large integers are not rounded first.
fn double_order(double: f64, integer: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Saturates far outside of the 64-bit range, which does not affect the comparison.
    let whole = double.floor() as i128;
    Some(whole.cmp(&integer).then(if double.fract() == 0.0 {
        Ordering::Equal
    } else {
        Ordering::Greater
    }))
}
