//! The functions that every template has.

mod compare;
mod escape;

use self::compare::equal;
use crate::func::{Builtin, Call, Failure, Func, Order};
use crate::slot::Slot;
use crate::types::Type;
use crate::value::{List, Map, Text, Value};

/// All of them.
pub(crate) fn functions() -> Vec<Func> {
    const ONE: &[Type] = &[Type::Reflect];
    const TWO: &[Type] = &[Type::Reflect, Type::Reflect];
    const ANY: &[Type] = &[Type::Any];
    const FORMAT: &[Type] = &[Type::String, Type::Any];
    let variadic = |name, result, builtin| Func::builtin(name, TWO, true, result, builtin);
    let two = |name, builtin| Func::builtin(name, TWO, false, Type::Bool, builtin);
    vec![
        variadic("and", Type::Reflect, Builtin::And),
        variadic("or", Type::Reflect, Builtin::Or),
        variadic("index", Type::Reflect, Builtin::Index),
        variadic("slice", Type::Reflect, Builtin::Slice),
        variadic("call", Type::Reflect, Builtin::Call),
        variadic("eq", Type::Bool, Builtin::Eq),
        Func::builtin("not", ONE, false, Type::Bool, Builtin::Not),
        Func::builtin("len", ONE, false, Type::INT, Builtin::Len),
        two("ne", Builtin::Ne),
        two("lt", Builtin::Ordered(Order::Less)),
        two("le", Builtin::Ordered(Order::LessOrEqual)),
        two("gt", Builtin::Ordered(Order::Greater)),
        two("ge", Builtin::Ordered(Order::GreaterOrEqual)),
        Func::variadic("print", ANY, Type::String, |call, args| call.sprint(args).map(Value::text)),
        Func::variadic("println", ANY, Type::String, |call, args| {
            call.sprintln(args).map(Value::text)
        }),
        Func::variadic("printf", FORMAT, Type::String, printf),
        Func::variadic("html", ANY, Type::String, |call, args| escaped(call, args, escape::html)),
        Func::variadic("js", ANY, Type::String, |call, args| escaped(call, args, escape::js)),
        Func::variadic("urlquery", ANY, Type::String, |call, args| {
            escaped(call, args, escape::urlquery)
        }),
    ]
}

fn printf(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let Some((Value::Str(format), rest)) = args.split_first() else {
        return Err(Failure::new("printf needs a format"));
    };
    call.sprintf(format, rest).map(Value::text)
}

/// The text of the arguments with its special characters escaped.
fn escaped(
    call: &mut Call<'_>,
    args: &[Value],
    escape: fn(&[u8]) -> Vec<u8>,
) -> Result<Value, Failure> {
    let text = if let [Value::Str(text)] = args {
        text.to_vec()
    } else {
        let missing = |arg: &Value| match arg {
            Value::Nil => Value::text("<no value>"),
            other => other.clone(),
        };
        let args: Vec<Value> = args.iter().map(missing).collect();
        call.sprint(&args)?
    };
    // Each byte can become six.
    call.reserve(text.len() as u64 * 6)?;
    Ok(Value::text(escape(&text)))
}

/// Runs a function that sees places. `callee` is the first operand as written.
pub(crate) fn run(builtin: Builtin, args: &[Slot], callee: &str) -> Result<Slot, String> {
    let first = args.first().unwrap_or(&Slot::Nothing);
    let rest = args.get(1..).unwrap_or_default();
    let second = rest.first().unwrap_or(&Slot::Nothing);
    let flag = |flag: bool| Slot::Plain(Value::Bool(flag));
    match builtin {
        Builtin::And | Builtin::Or => Ok(first.clone()),
        Builtin::Not => Ok(flag(!first.value().is_true())),
        Builtin::Len => len(first).map(|len| Slot::Plain(Value::int(len.cast_signed() as i64))),
        Builtin::Index => index(first, rest),
        Builtin::Slice => slice(first, rest),
        Builtin::Call => Err(match first.value() {
            Value::Nil => "call of nil".into(),
            value => format!("non-function {callee} of type {}", value.type_name()),
        }),
        Builtin::Eq => equal(first.value(), rest).map(flag),
        Builtin::Ne => equal(first.value(), rest).map(|equal| flag(!equal)),
        Builtin::Ordered(order) => compare::ordered(order, first.value(), second.value()).map(flag),
    }
}

