//! Functions on lists.

use super::args::{ITEM, NIL_POINTER, any, int, reserve_items};
use super::cast::to_int64;
use super::compare::deep_equal;
use super::defaults::is_empty;
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{List, Value};

type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];

pub(super) fn functions() -> Vec<Func> {
    let mut functions = vec![
        Func::variadic("list", ONE, Type::LIST, list),
        Func::variadic("tuple", ONE, Type::LIST, list),
        Func::variadic("concat", ONE, Type::Any, concat),
    ];
    let of_list: [(&[&str], Type, Body); 7] = [
        (&["first", "mustFirst"], Type::Any, |call, args| {
            Ok(items(call, args, "Cannot find first on type")?.get(0).unwrap_or_default())
        }),
        (&["last", "mustLast"], Type::Any, |call, args| {
            let list = items(call, args, "Cannot find last on type")?;
            Ok(list.len().checked_sub(1).and_then(|last| list.get(last)).unwrap_or_default())
        }),
        (&["rest", "mustRest"], Type::LIST, |call, args| {
            let list = items(call, args, "Cannot find rest on type")?;
            part(call, &list, |items| items.get(1..))
        }),
        (&["initial", "mustInitial"], Type::LIST, |call, args| {
            let list = items(call, args, "Cannot find initial on type")?;
            part(call, &list, |items| items.get(..items.len().checked_sub(1)?))
        }),
        (&["reverse", "mustReverse"], Type::LIST, |call, args| {
            let mut items = copy(call, args, "Cannot find reverse on type")?;
            items.reverse();
            Ok(Value::list(items))
        }),
        (&["compact", "mustCompact"], Type::LIST, |call, args| {
            let mut items = copy(call, args, "Cannot compact on type")?;
            items.retain(|item| !is_empty(item));
            Ok(Value::list(items))
        }),
        (&["uniq", "mustUniq"], Type::LIST, uniq),
    ];
    for (names, result, body) in of_list {
        functions.extend(names.iter().map(|name| Func::new(name, ONE, result, body)));
    }
    let of_two: [(&[&str], Type, Body); 3] = [
        (&["append", "push", "mustAppend", "mustPush"], Type::LIST, |call, args| {
            let mut items = copy(call, args, "Cannot push on type")?;
            items.push(any(args, 1).clone());
            Ok(Value::list(items))
        }),
        (&["prepend", "mustPrepend"], Type::LIST, |call, args| {
            let mut items = copy(call, args, "Cannot prepend on type")?;
            items.insert(0, any(args, 1).clone());
            Ok(Value::list(items))
        }),
        (&["has", "mustHas"], Type::Bool, has),
    ];
    for (names, result, body) in of_two {
        functions.extend(names.iter().map(|name| Func::new(name, TWO, result, body)));
    }
    for name in ["without", "mustWithout"] {
        functions.push(Func::variadic(name, TWO, Type::LIST, without));
    }
    for name in ["slice", "mustSlice"] {
        functions.push(Func::variadic(name, TWO, Type::Any, slice));
    }
    for name in ["chunk", "mustChunk"] {
        functions.push(Func::new(name, &[Type::INT, Type::Any], Type::LISTS, chunk));
    }
    functions
}

/// The list of the first argument. The complaint about anything else ends in its kind.
fn items(call: &mut Call<'_>, args: &[Value], complaint: &str) -> Result<List, Failure> {
    list_of(call, any(args, 0), complaint)
}

fn list_of(call: &mut Call<'_>, value: &Value, complaint: &str) -> Result<List, Failure> {
    match value {
        Value::List(list) => {
            call.spend(1)?;
            Ok(list.clone())
        }
        Value::Nil => Err(Failure::new(NIL_POINTER)),
        value => Err(Failure::new(format!("{complaint} {}", value.kind().name()))),
    }
}

/// A copy of the list of the first argument.
fn copy(call: &mut Call<'_>, args: &[Value], complaint: &str) -> Result<Vec<Value>, Failure> {
    let list = items(call, args, complaint)?;
    reserve_items(call, list.len() as u64 + 1)?;
    Ok(list.to_vec())
}

