//! A place for a value. Templates can tell a missing value from nil, and a value of an interface from
//! a plain one.

use crate::types::Type;
use crate::value::Value;

/// What a part of a pipeline evaluates to.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// No value at all, such as a missing key.
    Nothing,
    /// A value of type `interface {}`, such as an element of untyped data.
    Boxed(Value),
    /// A value of its own type.
    Plain(Value),
}

impl Slot {
    pub(crate) fn plain(value: Value) -> Self {
        if let Value::Nil = value { Self::Nothing } else { Self::Plain(value) }
    }

    /// A value in a container or result of a type.
    pub(crate) fn of_type(declared: &Type, value: Value) -> Self {
        if let Type::Any = declared { Self::Boxed(value) } else { Self::plain(value) }
    }

    /// Opens the interface.
    pub(crate) fn unbox(self) -> Self {
        match self {
            Self::Boxed(value) => Self::plain(value),
            other => other,
        }
    }

    /// The value as a function gets it.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Nothing => Value::Nil,
            Self::Boxed(value) | Self::Plain(value) => value,
        }
    }

    pub(crate) fn value(&self) -> &Value {
        match self {
            Self::Nothing => &Value::Nil,
            Self::Boxed(value) | Self::Plain(value) => value,
        }
    }

    /// Checks that the value fits a parameter, and opens the interface if it must be.
    pub(crate) fn check(self, to: Type) -> Result<Self, String> {
        if matches!(to, Type::Any | Type::Reflect) {
            return Ok(self);
        }
        match self {
            Self::Nothing if to.can_be_nil() => Ok(Self::Plain(Value::zero(&to))),
            Self::Nothing => Err(format!("invalid value; expected {to}")),
            Self::Boxed(Value::Nil) => {
                Err(format!("wrong type for value; expected {to}; got interface {{}}"))
            }
            Self::Boxed(value) | Self::Plain(value) => {
                if value.go_type() == Some(to) || matches!(value, Value::Nil) {
                    return Ok(Self::Plain(value));
                }
                Err(format!("wrong type for value; expected {to}; got {}", value.type_name()))
            }
        }
    }
}
