//! Builds OpenAPI v3 schemas.

use std::collections::BTreeSet;

use biplane_model::{Map, Value};
use serde_json::json;

/// A schema.
#[derive(Clone)]
pub(super) struct Shape(Map<String, Value>);

fn of(r#type: &str) -> Shape {
    Shape(Map::from_iter([("type".to_owned(), r#type.into())]))
}

pub(super) fn text() -> Shape {
    of("string")
}

pub(super) fn flag() -> Shape {
    of("boolean")
}

pub(super) fn int32() -> Shape {
    of("integer").with("format", "int32")
}

pub(super) fn int64() -> Shape {
    of("integer").with("format", "int64")
}

pub(super) fn time() -> Shape {
    text().with("format", "date-time")
}

pub(super) fn choice(options: &[&str]) -> Shape {
    text().with("enum", json!(options))
}

pub(super) fn list(items: Shape) -> Shape {
    of("array").with("items", items.0)
}

/// An object with any keys.
pub(super) fn map(values: Shape) -> Shape {
    of("object").with("additionalProperties", values.0)
}

pub(super) fn texts() -> Shape {
    map(text())
}

/// Any value.
pub(super) fn anything() -> Shape {
    Shape(Map::new()).preserving()
}

/// An integer or a string.
pub(super) fn int_or_text() -> Shape {
    Shape(Map::new())
        .with("anyOf", json!([{"type": "integer"}, {"type": "string"}]))
        .with("x-kubernetes-int-or-string", true)
}

/// Any object.
pub(super) fn any_object() -> Shape {
    of("object").preserving()
}

/// An object without known fields.
pub(super) fn empty_object() -> Shape {
    of("object")
}

/// An object with these fields. A name that ends in `*` is required.
pub(super) fn object<const N: usize>(fields: [(&str, Shape); N]) -> Shape {
    of("object").and(fields)
}

/// An object of texts.
pub(super) fn object_of_texts<const N: usize>(fields: [&str; N]) -> Shape {
    object(fields.map(|field| (field, text())))
}

/// The name of another object.
pub(super) fn named() -> Shape {
    object_of_texts(["name*"])
}

/// A reference whose empty name is allowed.
pub(super) fn local_reference() -> Shape {
    object([("name", text().default(""))]).atomic()
}

pub(super) fn type_ref() -> Shape {
    object_of_texts(["apiVersion*", "kind*"])
}

pub(super) fn label_selector() -> Shape {
    let values = list(text()).atomic();
    let expression = object([("key*", text()), ("operator*", text()), ("values", values)]);
    object([("matchLabels", texts()), ("matchExpressions", list(expression).atomic())]).atomic()
}

pub(super) fn conditions() -> Shape {
    list(object([
        ("type*", text()),
        ("status*", text()),
        ("lastTransitionTime*", time()),
        ("reason*", text()),
        ("message", text()),
        ("observedGeneration", int64()),
    ]))
    .keyed(&["type"])
}

/// A kind with a description and these fields besides those of every kind.
pub(super) fn kind<const N: usize>(description: &str, fields: [(&str, Shape); N]) -> Shape {
    let base = object([("apiVersion", text()), ("kind", text()), ("metadata", empty_object())]);
    base.and(fields).with("description", description)
}

impl Shape {
    pub(super) fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds fields. A name that ends in `*` is required.
    pub(super) fn and<const N: usize>(mut self, fields: [(&str, Shape); N]) -> Self {
        let mut take = |key: &str| self.0.remove(key);
        let mut properties = match take("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        let mut required: BTreeSet<String> = match take("required") {
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => BTreeSet::new(),
        };
        for (name, shape) in fields {
            let plain = name.trim_end_matches('*');
            if plain != name {
                required.insert(plain.to_owned());
            }
            properties.insert(plain.to_owned(), shape.0.into());
        }
        if !properties.is_empty() {
            self = self.with("properties", properties);
        }
        if required.is_empty() { self } else { self.with("required", json!(required)) }
    }

    pub(super) fn default(self, value: impl Into<Value>) -> Self {
        self.with("default", value)
    }

    /// Adds a rule in CEL, and what is said when it is broken.
    pub(super) fn rule(mut self, rule: &str, message: &str) -> Self {
        let rule = json!({"rule": rule, "message": message});
        match self.0.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
            Some(rules) => {
                rules.push(rule);
                self
            }
            None => self.with("x-kubernetes-validations", json!([rule])),
        }
    }

    pub(super) fn immutable(self) -> Self {
        self.rule("self == oldSelf", "Value is immutable")
    }

    /// Items of the list are told apart by these fields.
    pub(super) fn keyed(self, keys: &[&str]) -> Self {
        self.with("x-kubernetes-list-type", "map").with("x-kubernetes-list-map-keys", json!(keys))
    }

    /// Is only written as a whole.
    pub(super) fn atomic(self) -> Self {
        let key = match self.0.get("type").and_then(Value::as_str) {
            Some("array") => "x-kubernetes-list-type",
            _ => "x-kubernetes-map-type",
        };
        self.with(key, "atomic")
    }

    /// Keeps fields that are not known.
    pub(super) fn preserving(self) -> Self {
        self.with("x-kubernetes-preserve-unknown-fields", true)
    }
}
