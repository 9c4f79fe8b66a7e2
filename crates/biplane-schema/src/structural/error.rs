//! Validation errors of a field, with the API server's messages.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use biplane_go::fmt::quote;
use biplane_go::json;
use biplane_go::num::format_general;

/// The type of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// The field is required.
    Required,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is not one of the allowed values.
    NotSupported,
    /// The value is a duplicate.
    Duplicate,
    /// The string is too long.
    TooLong,
    /// There are too many items.
    TooMany,
    /// The field must not be set or changed.
    Forbidden,
    /// The server cannot tell whether the value is valid.
    Internal,
}

impl Problem {
    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Forbidden => "Forbidden",
            Self::Internal => "Internal error",
        }
    }

    /// The reason for a cause in a status.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Forbidden => "FieldValueForbidden",
            Self::Internal => "InternalError",
        }
    }
}

/// A problem with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The type of the problem.
    pub problem: Problem,
    /// The field, such as `spec.ports[0].name`.
    pub field: String,
    /// The invalid value.
    pub value: Value,
    /// What a valid value would be.
    pub detail: String,
    /// Whether the message leaves the value out.
    pub hides_value: bool,
}

impl FieldError {
    /// Creates a problem with a value.
    pub fn new(
        problem: Problem,
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            problem,
            field: field.into(),
            value: value.into(),
            detail: detail.into(),
            hides_value: false,
        }
    }

    /// Creates a problem that does not show its value, which is an object or a list.
    pub fn without_value(
        problem: Problem,
        field: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        let value = Value::Object(serde_json::Map::new());
        Self { hides_value: true, ..Self::new(problem, field, value, detail) }
    }

    /// The message without the field.
    pub fn body(&self) -> String {
        let title = self.problem.title();
        let mut body = match self.problem {
            Problem::Required | Problem::TooLong | Problem::Forbidden | Problem::Internal => {
                title.to_owned()
            }
            _ if self.hides_value => title.to_owned(),
            _ => format!("{title}: {}", shown(&self.value)),
        };
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) if !number.is_i64() => {
            format_general(number.as_f64().unwrap_or_default())
        }
        other => json::to_string(other),
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}

/// Joins several errors: one alone, several in brackets, without duplicates.
pub fn joined(errors: &[FieldError]) -> String {
    let mut known = BTreeSet::new();
    let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.retain(|text| known.insert(text.clone()));
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
