//! Equality and copies of nested values, like `reflect.DeepEqual` and `copystructure`.

use super::args::{DEPTH, ITEM};
use crate::func::{Call, Failure};
use crate::value::{List, Map, Value};

/// Whether two values have the same types and contents.
pub(super) fn deep_equal(call: &mut Call<'_>, a: &Value, b: &Value) -> Result<bool, Failure> {
    equal(call, a, b, 0)
}

fn equal(call: &mut Call<'_>, a: &Value, b: &Value, depth: usize) -> Result<bool, Failure> {
    call.spend(1)?;
    if depth > DEPTH {
        return Err(Failure::new(format!(
            "cannot compare values that nest more than {DEPTH} deep"
        )));
    }
    if a.go_type() != b.go_type() {
        return Ok(false);
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(_, a), Value::Int(_, b)) => Ok(a == b),
        (Value::Uint(_, a), Value::Uint(_, b)) => Ok(a == b),
        (Value::Float(a), Value::Float(b)) => Ok(same(*a, *b)),
        (Value::Complex(a, c), Value::Complex(b, d)) => Ok(same(*a, *b) && same(*c, *d)),
        (Value::Str(a), Value::Str(b)) => Ok(a == b),
        (Value::List(a), Value::List(b)) => equal_lists(call, a, b, depth),
        (Value::Map(a), Value::Map(b)) => equal_maps(call, a, b, depth),
        (Value::Object(a), Value::Object(b)) => {
            Ok(std::rc::Rc::ptr_eq(a, b) || a.deep_equals(b.as_ref()))
        }
        _ => Ok(false),
    }
}

/// Go's `==`: what is not a number is not even equal to itself.
fn same(a: f64, b: f64) -> bool {
    a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_eq)
}

fn equal_lists(call: &mut Call<'_>, a: &List, b: &List, depth: usize) -> Result<bool, Failure> {
    if a.is_nil() != b.is_nil() || a.len() != b.len() {
        return Ok(false);
    }
    if a.is(b) {
        return Ok(true);
    }
    for (a, b) in a.items().iter().zip(b.items().iter()) {
        if !equal(call, a, b, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(call: &mut Call<'_>, a: &Map, b: &Map, depth: usize) -> Result<bool, Failure> {
    if a.is_nil() != b.is_nil() || a.len() != b.len() {
        return Ok(false);
    }
    if a.is(b) {
        return Ok(true);
    }
    for ((key, a), (other, b)) in a.pairs().iter().zip(b.pairs().iter()) {
        if !equal(call, key, other, depth + 1)? || !equal(call, a, b, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A copy of a value that shares no list or map with it.
pub(super) fn deep_copy(call: &mut Call<'_>, value: &Value) -> Result<Value, Failure> {
    copy(call, value, 0)
}

fn copy(call: &mut Call<'_>, value: &Value, depth: usize) -> Result<Value, Failure> {
    call.spend(1)?;
    call.reserve(ITEM)?;
    if depth > DEPTH {
        return Err(Failure::new(format!("cannot copy values that nest more than {DEPTH} deep")));
    }
    Ok(match value {
        Value::List(list) if !list.is_nil() => {
            let items: Result<Vec<Value>, Failure> =
                list.items().iter().map(|item| copy(call, item, depth + 1)).collect();
            Value::List(List::new(list.element(), items?))
        }
        Value::Map(map) if !map.is_nil() => {
            let fresh = Map::like(map);
            for (key, value) in map.pairs() {
                let value = copy(call, &value, depth + 1)?;
                fresh.insert_any(key, value);
            }
            Value::Map(fresh)
        }
        Value::Object(object) => object.deep_copy().unwrap_or_else(|| value.clone()),
        value => value.clone(),
    })
}
