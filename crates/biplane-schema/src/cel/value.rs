//! Values at run time.

mod typed;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use biplane_model::Map as JsonMap;
use biplane_model::Value as Json;

use super::ast::Literal;
use super::cost::Cost;
use super::opaque::Opaque;
use super::shape::{ListType, Shape, escape, unescape};

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
    Map(Rc<Entries<'a>>),
    /// A map that was passed to the program.
    JsonMap(&'a JsonMap<String, Json>),
    /// A list with a schema.
    TypedList(&'a [Json], &'a Shape),
    /// A list that was made from one with a schema, and follows it.
    Merged(Rc<Vec<Value<'a>>>, &'a Shape),
    /// An object or a map with a schema.
    TypedMap(&'a JsonMap<String, Json>, &'a Shape),
    /// Data without a schema, which can only be compared.
    Raw(&'a Json),
    /// A value that may be absent.
    Optional(Option<Rc<Value<'a>>>),
    /// A value of Kubernetes' libraries.
    Opaque(Rc<Opaque>),
    /// Data that does not fit its schema. Using it fails.
    Failed(Rc<str>),
}

/// The entries of a map, in the order of the program.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    list: Vec<(Value<'a>, Value<'a>)>,
    places: BTreeMap<Key, usize>,
    /// Whether some key has no place in the index.
    odd: bool,
}

/// A key as it is compared: numbers of all types by value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Bool(bool),
    Number(i128),
    Text(Rc<str>),
}

impl<'a> Entries<'a> {
    /// Sets the value of a key. The last of equal keys wins.
    pub(super) fn set(&mut self, key: Value<'a>, value: Value<'a>) {
        if let Some(known) = self.place(&key).and_then(|place| self.list.get_mut(place)) {
            known.1 = value;
            return;
        }
        match key.key() {
            Some(known) => {
                self.places.insert(known, self.list.len());
            }
            None => self.odd = true,
        }
        self.list.push((key, value));
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        self.place(key).and_then(|place| self.list.get(place)).map(|(_, value)| value.clone())
    }

    fn place(&self, key: &Value<'_>) -> Option<usize> {
        match key.key() {
            Some(key) => self.places.get(&key).copied(),
            None if self.odd => self.list.iter().position(|(known, _)| known.same(key)),
            None => None,
        }
    }
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
            Self::List(_) | Self::JsonList(_) | Self::TypedList(..) | Self::Merged(..) => "list",
            Self::Map(_) | Self::JsonMap(_) | Self::TypedMap(..) => "map",
            Self::Optional(_) => "optional_type",
            Self::Opaque(opaque) => opaque.type_name(),
            Self::Raw(_) => "unknown",
            Self::Failed(_) => "error",
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
            Self::List(_) | Self::JsonList(_) | Self::TypedList(..) | Self::Merged(..) => {
                "traits.Lister"
            }
            Self::Map(_) | Self::JsonMap(_) | Self::TypedMap(..) => "traits.Mapper",
            Self::Optional(_) => "*types.Optional",
            Self::Opaque(_) | Self::Raw(_) => "ref.Val",
            Self::Failed(_) => "*types.Err",
        }
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::List(_) | Self::JsonList(_) | Self::TypedList(..) | Self::Merged(..))
    }

    /// An item of a list.
    pub(super) fn item(&self, place: usize) -> Option<Value<'a>> {
        match self {
            Self::List(items) | Self::Merged(items, _) => items.get(place).cloned(),
            Self::JsonList(items) => items.get(place).map(Value::from),
            Self::TypedList(items, shape) => {
                let inner = shape.items.as_deref()?;
                items.get(place).map(|item| inner.value(item))
            }
            _ => None,
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> Option<impl Iterator<Item = Value<'a>> + '_> {
        let length = if self.is_list() { self.size() } else { None };
        length.map(|length| (0..length).filter_map(|place| self.item(place)))
    }

    /// The keys of a map.
    pub(super) fn keys(&self) -> Option<Vec<Value<'a>>> {
        match self {
            Self::Map(map) => Some(map.list.iter().map(|(key, _)| key.clone()).collect()),
            Self::JsonMap(map) => {
                Some(map.keys().map(|key| Value::Text(key.as_str().into())).collect())
            }
            Self::TypedMap(map, shape) => {
                let known = map.keys().filter(|key| shape.field(key).is_some());
                let name = |key: &String| match shape.properties {
                    Some(_) => escape(key).unwrap_or_else(|| key.clone()),
                    None => key.clone(),
                };
                Some(known.map(|key| Value::Text(name(key).into())).collect())
            }
            _ => None,
        }
    }

    /// The number of characters, bytes, items or entries.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Text(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) | Self::Merged(items, _) => items.len(),
            Self::JsonList(items) | Self::TypedList(items, _) => items.len(),
            Self::Map(map) => map.list.len(),
            Self::JsonMap(map) | Self::TypedMap(map, _) => map.len(),
            Self::Opaque(opaque) => return opaque.size(),
            _ => return None,
        })
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &Value<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (Self::JsonMap(map), Value::Text(key)) => map.get(key.as_ref()).map(Value::from),
            (Self::TypedMap(map, shape), Value::Text(key)) => match &shape.properties {
                Some(fields) => {
                    // A field that is null is absent.
                    let name = unescape(key)?;
                    let field = map.get(&name).filter(|field| !field.is_null())?;
                    Some(fields.get(&name)?.value(field))
                }
                None => Some(shape.additional.as_deref()?.value(map.get(key.as_ref())?)),
            },
            (Self::Map(map), key) => map.get(key),
            _ => None,
        }
    }

    /// Equality. Numbers of all types are compared by value, everything else only with the same
    /// type.
    pub(super) fn equals(&self, other: &Value<'_>, cost: &mut Cost<'_>) -> Result<bool, String> {
        cost.spend(1)?;
        if let Value::Failed(reason) = self {
            return Err(reason.to_string());
        }
        if let Value::Failed(reason) = other {
            return Err(reason.to_string());
        }
        if self.is_list() && other.is_list() {
            if self.size() != other.size() {
                return Ok(false);
            }
            if let Some(list) = self.list_type()
                && *list != ListType::Atomic
            {
                return self.same_items(other, list, cost);
            }
            for place in 0.. {
                let (Some(a), Some(b)) = (self.item(place), other.item(place)) else { break };
                if !a.equals(&b, cost)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let (Some(keys), Some(_)) = (self.keys(), other.keys()) {
            if self.size() != other.size() {
                return Ok(false);
            }
            if let (Value::TypedMap(a, shape), Value::TypedMap(b, _)) = (self, other) {
                // Fields without a schema are compared as data, if both have them.
                let unknown = a.iter().filter(|(name, _)| shape.field(name).is_none());
                if unknown.into_iter().any(|(name, value)| b.get(name).is_some_and(|b| b != value))
                {
                    return Ok(false);
                }
            }
            for key in keys {
                let (Some(a), Some(b)) = (self.get(&key), other.get(&key)) else {
                    // A null field is as absent as one that is not there.
                    if matches!(self, Value::TypedMap(..))
                        && self.get(&key).is_none()
                        && other.get(&key).is_none()
                    {
                        continue;
                    }
                    return Ok(false);
                };
                if !a.equals(&b, cost)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let (Value::Text(a), Value::Text(b)) = (self, other) {
            cost.spend_text(a.len().min(b.len()))?;
        }
        if let (Value::Optional(a), Value::Optional(b)) = (self, other) {
            return match (a, b) {
                (Some(a), Some(b)) => a.equals(b, cost),
                (a, b) => Ok(a.is_none() && b.is_none()),
            };
        }
        Ok(self.same(other))
    }

    /// How the items of a list are told apart, if it has a schema.
    pub(super) fn list_type(&self) -> Option<&'a ListType> {
        match self {
            Self::TypedList(_, shape) | Self::Merged(_, shape) => Some(&shape.list),
            _ => None,
        }
    }

    /// The schema of a list.
    pub(super) fn list_shape(&self) -> Option<&'a Shape> {
        match self {
            Self::TypedList(_, shape) | Self::Merged(_, shape) => Some(shape),
            _ => None,
        }
    }

    /// What tells an item from others of its list.
    pub(super) fn identity(&self, list: &ListType) -> Vec<Option<Value<'a>>> {
        match list {
            ListType::Map(keys) => {
                let key = |key: &String| Value::Text(escape(key).unwrap_or_default().into());
                keys.iter().map(|name| self.get(&key(name))).collect()
            }
            _ => vec![Some(self.clone())],
        }
    }

    /// Whether two lists of the same length hold the same items in any order.
    fn same_items(
        &self,
        other: &Value<'_>,
        list: &ListType,
        cost: &mut Cost<'_>,
    ) -> Result<bool, String> {
        let (Some(own), Some(others)) = (self.items(), other.items()) else { return Ok(false) };
        let own: Vec<_> = own.map(|item| (item.identity(list), item)).collect();
        for item in others {
            let wanted = item.identity(list);
            let mut found = None;
            for (identity, candidate) in &own {
                cost.spend(1)?;
                if same_identity(identity, &wanted, cost)? {
                    found = Some(candidate);
                }
            }
            match found {
                None => return Ok(false),
                Some(found) => {
                    if matches!(list, ListType::Map(_)) && !found.equals(&item, cost)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Equality of values that are neither lists nor maps.
    fn same(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Type(a), Value::Type(b)) => a == b,
            (Value::Opaque(a), Value::Opaque(b)) => a.equals(b),
            (Value::Raw(a), Value::Raw(b)) => a == b,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// The value in the form in which keys are compared, if there is one.
    fn key(&self) -> Option<Key> {
        match self {
            Self::Bool(bool) => Some(Key::Bool(*bool)),
            Self::Text(text) => Some(Key::Text(Rc::clone(text))),
            // Other doubles are only equal to themselves.
            Self::Double(double) if double.fract() == 0.0 && double.abs() < 1e30 => {
                Some(Key::Number(*double as i128))
            }
            _ => self.integer().map(Key::Number),
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

/// Whether two items have the same identity.
pub(super) fn same_identity(
    a: &[Option<Value<'_>>],
    b: &[Option<Value<'_>>],
    cost: &mut Cost<'_>,
) -> Result<bool, String> {
    for (a, b) in a.iter().zip(b) {
        let same = match (a, b) {
            (Some(a), Some(b)) => a.equals(b, cost)?,
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
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
