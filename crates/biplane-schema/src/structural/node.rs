//! A parsed schema.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::formats::Format;
use super::pattern::{self, Pattern};

/// The merge type of a list, which decides how items must be unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Fields that are not declared.
#[derive(Clone, Debug, Default)]
pub(super) enum Additional {
    #[default]
    Undeclared,
    Bool(bool),
    Given(Box<Node>),
}

impl Additional {
    pub(super) fn given(&self) -> Option<&Node> {
        match self {
            Self::Given(node) => Some(node),
            _ => None,
        }
    }
}

/// One level of a schema.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // JSON Schema has them
pub(super) struct Node {
    /// Empty for any type. Two types for `x-kubernetes-int-or-string`.
    pub types: Vec<&'static str>,
    /// The type that the schema names, if JSON does not have it.
    pub odd_type: Option<String>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub properties: BTreeMap<String, Node>,
    pub additional: Additional,
    pub items: Option<Box<Node>>,
    pub required: Vec<String>,
    pub allowed: Vec<Value>,
    pub format: Option<Format>,
    pub is_int32: bool,
    pub pattern: Option<Pattern>,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub min_properties: Option<i64>,
    pub max_properties: Option<i64>,
    pub unique_items: bool,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Box<Node>>,
    pub list: ListKind,
    pub preserve_unknown: bool,
    pub embedded: bool,
}

/// Stands for a type that JSON does not have.
const NO_TYPE: &str = "unknown";

const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];

/// What the parts of a schema share while they are read.
struct Room {
    /// What is left for patterns.
    patterns: Cell<usize>,
    /// Whether a type that JSON does not have is kept, as one that nothing fits.
    lenient: bool,
}

struct Reader<'a> {
    map: &'a Map<String, Value>,
    path: &'a str,
    room: &'a Room,
}

impl Node {
    /// Parses a whole schema.
    pub(super) fn root(schema: &Value, path: &str) -> Result<Self, SchemaError> {
        Self::parse(schema, path, &Room { patterns: Cell::new(pattern::ROOM), lenient: false })
    }

    /// Parses a whole schema, and keeps types that JSON does not have.
    pub(super) fn lenient_root(schema: &Value, path: &str) -> Result<Self, SchemaError> {
        Self::parse(schema, path, &Room { patterns: Cell::new(pattern::ROOM), lenient: true })
    }

    fn parse(schema: &Value, path: &str, room: &Room) -> Result<Self, SchemaError> {
        let wrong = |what: &'static str| SchemaError::new(path, what);
        let map = schema.as_object().ok_or_else(|| wrong("must be an object"))?;
        let read = Reader { map, path, room };
        let int_or_string = read.flag("x-kubernetes-int-or-string");
        let types = match map.get("type").and_then(Value::as_str).unwrap_or_default() {
            _ if int_or_string => vec!["integer", "string"],
            "" => Vec::new(),
            name => {
                let known = TYPES.into_iter().find(|t| *t == name);
                let known = known.or(room.lenient.then_some(NO_TYPE));
                vec![known.ok_or_else(|| wrong("type is not one that JSON has"))?]
            }
        };
        let odd_type = match types.as_slice() {
            [NO_TYPE] => map.get("type").and_then(Value::as_str).map(str::to_owned),
            _ => None,
        };
        let list = match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(read.texts("x-kubernetes-list-map-keys")?),
            _ => ListKind::Atomic,
        };
        let mut properties = BTreeMap::new();
        if let Some(declared) = map.get("properties").filter(|p| !p.is_null()) {
            let declared = declared.as_object().ok_or_else(|| wrong("properties is no object"))?;
            for (name, property) in declared {
                let node = Self::parse(property, &format!("{path}.properties[{name}]"), room)?;
                properties.insert(name.clone(), node);
            }
        }
        let additional = match map.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Undeclared,
            Some(Value::Bool(allowed)) => Additional::Bool(*allowed),
            Some(inner) => Additional::Given(Box::new(Self::parse(
                inner,
                &format!("{path}.additionalProperties"),
                room,
            )?)),
        };
        let format = map.get("format").and_then(Value::as_str).unwrap_or_default();
        let pattern = map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty());
        Ok(Self {
            // Servers before 1.36 did not know formats of numbers, and tools have their words.
            format: Format::known(format, &types)
                .filter(|_| !room.lenient || matches!(types.as_slice(), [] | ["string"])),
            is_int32: format == "int32" && types == ["integer"],
            nullable: read.flag("nullable"),
            default: map.get("default").filter(|d| !d.is_null()).cloned(),
            properties,
            additional,
            items: read.node("items")?.map(Box::new),
            required: read.texts("required")?,
            allowed: read.list("enum")?.to_vec(),
            pattern: pattern.map(|pattern| Pattern::parse(pattern, &room.patterns)),
            minimum: read.number("minimum"),
            exclusive_minimum: read.flag("exclusiveMinimum"),
            maximum: read.number("maximum"),
            exclusive_maximum: read.flag("exclusiveMaximum"),
            multiple_of: read.number("multipleOf"),
            min_length: read.size("minLength"),
            max_length: read.size("maxLength"),
            min_items: read.size("minItems"),
            max_items: read.size("maxItems"),
            min_properties: read.size("minProperties"),
            max_properties: read.size("maxProperties"),
            unique_items: read.flag("uniqueItems"),
            all_of: read.nodes("allOf")?,
            any_of: read.nodes("anyOf")?,
            one_of: read.nodes("oneOf")?,
            not: read.node("not")?.map(Box::new),
            list,
            preserve_unknown: read.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: read.flag("x-kubernetes-embedded-resource"),
            types,
            odd_type,
        })
    }

    /// The types as errors name them.
    pub(super) fn type_names(&self) -> String {
        self.odd_type.clone().unwrap_or_else(|| self.types.join(","))
    }
}

impl<'a> Reader<'a> {
    fn flag(&self, name: &str) -> bool {
        self.map.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.map.get(name).and_then(Value::as_f64)
    }

    fn size(&self, name: &str) -> Option<i64> {
        self.map.get(name).and_then(biplane_model::object::integer)
    }

    fn list(&self, name: &'static str) -> Result<&'a [Value], SchemaError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(SchemaError::new(&format!("{}.{name}", self.path), "must be a list")),
        }
    }

    fn texts(&self, name: &'static str) -> Result<Vec<String>, SchemaError> {
        let texts = self.list(name)?.iter().filter_map(Value::as_str);
        Ok(texts.map(str::to_owned).collect())
    }

    fn node(&self, name: &str) -> Result<Option<Node>, SchemaError> {
        let inner = self.map.get(name).filter(|inner| !inner.is_null());
        let parse = |inner| Node::parse(inner, &format!("{}.{name}", self.path), self.room);
        inner.map(parse).transpose()
    }

    fn nodes(&self, name: &'static str) -> Result<Vec<Node>, SchemaError> {
        let parse =
            |(i, inner)| Node::parse(inner, &format!("{}.{name}[{i}]", self.path), self.room);
        self.list(name)?.iter().enumerate().map(parse).collect()
    }
}
