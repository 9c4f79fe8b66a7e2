//! Decodes JSON into Go structs like `sigs.k8s.io/json`, with its error texts.

use biplane_go::{num, time};
use biplane_model::Value;

/// Go's name of the kind of a JSON value.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The error for a value that does not fit a type.
pub(super) fn mismatch(value: &Value, go_type: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {go_type}", kind(value))
}

/// Collects the first error about the fields of a struct, like Go, which goes on decoding.
#[derive(Debug)]
pub(super) struct Struct<'a> {
    name: &'static str,
    value: &'a Value,
    error: &'a mut Option<String>,
}

impl<'a> Struct<'a> {
    /// The fields of an object. Null has none.
    pub(super) fn of(
        name: &'static str,
        value: &'a Value,
        error: &'a mut Option<String>,
    ) -> Option<Self> {
        match value {
            Value::Object(_) | Value::Null => Some(Self { name, value, error }),
            other => {
                error.get_or_insert_with(|| mismatch(other, &format!("main.{name}")));
                None
            }
        }
    }

    fn refuse(&mut self, field: &str, found: &str, go_type: &str) {
        let Self { name, .. } = self;
        let text = format!(
            "json: cannot unmarshal {found} into Go struct field {name}.{field} of type {go_type}"
        );
        self.error.get_or_insert(text);
    }

    /// A field of a string type.
    pub(super) fn text(&mut self, field: &str, go_type: &str) -> String {
        match self.value.get(field) {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(other) => {
                self.refuse(field, kind(other), go_type);
                String::new()
            }
        }
    }

    /// A field that is a map of strings.
    pub(super) fn texts(&mut self, field: &str) -> Vec<(String, String)> {
        let map = match self.value.get(field) {
            Some(Value::Object(map)) => map,
            None | Some(Value::Null) => return Vec::new(),
            Some(other) => {
                self.refuse(field, kind(other), "map[string]string");
                return Vec::new();
            }
        };
        let mut texts = Vec::new();
        for (key, value) in map {
            match value {
                Value::String(text) => texts.push((key.clone(), text.clone())),
                Value::Null => texts.push((key.clone(), String::new())),
                other => self.refuse(field, kind(other), "string"),
            }
        }
        texts
    }

    /// A field of type `int64`.
    pub(super) fn integer(&mut self, field: &str) -> i64 {
        match self.value.get(field) {
            None | Some(Value::Null) => 0,
            Some(Value::Number(number)) => {
                let text = num::format_float(number.as_f64().unwrap_or_default());
                let integer = number.as_i64().or_else(|| text.parse().ok());
                if integer.is_none() {
                    self.refuse(field, &format!("number {text}"), "int64");
                }
                integer.unwrap_or_default()
            }
            Some(other) => {
                self.refuse(field, kind(other), "int64");
                0
            }
        }
    }

    /// A field of type `metav1.Time`. Its own decoder fails at once.
    pub(super) fn time(&self, field: &str) -> Result<Option<time::Instant>, String> {
        match self.value.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => time::instant(text).map(Some).ok_or_else(|| {
                let parsed = time::parse(b"2006-01-02T15:04:05Z07:00", text.as_bytes());
                parsed.err().unwrap_or_default()
            }),
            Some(other) => Err(mismatch(other, "string")),
        }
    }
}