fn len(item: &Slot) -> Result<usize, String> {
    match item {
        Slot::Nothing => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Slot::Boxed(Value::Nil) => Err("len of nil pointer".into()),
        Slot::Boxed(value) | Slot::Plain(value) => match value.underlying() {
            Value::Str(text) => Ok(text.len()),
            Value::List(list) => Ok(list.len()),
            Value::Map(map) => Ok(map.len()),
            _ => {
                // The function looks at what a pointer points at.
                let name = value.type_name();
                Err(format!("len of type {}", name.strip_prefix('*').unwrap_or(&name)))
            }
        },
    }
}

fn integer_index(index: &Value, len: usize) -> Result<usize, String> {
    let number = match index.underlying() {
        Value::Int(_, number) => number,
        Value::Uint(_, number) => number.cast_signed(),
        Value::Nil => return Err("cannot index slice/array with nil".into()),
        _ => {
            let name = index.type_name();
            return Err(format!("cannot index slice/array with type {name}"));
        }
    };
    let fits = usize::try_from(number).ok().filter(|index| *index <= len);
    fits.ok_or_else(|| format!("index out of range: {number}"))
}

fn index(item: &Slot, indexes: &[Slot]) -> Result<Slot, String> {
    let mut item = item.clone().unbox();
    if let Slot::Nothing = item {
        return Err("index of untyped nil".into());
    }
    for index in indexes {
        item = match item.value() {
            Value::Nil => return Err("index of nil pointer".into()),
            Value::List(list) => {
                let at = integer_index(index.value(), list.len())?;
                let element = list.get(at).ok_or("reflect: slice index out of range")?;
                Slot::of_type(list.element(), element)
            }
            Value::Map(map) => map_index(map, index.value())?,
            value => {
                let Value::Str(text) = value.underlying() else {
                    let name = value.type_name();
                    let name = name.strip_prefix('*').unwrap_or(&name);
                    return Err(format!("can't index item of type {name}"));
                };
                let at = integer_index(index.value(), text.len())?;
                let byte = text.get(at).ok_or("reflect: string index out of range")?;
                Slot::Plain(Value::byte(*byte))
            }
        };
    }
    Ok(item)
}

fn map_index(map: &Map, key: &Value) -> Result<Slot, String> {
    let found = match (key, map.key()) {
        (Value::Str(key), _) => map.get(key),
        (Value::Nil, Type::String) => {
            return Err("value is nil; should be of type string".into());
        }
        (_, Type::String) => {
            return Err(format!("value has type {}; should be string", key.type_name()));
        }
        (Value::List(_) | Value::Map(_), _) => {
            return Err(format!("runtime error: hash of unhashable type {}", key.type_name()));
        }
        _ => {
            let others = map.others();
            let mut others = others.iter().filter(|(other, _)| other.go_type() == key.go_type());
            others
                .find(|(other, _)| crate::value::order::compare(other, key).is_eq())
                .map(|o| o.1.clone())
        }
    };
    let element = found.unwrap_or_else(|| Value::zero(map.element()));
    Ok(Slot::of_type(map.element(), element))
}

fn slice(item: &Slot, indexes: &[Slot]) -> Result<Slot, String> {
    let value = item.value();
    if let Value::Nil = value {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()));
    }
    let inner = value.underlying();
    let len = match &inner {
        Value::Str(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        _ => {
            let name = value.type_name();
            let name = name.strip_prefix('*').unwrap_or(&name);
            return Err(format!("can't slice item of type {name}"));
        }
    };
    let mut bounds = [0, len, len];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        // Unlike `index`, this function does not open interfaces.
        if let Slot::Boxed(_) = index {
            return Err("cannot index slice/array with type interface {}".into());
        }
        *bound = integer_index(index.value(), len)?;
    }
    let [start, end, most] = bounds;
    if start > end {
        return Err(format!("invalid slice index: {start} > {end}"));
    }
    if indexes.len() == 3 && end > most {
        return Err(format!("invalid slice index: {end} > {most}"));
    }
    Ok(Slot::plain(match &inner {
        Value::Str(text) => Value::Str(Text::from(text.get(start..end).unwrap_or_default())),
        Value::List(list) => {
            let items = list.items().get(start..end).unwrap_or_default().to_vec();
            Value::List(List::new(list.element(), items))
        }
        _ => Value::Nil,
    }))
}
