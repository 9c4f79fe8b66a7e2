//! The schema of data that expressions read: which type each part is declared with, and which value
//! it becomes.

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_model::Value as Json;

use super::types::{ObjectType, Type};

/// How the items of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// By their place.
    #[default]
    Atomic,
    /// By their value.
    Set,
    /// By the values of these fields.
    Map(Vec<String>),
}

/// One level of a schema, with what expressions need of it.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // a schema has them
pub struct Shape {
    /// The type that the schema names. Empty if it names none.
    pub type_name: String,
    /// The format that the schema names.
    pub format: String,
    /// Whether null is allowed.
    pub nullable: bool,
    /// Whether it is an integer or a string.
    pub int_or_string: bool,
    /// Whether unknown fields are kept.
    pub preserve: bool,
    /// Whether it is a whole resource.
    pub resource: bool,
    /// The declared fields.
    pub properties: Option<BTreeMap<String, Shape>>,
    /// The schema of all other fields.
    pub additional: Option<Box<Shape>>,
    /// The schema of items.
    pub items: Option<Box<Shape>>,
    /// How items are told apart.
    pub list: ListType,
}

impl Shape {
    /// Reads a schema. That of a resource has the fields of every resource.
    pub fn read(schema: &Json, resource: bool) -> Self {
        let text = |name: &str| schema.get(name).and_then(Json::as_str).unwrap_or_default();
        let flag = |name: &str| schema.get(name).and_then(Json::as_bool).unwrap_or_default();
        let resource = resource || flag("x-kubernetes-embedded-resource");
        let mut properties = schema.get("properties").and_then(Json::as_object).map(|declared| {
            let read = |(name, inner): (&String, &Json)| (name.clone(), Self::read(inner, false));
            declared.iter().map(read).collect::<BTreeMap<_, _>>()
        });
        if resource {
            with_meta(properties.get_or_insert_default());
        }
        let inner = |name: &str| {
            let inner = schema.get(name).filter(|inner| inner.is_object());
            inner.map(|inner| Box::new(Self::read(inner, false)))
        };
        let keys = || {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
            let keys = keys.into_iter().flatten().filter_map(Json::as_str);
            keys.map(str::to_owned).collect()
        };
        Self {
            type_name: text("type").to_owned(),
            format: text("format").to_owned(),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            resource,
            properties,
            additional: inner("additionalProperties"),
            items: inner("items"),
            list: match text("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => ListType::Map(keys()),
                _ => ListType::Atomic,
            },
        }
    }

    /// The type that expressions are checked with. Parts without one cannot be used in them.
    pub fn declared(&self, name: &str) -> Option<Type> {
        if self.int_or_string {
            return Some(Type::Dyn);
        }
        Some(match (self.type_name.as_str(), self.format.as_str()) {
            ("array", _) => {
                let item = self.items.as_ref()?.declared(&format!("{name}.@idx"))?;
                Type::List(Box::new(item))
            }
            ("object", _) => {
                if let Some(inner) = &self.additional {
                    let value = inner.declared(&format!("{name}.@elem"))?;
                    Type::Map(Box::new(Type::Text), Box::new(value))
                } else {
                    let declare = |(field, inner): (&String, &Self)| {
                        let field = escape(field)?;
                        let kind = inner.declared(&format!("{name}.{field}"))?;
                        Some((field, kind))
                    };
                    let fields = self.properties.iter().flatten().filter_map(declare).collect();
                    Type::Object(Arc::new(ObjectType { name: name.to_owned(), fields }))
                }
            }
            ("string", "byte") => Type::Bytes,
            ("string", "duration") => Type::Duration,
            ("string", "date" | "date-time") => Type::Timestamp,
            ("string", _) => Type::Text,
            ("boolean", _) => Type::Bool,
            ("number", _) => Type::Double,
            ("integer", _) => Type::Int,
            _ => return None,
        })
    }

    /// The schema of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match &self.properties {
            Some(properties) => properties.get(name),
            None => self.additional.as_deref(),
        }
    }
}

/// Adds the fields that expressions can use of every resource.
fn with_meta(properties: &mut BTreeMap<String, Shape>) {
    let text = || Shape { type_name: "string".to_owned(), ..Shape::default() };
    let is = |shape: Option<&Shape>, kind: &str| shape.is_some_and(|s| s.type_name == kind);
    let metadata = properties.get("metadata");
    let named = |field: &str| {
        let fields = metadata.and_then(|metadata| metadata.properties.as_ref());
        is(fields.and_then(|fields| fields.get(field)), "string")
    };
    if is(properties.get("kind"), "string")
        && is(properties.get("apiVersion"), "string")
        && is(metadata, "object")
        && named("name")
        && named("generateName")
    {
        return;
    }
    properties.insert("kind".to_owned(), text());
    properties.insert("apiVersion".to_owned(), text());
    let fields = ["name", "generateName"].map(|name| (name.to_owned(), text()));
    let metadata = Shape {
        type_name: "object".to_owned(),
        properties: Some(BTreeMap::from(fields)),
        ..Shape::default()
    };
    properties.insert("metadata".to_owned(), metadata);
}

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The name of a field in expressions, if it has one there.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("__") {
            escaped.push_str("__underscores__");
            rest = after;
            continue;
        }
        match c {
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    Some(escaped)
}

/// The field that a name in an expression stands for.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let escaped = rest.strip_prefix("__").and_then(|inner| {
            let end = inner.find('_')?;
            let after = inner.get(end..)?.strip_prefix("__")?;
            Some((inner.get(..end)?, after)).filter(|(word, _)| !word.is_empty())
        });
        let Some((word, after)) = escaped else {
            let c = rest.chars().next()?;
            plain.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        };
        plain.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if RESERVED.contains(&word) && after.is_empty() && rest.len() == name.len() => {
                word
            }
            _ => return None,
        });
        rest = after;
    }
    Some(plain)
}
