//! Types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An object with known fields. Two such types are the same if they have the same name.
#[derive(Debug)]
pub struct ObjectType {
    /// The name, which tells where in a schema the type stands.
    pub name: String,
    /// The fields, under the names that expressions use.
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any type. Known only when the expression runs.
    Dyn,
    /// The type of a variable. Unlike [`Type::Dyn`], it cannot be looped over.
    Any,
    /// The type of an invalid expression.
    Error,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `uint`.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    Text,
    /// `bytes`.
    Bytes,
    /// `null_type`.
    Null,
    /// A point in time.
    Timestamp,
    /// A duration.
    Duration,
    /// A list, with the type of its items.
    List(Box<Type>),
    /// A map, with the types of its keys and values.
    Map(Box<Type>, Box<Type>),
    /// A type as a value.
    Name(Box<Type>),
    /// A value that may be absent.
    Optional(Box<Type>),
    /// An object with known fields.
    Object(Arc<ObjectType>),
    /// A type of Kubernetes' libraries, such as `kubernetes.Quantity`.
    Opaque(&'static str),
    /// A type variable.
    Open(usize),
}

impl Type {
    /// Parses a type as the table of functions spells it.
    pub(super) fn read(text: &str) -> Self {
        let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(item) = inner("list") {
            return Self::List(Box::new(Self::read(item)));
        }
        if let Some((key, value)) = inner("map").and_then(|inner| inner.split_once(',')) {
            return Self::Map(Box::new(Self::read(key)), Box::new(Self::read(value)));
        }
        if let Some(of) = inner("type") {
            return Self::Name(Box::new(Self::read(of)));
        }
        if let Some(of) = inner("optional") {
            return Self::Optional(Box::new(Self::read(of)));
        }
        match text {
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "null" => Self::Null,
            "timestamp" => Self::Timestamp,
            "duration" => Self::Duration,
            "url" => Self::Opaque("kubernetes.URL"),
            "quantity" => Self::Opaque("kubernetes.Quantity"),
            "ip" => Self::Opaque("net.IP"),
            "cidr" => Self::Opaque("net.CIDR"),
            "semver" => Self::Opaque("kubernetes.Semver"),
            "format" => Self::Opaque("kubernetes.NamedFormat"),
            "A" => Self::Open(0),
            "B" => Self::Open(1),
            _ => Self::Dyn,
        }
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// The number of type variables of an overload, which are numbered from zero.
    pub(super) fn count_open(&self) -> usize {
        match self {
            Self::Open(number) => number + 1,
            Self::List(item) | Self::Name(item) | Self::Optional(item) => item.count_open(),
            Self::Map(key, value) => key.count_open().max(value.count_open()),
            _ => 0,
        }
    }

    /// The same type, with each of its parts replaced.
    pub(super) fn map_parts(&self, change: &mut dyn FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(item) => Self::List(Box::new(change(item))),
            Self::Map(key, value) => Self::Map(Box::new(change(key)), Box::new(change(value))),
            Self::Name(of) => Self::Name(Box::new(change(of))),
            Self::Optional(of) => Self::Optional(Box::new(change(of))),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "!error!",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Null => "null",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::Open(number) => return write!(f, "_var{number}"),
            Self::List(item) => return write!(f, "list({item})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
            Self::Name(of) => return write!(f, "type({of})"),
            Self::Optional(of) => return write!(f, "optional_type({of})"),
            Self::Object(object) => &object.name,
            Self::Opaque(name) => name,
        })
    }
}
