//! Functions on dictionaries.

use super::args::{DEPTH, ITEM, any, map, reserve_items, text};
use super::strings::to_string;
use crate::func::{Call, Failure, Func};
use crate::types::{Kind, Type};
use crate::value::{Map, Text, Value};

type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;

const KEYED: &[Type] = &[Type::DICT, Type::String];

pub(super) fn functions() -> Vec<Func> {
    let mut functions = vec![
        Func::variadic("dict", &[Type::Any], Type::DICT, dict),
        Func::new("get", KEYED, Type::Any, |_, args| {
            Ok(map(args, 0).get(text(args, 1)).unwrap_or_else(|| Value::text("")))
        }),
        Func::new("set", &[Type::DICT, Type::String, Type::Any], Type::DICT, |call, args| {
            call.reserve(text(args, 1).len() as u64 + ITEM)?;
            let map = map(args, 0);
            set(&map, text(args, 1), any(args, 2).clone())?;
            Ok(Value::Map(map))
        }),
        Func::new("unset", KEYED, Type::DICT, |_, args| {
            let map = map(args, 0);
            map.remove(text(args, 1));
            Ok(Value::Map(map))
        }),
        Func::new("hasKey", KEYED, Type::Bool, |_, args| {
            Ok(map(args, 0).contains(text(args, 1)).into())
        }),
        Func::variadic("pluck", &[Type::String, Type::DICT], Type::LIST, |call, args| {
            reserve_items(call, args.len() as u64)?;
            let maps = (1..args.len()).map(|at| map(args, at));
            Ok(Value::list(maps.filter_map(|map| map.get(text(args, 0))).collect()))
        }),
        Func::variadic("pick", KEYED, Type::DICT, |call, args| {
            reserve_items(call, args.len() as u64)?;
            let map = map(args, 0);
            let keys = (1..args.len()).map(|at| text(args, at));
            Ok(Value::dict(keys.filter_map(|key| Some((Text::from(key), map.get(key)?)))))
        }),
        Func::variadic("omit", KEYED, Type::DICT, omit),
        Func::variadic("keys", &[Type::DICT], Type::STRINGS, |call, args| {
            let mut keys: Vec<Text> = Vec::new();
            for at in 0..args.len() {
                let map = map(args, at);
                reserve_items(call, map.len() as u64)?;
                keys.extend(map.entries().keys().cloned());
            }
            Ok(Value::strings(keys))
        }),
        Func::new("values", &[Type::DICT], Type::LIST, |call, args| {
            let map = map(args, 0);
            reserve_items(call, map.len() as u64)?;
            Ok(Value::list(map.entries().values().cloned().collect()))
        }),
        Func::variadic("dig", &[Type::Any], Type::Any, dig),
    ];
    let merges: [(&[&str], Body); 2] = [
        (&["merge", "mustMerge"], |call, args| merge_all(call, args, false)),
        (&["mergeOverwrite", "mustMergeOverwrite"], |call, args| merge_all(call, args, true)),
    ];
    for (names, body) in merges {
        let params: &[Type] = &[Type::DICT, Type::DICT];
        functions.extend(names.iter().map(|name| Func::variadic(name, params, Type::Any, body)));
    }
    functions
}

fn set(map: &Map, key: &[u8], value: Value) -> Result<(), Failure> {
    if map.insert(key, value) {
        Ok(())
    } else {
        Err(Failure::new("assignment to entry in nil map"))
    }
}

fn dict(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    reserve_items(call, args.len() as u64)?;
    // The smallest map has room for several entries.
    call.reserve(512)?;
    let mut entries = Vec::with_capacity(args.len() / 2 + 1);
    for pair in args.chunks(2) {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        entries.push((Text::from(to_string(call, any(pair, 0))?), value));
    }
    Ok(Value::dict(entries))
}

fn omit(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let map = map(args, 0);
    reserve_items(call, map.len() as u64)?;
    call.spend((args.len() as u64).saturating_mul(map.len() as u64) / 8)?;
    let omitted: Vec<&[u8]> = (1..args.len()).map(|at| text(args, at)).collect();
    let entries = map.entries();
    let kept = entries.iter().filter(|(key, _)| !omitted.contains(&key.as_bytes()));
    Ok(Value::dict(kept.map(|(key, value)| (key.clone(), value.clone()))))
}

/// Go's complaint about a value of another type.
fn conversion(value: &Value, wanted: &str) -> Failure {
    let found = if matches!(value, Value::Nil) { "nil".into() } else { value.type_name() };
    Failure::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

fn as_dict(value: &Value) -> Result<Map, Failure> {
    match value {
        Value::Map(map) if value.go_type() == Some(Type::DICT) => Ok(map.clone()),
        value => Err(conversion(value, "map[string]interface {}")),
    }
}

fn dig(_: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [keys @ .., default, last] = args else {
        return Err(Failure::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(Failure::new("dig needs at least three arguments"));
    }
    let mut value = Value::Map(as_dict(last)?);
    let mut texts = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            Value::Str(text) => texts.push(text),
            key => return Err(conversion(key, "string")),
        }
    }
    for key in texts {
        match as_dict(&value)?.get(key) {
            Some(found) => value = found,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

fn merge_all(call: &mut Call<'_>, args: &[Value], overwrite: bool) -> Result<Value, Failure> {
    let mut target = map(args, 0);
    for at in 1..args.len() {
        let source = map(args, at);
        if target.is_nil() && !source.is_nil() {
            target = Map::dict([]);
        }
        merge(call, &target, &source, overwrite, 0)?;
    }
    Ok(Value::Map(target))
}

/// Merges like `mergo`: in place, maps into maps, and never parts of lists.
fn merge(
    call: &mut Call<'_>,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), Failure> {
    if depth > DEPTH {
        return Err(Failure::new(format!("cannot merge values that nest more than {DEPTH} deep")));
    }
    if target.is_nil() {
        return Ok(());
    }
    reserve_items(call, source.len() as u64)?;
    let boxed = *source.element() == Type::Any;
    for (key, value) in source.pairs() {
        if matches!(value, Value::Nil) || (!boxed && is_nil(&value)) {
            if overwrite {
                assign(target, source, key, value)?;
            }
            continue;
        }
        let old = target.get_any(&key);
        let kind = value.kind();
        if let (Value::Map(from), Some(Value::Map(into))) = (&value, &old) {
            merge(call, into, from, overwrite, depth + 1)?;
        }
        if kind == Kind::Slice && overwrite {
            assign(target, source, key.clone(), value.clone())?;
        }
        let kept = old.as_ref().is_some_and(|old| !is_blank(old));
        let both_maps =
            kind == Kind::Map && old.as_ref().is_some_and(|old| old.kind() == Kind::Map);
        if kept && (kind == Kind::Slice || both_maps || !overwrite) {
            continue;
        }
        assign(target, source, key, value)?;
    }
    Ok(())
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        _ => false,
    }
}

/// What `mergo` takes for empty. Times and other structs are not.
fn is_blank(value: &Value) -> bool {
    !value.is_true()
}

/// Sets an element, if the type of the map allows it.
fn assign(target: &Map, source: &Map, key: Value, value: Value) -> Result<(), Failure> {
    let (wanted, given) = (target.element(), source.element());
    if wanted != given && *wanted != Type::Any {
        return Err(Failure::new(format!(
            "reflect.Value.SetMapIndex: value of type {given} is not assignable to type {wanted}"
        )));
    }
    target.insert_any(key, value);
    Ok(())
}