/// A part of a list. There is none of an empty list.
fn part(
    call: &mut Call<'_>,
    list: &List,
    choose: impl Fn(&[Value]) -> Option<&[Value]>,
) -> Result<Value, Failure> {
    reserve_items(call, list.len() as u64)?;
    Ok(match choose(&list.items()) {
        Some(part) => Value::list(part.to_vec()),
        None => Value::List(List::nil(&Type::Any)),
    })
}

fn list(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    call.reserve(args.len() as u64 * ITEM)?;
    Ok(Value::list(args.to_vec()))
}

fn concat(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for arg in args {
        let Value::List(list) = arg else {
            return Err(match arg {
                Value::Nil => Failure::new(NIL_POINTER),
                arg => Failure::new(format!("Cannot concat type {} as list", arg.kind().name())),
            });
        };
        reserve_items(call, list.len() as u64)?;
        all.extend(list.items().iter().cloned());
    }
    if all.is_empty() {
        return Ok(Value::List(List::nil(&Type::Any)));
    }
    Ok(Value::list(all))
}

fn contains(call: &mut Call<'_>, items: &[Value], needle: &Value) -> Result<bool, Failure> {
    for item in items {
        if deep_equal(call, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let mut kept = Vec::new();
    for item in copy(call, args, "Cannot find uniq on type")? {
        if !contains(call, &kept, &item)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn without(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let mut kept = Vec::new();
    for item in copy(call, args, "Cannot find without on type")? {
        if !contains(call, args.get(1..).unwrap_or_default(), &item)? {
            kept.push(item);
        }
    }
    Ok(Value::list(kept))
}

fn has(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    if matches!(any(args, 1), Value::Nil) {
        return Ok(false.into());
    }
    let list = list_of(call, any(args, 1), "Cannot find has on type")?;
    let items = list.to_vec();
    Ok(contains(call, &items, any(args, 0))?.into())
}

fn slice(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let list = items(call, args, "list should be type of slice or array but")?;
    if list.is_empty() {
        return Ok(Value::Nil);
    }
    let index = |at: usize, default: i64| args.get(at).map_or(default, to_int64);
    let (start, end) = (index(1, 0), index(2, list.len().cast_signed() as i64));
    reserve_items(call, list.len() as u64)?;
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let items = list.items();
    let part = range.and_then(|(start, end)| items.get(start..end));
    match part {
        Some(part) => Ok(Value::List(List::new(list.element(), part.to_vec()))),
        None => Err(Failure::new("reflect.Value.Slice: slice index out of bounds")),
    }
}

/// Lists of at most so many elements. Go computes their number in floating point, also for sizes
/// that make no sense.
fn chunk(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    const LENGTH: &str = "runtime error: makeslice: len out of range";
    let size = int(args, 0);
    let list = list_of(call, any(args, 1), "Cannot chunk type")?;
    let items = list.to_vec();
    let length = items.len() as f64;
    let count = super::cast::truncate(((length - 1.0) / size as f64).floor() + 1.0);
    let Ok(count) = usize::try_from(count) else { return Err(Failure::new(LENGTH)) };
    reserve_items(call, count as u64 + items.len() as u64)?;
    let mut chunks = Vec::with_capacity(count);
    for at in 0..count {
        let rest = super::cast::truncate((length % size as f64).floor());
        let wanted = if at + 1 == count && rest != 0 { rest } else { size };
        let Ok(wanted) = usize::try_from(wanted) else { return Err(Failure::new(LENGTH)) };
        let start = (at.cast_signed() as i64).wrapping_mul(size);
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let part = start.checked_add(wanted).and_then(|end| items.get(start..end));
        let Some(part) = part else {
            return Err(Failure::new("reflect: slice index out of range"));
        };
        chunks.push(Value::list(part.to_vec()));
    }
    Ok(Value::List(List::new(&Type::LIST, chunks)))
}
