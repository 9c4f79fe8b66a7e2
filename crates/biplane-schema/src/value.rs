//! Compares and prints JSON values like the API server's merge.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use biplane_go::fmt::quote;
use biplane_go::json;
use biplane_go::num::format_general;

/// A number like in the API server: a 64-bit integer or a double.
#[derive(Clone, Copy)]
enum Num {
    Int(i64),
    Float(f64),
}

fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// Whether two values are equal. A whole double equals the integer.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((ak, av), (bk, bv))| ak == bk && equal(av, bv))
        }
        _ => a == b,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (num(a), num(b)) {
        (Num::Int(a), Num::Int(b)) => a.cmp(&b),
        (Num::Int(a), Num::Float(b)) => (a as f64).partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Num::Float(a), Num::Int(b)) => a.partial_cmp(&(b as f64)).unwrap_or(Ordering::Equal),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// Orders numbers, strings, booleans, lists, objects and null, in this order, and by content within
/// each.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .zip(b)
            .map(|((ak, av), (bk, bv))| ak.cmp(bk).then_with(|| compare(av, bv)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A value inside a path in messages.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k}={}", shown(v))).collect::<Vec<_>>().concat()
        }
        Value::Bool(_) | Value::Number(_) => plain(value),
    }
}

/// A value as printed by Go's `%v`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match num(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(float) => format_general(float),
        },
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// JSON with `<`, `>` and `&` escaped, as in the API server's path elements.
pub fn escaped_json(value: &Value) -> String {
    json::to_string(value)
}
