//! Go types: what functions declare, and what error messages name.

use std::fmt;

/// Signed integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
}

/// Unsigned integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UintKind {
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

/// What `reflect.Kind` tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Bool,
    Int(IntKind),
    Uint(UintKind),
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Ptr,
    Interface,
    Func,
}

impl Kind {
    /// The name that Go prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Uint(kind) => kind.name(),
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Ptr => "ptr",
            Self::Interface => "interface",
            Self::Func => "func",
        }
    }
}

impl IntKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }
}

impl UintKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }
}

/// A Go type. Two types are the same if they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `interface {}`.
    Any,
    Bool,
    Int(IntKind),
    Uint(UintKind),
    Float64,
    Complex128,
    String,
    /// A list of elements.
    Slice(&'static Type),
    /// A map from keys to elements.
    Map(&'static Type, &'static Type),
    /// A type with a name, such as `time.Time` or `*semver.Version`.
    Named(Named),
    /// `reflect.Value`: the built-in functions take whatever there is.
    Reflect,
}

/// A type with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// As messages print it, with its package and a star for a pointer.
    pub name: &'static str,
    pub kind: Kind,
    /// Whether `==` works on values of a struct type.
    pub comparable: bool,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

impl Type {
    pub const INT: Self = Self::Int(IntKind::Int);
    pub const INT64: Self = Self::Int(IntKind::Int64);
    pub const UINT8: Self = Self::Uint(UintKind::Uint8);
    pub const UINT32: Self = Self::Uint(UintKind::Uint32);
    pub const UINT64: Self = Self::Uint(UintKind::Uint64);
    /// `[]interface {}`.
    pub const LIST: Self = Self::Slice(&Self::Any);
    /// `[]string`.
    pub const STRINGS: Self = Self::Slice(&Self::String);
    /// `[]int`.
    pub const INTS: Self = Self::Slice(&Self::INT);
    /// `[]uint8`.
    pub const BYTES: Self = Self::Slice(&Self::UINT8);
    /// `[][]interface {}`.
    pub const LISTS: Self = Self::Slice(&Self::LIST);
    /// `map[string]interface {}`.
    pub const DICT: Self = Self::Map(&Self::String, &Self::Any);
    /// `map[string]string`.
    pub const STRING_MAP: Self = Self::Map(&Self::String, &Self::String);
    /// `map[string][]uint8`.
    pub const BYTES_MAP: Self = Self::Map(&Self::String, &Self::BYTES);
    /// `map[interface {}]interface {}`.
    pub const ANY_MAP: Self = Self::Map(&Self::Any, &Self::Any);

    /// A type with a name whose values can be compared with `==`.
    pub const fn named(name: &'static str, kind: Kind) -> Self {
        Self::Named(Named { name, kind, comparable: true })
    }

    /// The kind of the type.
    pub fn kind(self) -> Kind {
        match self {
            Self::Any => Kind::Interface,
            Self::Bool => Kind::Bool,
            Self::Int(kind) => Kind::Int(kind),
            Self::Uint(kind) => Kind::Uint(kind),
            Self::Float64 => Kind::Float64,
            Self::Complex128 => Kind::Complex128,
            Self::String => Kind::String,
            Self::Slice(_) => Kind::Slice,
            Self::Map(..) => Kind::Map,
            Self::Named(named) => named.kind,
            Self::Reflect => Kind::Struct,
        }
    }

    /// Whether nil is a value of the type.
    pub fn can_be_nil(self) -> bool {
        matches!(self.kind(), Kind::Interface | Kind::Slice | Kind::Map | Kind::Ptr | Kind::Func)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("interface {}"),
            Self::Bool => f.write_str("bool"),
            Self::Int(kind) => f.write_str(kind.name()),
            Self::Uint(kind) => f.write_str(kind.name()),
            Self::Float64 => f.write_str("float64"),
            Self::Complex128 => f.write_str("complex128"),
            Self::String => f.write_str("string"),
            Self::Slice(element) => write!(f, "[]{element}"),
            Self::Map(key, element) => write!(f, "map[{key}]{element}"),
            Self::Named(named) => f.write_str(named.name),
            Self::Reflect => f.write_str("reflect.Value"),
        }
    }
}
