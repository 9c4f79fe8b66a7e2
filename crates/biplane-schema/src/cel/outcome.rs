//! The result of an operation: a value, or CEL's error message.

use biplane_go::num;

use super::value::Value;

/// A value, or an error.
pub(super) type Outcome<'a> = Result<Value<'a>, String>;

pub(super) fn no_such_overload<T>() -> Result<T, String> {
    Err("no such overload".to_owned())
}

/// `operand[key]`, and `operand.key`.
pub(super) fn index<'a>(operand: &Value<'a>, key: &Value<'_>) -> Outcome<'a> {
    if operand.is_list() {
        let place = match key {
            Value::Int(place) => *place,
            Value::Uint(place) => i64::try_from(*place).unwrap_or(i64::MAX),
            Value::Double(place) if place.fract() == 0.0 => *place as i64,
            Value::Double(place) => {
                let place = num::format_general(*place);
                return Err(format!("unsupported index value {place} in list"));
            }
            other => {
                return Err(format!("unsupported index type '{}' in list", other.type_name()));
            }
        };
        let found = usize::try_from(place).ok().and_then(|place| operand.item(place));
        return found.ok_or_else(|| format!("index out of bounds: {place}"));
    }
    operand.get(key).ok_or_else(|| format!("no such key: {}", show(key)))
}

/// A key or number as error messages show it.
pub(super) fn show(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Uint(uint) => uint.to_string(),
        Value::Double(double) => num::format_general(*double),
        Value::Bool(bool) => bool.to_string(),
        other => other.type_name().to_owned(),
    }
}
