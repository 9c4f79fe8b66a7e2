//! Kinds of values: Go's type names, and conversion between integers and doubles.

use serde_json::{Map, Number, Value};

/// Changes a value as encoding it to JSON and decoding it again would: whole doubles that print
/// without an exponent become integers if they fit.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = whole(number) {
                *value = integer.into();
            } else if !number.is_f64() && !number.is_i64() {
                *value = double(number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => normalize_map(map),
        _ => {}
    }
}

/// Normalizes all values of an object.
pub fn normalize_map(map: &mut Map<String, Value>) {
    map.values_mut().for_each(normalize);
}

/// Turns every number into a double, as in a protobuf Struct and in Go's own JSON decoder.
pub fn to_doubles(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_f64() => *value = double(number),
        Value::Array(items) => items.iter_mut().for_each(to_doubles),
        Value::Object(map) => map.values_mut().for_each(to_doubles),
        _ => {}
    }
}

fn double(number: &Number) -> Value {
    number.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
}

/// The integer that a double parses back as. The printed digits decide, not the exact value: digits
/// beyond the precision of a double print as zeros.
fn whole(number: &Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 || float.abs() >= 1e21 {
        return None;
    }
    if float.abs() < 9_007_199_254_740_992.0 {
        return Some(float as i64);
    }
    float.to_string().parse().ok()
}

/// Go's type name of a decoded value.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
