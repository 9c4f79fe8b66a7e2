//! Defaults, choices and the types of values.

use super::args::{any, text};
use super::compare::{deep_copy, deep_equal};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::Value;

const ONE: &[Type] = &[Type::Any];
const TWO: &[Type] = &[Type::Any, Type::Any];
const NAMED: &[Type] = &[Type::String, Type::Any];

pub(super) fn functions() -> Vec<Func> {
    vec![
        Func::variadic("default", TWO, Type::Any, |_, args| {
            let given = any(args, 1);
            Ok(if is_empty(given) { any(args, 0) } else { given }.clone())
        }),
        Func::new("empty", ONE, Type::Bool, |_, args| Ok(is_empty(any(args, 0)).into())),
        Func::variadic("coalesce", ONE, Type::Any, |_, args| {
            Ok(args.iter().find(|value| !is_empty(value)).cloned().unwrap_or_default())
        }),
        Func::variadic("all", ONE, Type::Bool, |_, args| {
            Ok(args.iter().all(|value| !is_empty(value)).into())
        }),
        Func::variadic("any", ONE, Type::Bool, |_, args| {
            Ok(args.iter().any(|value| !is_empty(value)).into())
        }),
        Func::new("ternary", &[Type::Any, Type::Any, Type::Bool], Type::Any, |_, args| {
            let chosen = usize::from(!any(args, 2).is_true());
            Ok(any(args, chosen).clone())
        }),
        Func::new("typeOf", ONE, Type::String, |_, args| Ok(any(args, 0).type_name().into())),
        Func::new("typeIs", NAMED, Type::Bool, |_, args| {
            Ok((any(args, 1).type_name().as_bytes() == text(args, 0)).into())
        }),
        Func::new("typeIsLike", NAMED, Type::Bool, |_, args| {
            let (name, wanted) = (any(args, 1).type_name(), text(args, 0));
            let pointed = name.strip_prefix('*').unwrap_or(&name);
            Ok((name.as_bytes() == wanted || pointed.as_bytes() == wanted).into())
        }),
        Func::new("kindOf", ONE, Type::String, |_, args| Ok(any(args, 0).kind().name().into())),
        Func::new("kindIs", NAMED, Type::Bool, |_, args| {
            Ok((any(args, 1).kind().name().as_bytes() == text(args, 0)).into())
        }),
        Func::new("deepEqual", TWO, Type::Bool, |call, args| {
            Ok(deep_equal(call, any(args, 0), any(args, 1))?.into())
        }),
        Func::new("deepCopy", ONE, Type::Any, copy),
        Func::new("mustDeepCopy", ONE, Type::Any, copy),
    ]
}

/// Whether a value is nil, false, zero or without content. Structs are never empty.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.is_true()
}

fn copy(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    match any(args, 0) {
        Value::Nil => Err(Failure::new("reflect: call of reflect.Value.Type on zero Value")),
        value => deep_copy(call, value),
    }
}
