//! Merge types: which parts of an object are atomic, and which are owned separately.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

/// The type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a double.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any scalar.
    Untyped,
}

/// How a list is merged.
#[derive(Clone, Debug)]
pub struct ListType {
    /// The type of an item.
    pub element: TypeRef,
    /// Whether items have their own owners. Otherwise the list is atomic.
    pub associative: bool,
    /// The fields that identify an item. If there are none, the items are their own keys.
    pub keys: Vec<String>,
}

/// How an object is merged.
#[derive(Clone, Debug)]
pub struct MapType {
    /// Declared fields.
    pub fields: BTreeMap<String, FieldType>,
    /// The type of other fields. If it is absent, other fields are not allowed.
    pub element: Option<TypeRef>,
    /// Whether the object is atomic.
    pub atomic: bool,
}

/// A declared field.
#[derive(Clone, Debug)]
pub struct FieldType {
    /// Its type.
    pub type_ref: TypeRef,
    /// Its default, which is used if it is a key of a list item.
    pub default: Option<Value>,
}

/// The types that a value may have. The value decides which one is used.
#[derive(Clone, Debug, Default)]
pub struct Atom {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListType>,
    pub(super) map: Option<MapType>,
}

/// A type. Cheap to clone.
#[derive(Clone, Debug)]
pub enum TypeRef {
    /// No schema: objects are merged field by field, lists are atomic.
    Deduced,
    /// No schema, and everything below is atomic.
    Atomic,
    /// Defined by a schema.
    Given(Arc<Atom>),
}

static ATOMIC: LazyLock<Atom> = LazyLock::new(|| Atom {
    scalar: Some(Scalar::Untyped),
    list: Some(ListType { element: TypeRef::Atomic, associative: false, keys: Vec::new() }),
    map: Some(MapType { fields: BTreeMap::new(), element: Some(TypeRef::Atomic), atomic: true }),
});

static DEDUCED: LazyLock<Atom> = LazyLock::new(|| Atom {
    scalar: Some(Scalar::Untyped),
    list: Some(ListType { element: TypeRef::Atomic, associative: false, keys: Vec::new() }),
    map: Some(MapType { fields: BTreeMap::new(), element: Some(TypeRef::Deduced), atomic: false }),
});

impl TypeRef {
    pub(super) fn resolve(&self) -> &Atom {
        match self {
            Self::Deduced => &DEDUCED,
            Self::Atomic => &ATOMIC,
            Self::Given(atom) => atom,
        }
    }

    /// Whether this type is unknown.
    pub(super) fn is_untyped(&self) -> bool {
        match self {
            Self::Deduced => true,
            Self::Atomic => false,
            Self::Given(atom) => atom.scalar == Some(Scalar::Untyped),
        }
    }
}

impl Atom {
    pub(super) fn map(&self) -> Option<&MapType> {
        self.map.as_ref()
    }

    pub(super) fn list(&self) -> Option<&ListType> {
        self.list.as_ref()
    }

    /// The part of the atom that a value uses. All of it if no part fits or nothing is known.
    pub(super) fn fitting(&self, value: Option<&Value>) -> Fit {
        let all = Fit {
            map: self.map.is_some(),
            scalar: self.scalar.is_some(),
            list: self.list.is_some(),
        };
        let none = Fit::default();
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if all.scalar => {
                Fit { scalar: true, ..none }
            }
            Some(Value::Array(_)) if all.list => Fit { list: true, ..none },
            Some(Value::Object(_)) if all.map => Fit { map: true, ..none },
            _ => all,
        }
    }

    /// The shape of a value, in the order in which the API server tries shapes.
    pub(super) fn shape(&self, fit: Fit) -> Shape<'_> {
        if let (true, Some(map)) = (fit.map, &self.map) {
            Shape::Map(map)
        } else if let (true, Some(scalar)) = (fit.scalar, self.scalar) {
            Shape::Scalar(scalar)
        } else if let (true, Some(list)) = (fit.list, &self.list) {
            Shape::List(list)
        } else {
            Shape::Nothing
        }
    }
}

/// The parts of an atom that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fit {
    map: bool,
    scalar: bool,
    list: bool,
}

/// The shape that a value is treated as.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    Map(&'a MapType),
    Scalar(Scalar),
    List(&'a ListType),
    /// A schema that allows nothing.
    Nothing,
}

impl MapType {
    /// The type of a field, declared or not.
    pub fn type_of(&self, name: &str) -> Option<&TypeRef> {
        self.fields.get(name).map(|field| &field.type_ref).or(self.element.as_ref())
    }

    /// Whether the type of the object is unknown.
    pub(super) fn is_deduced(&self) -> bool {
        self.fields.is_empty() && self.element.as_ref().is_some_and(TypeRef::is_untyped)
    }
}
