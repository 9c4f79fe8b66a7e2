//! Typed access to arguments whose types were checked before the call.

use crate::func::{Call, Failure};
use crate::value::{Map, Value};

/// What Go panics with when a function looks into nil.
pub(super) const NIL_POINTER: &str =
    "runtime error: invalid memory address or nil pointer dereference";

/// The bytes of a list element, for the memory budget.
pub(super) const ITEM: u64 = size_of::<Value>() as u64;

/// How deep functions follow lists and maps. Nothing that is meant nests so deep: the value contains
/// itself, or a template tries to exhaust the stack.
pub(super) const DEPTH: usize = 500;

const NIL: &Value = &Value::Nil;

/// An argument of any type.
pub(super) fn any(args: &[Value], at: usize) -> &Value {
    args.get(at).unwrap_or(NIL)
}

/// A string argument.
pub(super) fn text(args: &[Value], at: usize) -> &[u8] {
    match args.get(at) {
        Some(Value::Str(text)) => text,
        _ => b"",
    }
}

/// An integer argument.
pub(super) fn int(args: &[Value], at: usize) -> i64 {
    match args.get(at) {
        Some(Value::Int(_, number)) => *number,
        Some(Value::Uint(_, number)) => number.cast_signed(),
        _ => 0,
    }
}

/// A map argument. A missing one is a nil map.
pub(super) fn map(args: &[Value], at: usize) -> Map {
    match args.get(at) {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::nil_dict(),
    }
}

/// A string result whose size was unknown before.
pub(super) fn made(call: &mut Call<'_>, text: impl Into<Vec<u8>>) -> Result<Value, Failure> {
    let text = text.into();
    call.reserve(text.len() as u64)?;
    Ok(Value::text(text))
}

/// Accounts for a list of so many elements, before it is made.
pub(super) fn reserve_items(call: &mut Call<'_>, count: u64) -> Result<(), Failure> {
    call.spend(count)?;
    call.reserve(count.saturating_mul(ITEM))
}
