//! Comparisons: basic kinds by value, everything else only with nil or by identity.

use std::cmp::Ordering;

use crate::func::Order;
use crate::slot::Slot;
use crate::types::{Kind, Type};
use crate::value::Value;

/// The kinds that Go compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basic {
    None,
    Bool,
    Complex,
    Int,
    Float,
    Str,
    Uint,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Complex(..) => Basic::Complex,
        Value::Int(..) => Basic::Int,
        Value::Float(_) => Basic::Float,
        Value::Str(_) => Basic::Str,
        Value::Uint(..) => Basic::Uint,
        _ => Basic::None,
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

fn show(value: &Value, verb: &[u8]) -> String {
    String::from_utf8_lossy(&crate::value::print::sprintf(verb, std::slice::from_ref(value)))
        .into_owned()
}

/// Whether a value equals any of the others.
#[allow(clippy::float_cmp)] // Go compares so too
pub(super) fn equal(first: &Value, others: &[Slot]) -> Result<bool, String> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    let a = first.underlying();
    for other in others {
        let second = other.value();
        let b = second.underlying();
        let same = match (&a, &b) {
            (Value::Int(_, a), Value::Uint(_, b)) => u64::try_from(*a).is_ok_and(|a| a == *b),
            (Value::Uint(_, a), Value::Int(_, b)) => u64::try_from(*b).is_ok_and(|b| *a == b),
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(_, a), Value::Int(_, b)) => a == b,
            (Value::Uint(_, a), Value::Uint(_, b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Complex(..), Value::Complex(..)) => same_complex(&a, &b),
            (Value::Str(a), Value::Str(b)) => a == b,
            _ if basic(&a) != basic(&b) => {
                if !matches!(a, Value::Nil) && !matches!(b, Value::Nil) {
                    return Err(incompatible(first, second));
                }
                false
            }
            _ => same_reference(first, second)?,
        };
        if same {
            return Ok(true);
        }
    }
    Ok(false)
}

#[allow(clippy::float_cmp)]
fn same_complex(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Complex(a, x), Value::Complex(b, y)) => a == b && x == y,
        _ => false,
    }
}

fn incompatible(a: &Value, b: &Value) -> String {
    format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name())
}

/// Compares values that are no basic kinds.
fn same_reference(a: &Value, b: &Value) -> Result<bool, String> {
    let (a_kind, b_kind) = (a.kind(), b.kind());
    if a_kind != b_kind && a_kind != Kind::Invalid && b_kind != Kind::Invalid {
        return Err(format!(
            "non-comparable types {}: {}, {}: {}",
            show(a, b"%s"),
            a.type_name(),
            b.type_name(),
            show(b, b"%v")
        ));
    }
    if is_nil(a) || is_nil(b) {
        return Ok(is_nil(a) == is_nil(b));
    }
    let comparable = match b.go_type() {
        Some(Type::Named(named)) => named.comparable,
        _ => false,
    };
    if !comparable {
        return Err(format!("non-comparable type {}: {}", show(b, b"%s"), b.type_name()));
    }
    Ok(match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let pointer = a.go_type().kind() == Kind::Ptr;
            std::rc::Rc::ptr_eq(a, b)
                || !pointer && a.go_type() == b.go_type() && a.equals(b.as_ref())
        }
        _ => false,
    })
}

/// Whether a value is less than another.
pub(super) fn less(first: &Value, second: &Value) -> Result<bool, String> {
    const BAD: &str = "invalid type for comparison";
    let (a, b) = (first.underlying(), second.underlying());
    if basic(&a) == Basic::None || basic(&b) == Basic::None {
        return Err(BAD.into());
    }
    Ok(match (&a, &b) {
        (Value::Int(_, a), Value::Uint(_, b)) => u64::try_from(*a).map_or(true, |a| a < *b),
        (Value::Uint(_, a), Value::Int(_, b)) => u64::try_from(*b).is_ok_and(|b| *a < b),
        (Value::Int(_, a), Value::Int(_, b)) => a < b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b) == Some(Ordering::Less),
        (Value::Str(a), Value::Str(b)) => a < b,
        _ if basic(&a) == basic(&b) => return Err(BAD.into()),
        _ => return Err(incompatible(first, second)),
    })
}

/// The other comparisons are made of less and equal, which matters for NaN.
pub(super) fn ordered(order: Order, a: &Value, b: &Value) -> Result<bool, String> {
    let less = less(a, b)?;
    let less_or_equal =
        || -> Result<bool, String> { Ok(less || equal(a, &[Slot::plain(b.clone())])?) };
    match order {
        Order::Less => Ok(less),
        Order::LessOrEqual => less_or_equal(),
        Order::Greater => Ok(!less_or_equal()?),
        Order::GreaterOrEqual => Ok(!less),
    }
}
