//! Paths of fields: the elements of a path through an object, and their encoding in `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::value::{self, compare};

/// One step into an object.
///
/// Ordered like the API server's sets: fields, keys, values, indices.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object (`f:`).
    Field(String),
    /// An item of a list with key fields, sorted by name (`k:`).
    Key(Vec<(String, Value)>),
    /// An item of a set, by its value (`v:`).
    Value(Value),
    /// An item of a plain list, by its position (`i:`).
    Index(i64),
}

/// The reason why a key of `fieldsV1` is not a path element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathElementError {
    /// Too short for a type and a colon.
    #[error("key must be 2 characters long:")]
    TooShort,
    /// The second character is not a colon.
    #[error("missing colon: {0}")]
    MissingColon(String),
    /// A type unknown to this version. Such entries are dropped.
    #[error("unknown path element type")]
    UnknownType,
    /// The part after the colon does not fit its type.
    #[error("cannot read path element {0:?}")]
    Malformed(String),
}

impl PathElement {
    /// A field by name.
    pub fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// Parses a key of `fieldsV1`.
    pub fn parse(text: &str) -> Result<Self, PathElementError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(PathElementError::TooShort);
        }
        if bytes.get(1) != Some(&b':') {
            return Err(PathElementError::MissingColon(text.to_owned()));
        }
        let malformed = || PathElementError::Malformed(text.to_owned());
        let rest = text.get(2..).unwrap_or_default();
        match bytes.first() {
            Some(b'f') => Ok(Self::Field(rest.to_owned())),
            Some(b'v') => serde_json::from_str(rest).map(Self::Value).map_err(|_| malformed()),
            Some(b'k') => match serde_json::from_str(rest) {
                Ok(Value::Object(map)) => Ok(Self::Key(map.into_iter().collect())),
                _ => Err(malformed()),
            },
            Some(b'i') => rest.parse().map(Self::Index).map_err(|_| malformed()),
            _ => Err(PathElementError::UnknownType),
        }
    }

    /// The key of `fieldsV1`.
    pub fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, v)| {
                        format!("{}:{}", Value::String(name.clone()), value::escaped_json(v))
                    })
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
            Self::Value(v) => format!("v:{}", value::escaped_json(v)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

fn compare_keys(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    for ((an, av), (bn, bv)) in a.iter().zip(b) {
        let order = an.cmp(bn).then_with(|| compare(av, bv));
        if order.is_ne() {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// The element in the API server's conflict message.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, v)) in fields.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{name}={}", value::shown(v))?;
                }
                f.write_str("]")
            }
            Self::Value(v) => write!(f, "[={}]", value::shown(v)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path from the root of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl Path {
    /// A path of plain fields.
    pub fn fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| PathElement::field(name)).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| write!(f, "{element}"))
    }
}
