//! The order in which Go prints and ranges over keys.

use std::cmp::Ordering;

use super::Value;

/// Compares two keys. Nil is first. Go orders keys of different types by chance, we by kind.
pub(crate) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(_, a), Value::Int(_, b)) => a.cmp(b),
        (Value::Uint(_, a), Value::Uint(_, b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or_else(|| {
            // NaN is less than all numbers.
            b.is_nan().cmp(&a.is_nan())
        }),
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::Bool(_) => 1,
        Value::Int(..) => 2,
        Value::Uint(..) => 3,
        Value::Float(_) => 4,
        Value::Str(_) => 5,
        _ => 6,
    }
}
