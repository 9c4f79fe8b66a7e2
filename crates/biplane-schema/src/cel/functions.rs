//! Implements functions and operators.

pub(super) mod library;
mod list;
mod printing;
mod results;
mod text;
mod time;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use biplane_go::num;
use biplane_go::regex::GoRegex;

use super::cost::Cost;
use super::outcome::{Outcome, index, no_such_overload, show};
use super::shape::{ListType, Shape};
use super::value::{Value, same_identity};

/// The patterns of a program, and those that a run made.
pub(super) struct Patterns<'a> {
    literal: &'a BTreeMap<String, GoRegex>,
    made: BTreeMap<String, GoRegex>,
}

impl<'a> Patterns<'a> {
    pub(super) fn new(literal: &'a BTreeMap<String, GoRegex>) -> Self {
        Self { literal, made: BTreeMap::new() }
    }

    /// Parses a pattern once in a run.
    fn get(&mut self, pattern: &str, cost: &mut Cost<'_>) -> Result<&GoRegex, String> {
        if let Some(regex) = self.literal.get(pattern) {
            return Ok(regex);
        }
        if !self.made.contains_key(pattern) {
            cost.spend_text(pattern.len())?;
            let regex = GoRegex::new(pattern).map_err(|error| error.to_string())?;
            cost.spend(regex.size() as u64 / COMPILED_PER_UNIT)?;
            self.made.insert(pattern.to_owned(), regex);
        }
        self.made.get(pattern).ok_or_else(String::new)
    }
}

/// How many bytes of a pattern are compiled at the cost of an operator.
const COMPILED_PER_UNIT: u64 = 20;

/// How many steps of a search cost as much as an operator.
const STEPS_PER_UNIT: u64 = 10;

/// Calls a function with evaluated arguments.
pub(super) fn call<'a>(
    function: &str,
    args: &[Value<'a>],
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    let function = function.strip_prefix('.').unwrap_or(function);
    if let Some(outcome) = library::call(function, args, patterns, cost) {
        return outcome;
    }
    match args {
        [only] => {
            if let Value::Text(text) = only {
                cost.spend_text(text.len())?;
            }
            unary(function, only)
        }
        [left, right] => binary(function, left, right, patterns, cost),
        _ => no_such_overload(),
    }
}

fn unary<'a>(function: &str, value: &Value<'a>) -> Outcome<'a> {
    match (function, value) {
        ("!_", Value::Bool(bool)) => Ok(Value::Bool(!bool)),
        ("-_", Value::Double(double)) => Ok(Value::Double(-double)),
        ("-_", Value::Int(int)) => int.checked_neg().map(Value::Int).ok_or_else(overflow),
        ("size", value) => match value.size() {
            Some(size) => Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => Err("no such overload: size".to_owned()),
        },
        ("dyn", value) => Ok(value.clone()),
        ("type", value) => Ok(Value::Type(value.type_name())),
        ("bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint", _) => {
            convert(function, value)
        }
        (getter, value) => time::get(getter, value, None),
    }
}

fn binary<'a>(
    function: &str,
    left: &Value<'a>,
    right: &Value<'a>,
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    match function {
        "_==_" => Ok(Value::Bool(left.equals(right, cost)?)),
        "_!=_" => Ok(Value::Bool(!left.equals(right, cost)?)),
        "_<_" => order(function, left, right, Ordering::is_lt),
        "_<=_" => order(function, left, right, Ordering::is_le),
        "_>_" => order(function, left, right, Ordering::is_gt),
        "_>=_" => order(function, left, right, Ordering::is_ge),
        "_[_]" => index(left, right),
        "@in" => {
            if let Some(items) = right.items() {
                for item in items {
                    if item.equals(left, cost)? {
                        return Ok(Value::Bool(true));
                    }
                }
                return Ok(Value::Bool(false));
            }
            match right {
                Value::Map(_) | Value::JsonMap(_) | Value::TypedMap(..) => {
                    Ok(Value::Bool(right.get(left).is_some()))
                }
                _ => no_such_overload(),
            }
        }
        "startsWith" | "endsWith" | "contains" | "matches" => match (left, right) {
            (Value::Text(text), Value::Text(other)) => test(function, text, other, patterns, cost),
            _ => no_such_overload(),
        },
        "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => arithmetic(function, left, right, cost),
        getter => time::get(getter, left, Some(right)),
    }
}

fn order<'a>(
    function: &str,
    left: &Value<'a>,
    right: &Value<'a>,
    is: fn(Ordering) -> bool,
) -> Outcome<'a> {
    if matches!(left.type_name(), "null_type" | "list" | "map" | "type") || is_opaque(left) {
        return Err(format!("no such overload: {function}"));
    }
    if let (Value::Double(a), Value::Double(b)) = (left, right)
        && (a.is_nan() || b.is_nan())
    {
        return Err("NaN values cannot be ordered".to_owned());
    }
    left.compare(right).map_or_else(no_such_overload, |order| Ok(Value::Bool(is(order))))
}

fn is_opaque(value: &Value<'_>) -> bool {
    matches!(value, Value::Opaque(_) | Value::Optional(_) | Value::Raw(_))
}

fn test<'a>(
    function: &str,
    text: &str,
    other: &str,
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    cost.spend_text(text.len())?;
    Ok(Value::Bool(match function {
        "startsWith" => text.starts_with(other),
        "endsWith" => text.ends_with(other),
        "contains" => text.contains(other),
        _ => {
            let regex = patterns.get(other, cost)?;
            cost.spend(regex.search_steps(text.len()) / STEPS_PER_UNIT)?;
            regex.is_match(text.as_bytes()).map_err(|error| error.to_string())?
        }
    }))
}

pub(super) fn overflow() -> String {
    "integer overflow".to_owned()
}

pub(super) fn arithmetic<'a>(
    function: &str,
    left: &Value<'a>,
    right: &Value<'a>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => {
            if *b == 0 && matches!(function, "_/_" | "_%_") {
                return Err(by_zero(function));
            }
            let result = match function {
                "_+_" => a.checked_add(*b),
                "_-_" => a.checked_sub(*b),
                "_*_" => a.checked_mul(*b),
                "_/_" => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Value::Int).ok_or_else(overflow)
        }
        (Value::Uint(a), Value::Uint(b)) => {
            if *b == 0 && matches!(function, "_/_" | "_%_") {
                return Err(by_zero(function));
            }
            let result = match function {
                "_+_" => a.checked_add(*b),
                "_-_" => a.checked_sub(*b),
                "_*_" => a.checked_mul(*b),
                "_/_" => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            result.map(Value::Uint).ok_or_else(|| "unsigned integer overflow".to_owned())
        }
        (Value::Double(a), Value::Double(b)) if function != "_%_" => {
            Ok(Value::Double(match function {
                "_+_" => a + b,
                "_-_" => a - b,
                "_*_" => a * b,
                _ => a / b,
            }))
        }
        (Value::Text(a), Value::Text(b)) if function == "_+_" => {
            cost.spend_text(a.len() + b.len())?;
            Ok(Value::Text(format!("{a}{b}").into()))
        }
        (Value::Bytes(a), Value::Bytes(b)) if function == "_+_" => {
            cost.spend_text(a.len() + b.len())?;
            Ok(Value::Bytes([a.as_ref(), b.as_ref()].concat().into()))
        }
        (Value::Timestamp(_) | Value::Duration(_), _) => time::arithmetic(function, left, right),
        _ => match (left.items(), right.items()) {
            (Some(a), Some(b)) if function == "_+_" => {
                if let Some(shape) = left.list_shape() {
                    return merged(left, right, shape, cost);
                }
                let length = left.size().unwrap_or_default() + right.size().unwrap_or_default();
                cost.spend(length as u64)?;
                Ok(Value::List(Rc::new(a.chain(b).collect())))
            }
            _ if knows(left, function) => no_such_overload(),
            _ => Err(format!("no such overload: {function}")),
        },
    }
}

/// The sum of two lists, of which the first has a schema. A set takes only new items, a map
/// replaces those with the same keys.
fn merged<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    shape: &'a Shape,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    let (Some(items), Some(added)) = (left.items(), right.items()) else {
        return no_such_overload();
    };
    let mut all: Vec<Value<'a>> = items.collect();
    for item in added {
        cost.spend(1)?;
        if shape.list == ListType::Atomic {
            all.push(item);
            continue;
        }
        let identity = item.identity(&shape.list);
        let mut place = None;
        for (at, known) in all.iter().enumerate() {
            if same_identity(&known.identity(&shape.list), &identity, cost)? {
                place = Some(at);
                break;
            }
        }
        match place.and_then(|place| all.get_mut(place)) {
            Some(known) => *known = item,
            None => all.push(item),
        }
    }
    Ok(Value::Merged(Rc::new(all), shape))
}

fn by_zero(function: &str) -> String {
    if function == "_/_" { "division by zero" } else { "modulus by zero" }.to_owned()
}

/// Whether the operator supports the type of the left operand.
fn knows(left: &Value<'_>, function: &str) -> bool {
    match left {
        Value::Int(_) | Value::Uint(_) => true,
        Value::Double(_) => function != "_%_",
        Value::Text(_) | Value::Bytes(_) => function == "_+_",
        list if list.is_list() => function == "_+_",
        Value::Timestamp(_) | Value::Duration(_) => matches!(function, "_+_" | "_-_"),
        _ => false,
    }
}

pub(super) fn convert<'a>(function: &str, value: &Value<'a>) -> Outcome<'a> {
    let fails =
        |to: &str| Err(format!("type conversion error from '{}' to '{to}'", value.type_name()));
    match (function, value) {
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("double", Value::Double(_))
        | ("int", Value::Int(_))
        | ("uint", Value::Uint(_))
        | ("string", Value::Text(_))
        | ("timestamp", Value::Timestamp(_))
        | ("duration", Value::Duration(_)) => Ok(value.clone()),
        ("bool", Value::Text(text)) => {
            num::parse_bool(text.as_bytes()).map_or_else(|_| fails("bool"), |b| Ok(Value::Bool(b)))
        }
        ("bytes", Value::Text(text)) => Ok(Value::Bytes(text.as_bytes().into())),
        ("double", Value::Int(int)) => Ok(Value::Double(*int as f64)),
        ("double", Value::Uint(uint)) => Ok(Value::Double(*uint as f64)),
        ("double", Value::Text(text)) => {
            let double = num::parse_float(text.as_bytes());
            double.map_or_else(|_| fails("double"), |double| Ok(Value::Double(double)))
        }
        ("int", Value::Double(double)) => {
            // Both ends of the range are refused, because they may be rounded from numbers outside
            // of it.
            let fits = *double > i64::MIN as f64 && *double < i64::MAX as f64;
            if fits { Ok(Value::Int(*double as i64)) } else { Err(overflow()) }
        }
        ("int", Value::Uint(uint)) => i64::try_from(*uint).map(Value::Int).map_err(|_| overflow()),
        ("int", Value::Text(text)) => {
            let int = num::parse_int(text.as_bytes());
            int.map_or_else(|_| fails("int"), |int| Ok(Value::Int(int)))
        }
        ("int", Value::Timestamp(nanos)) => Ok(Value::Int(nanos.div_euclid(1_000_000_000) as i64)),
        ("int", Value::Duration(nanos)) => Ok(Value::Int(*nanos)),
        ("uint", Value::Int(int)) => {
            u64::try_from(*int).map(Value::Uint).map_err(|_| "unsigned integer overflow".to_owned())
        }
        ("uint", Value::Double(double)) => {
            let fits = *double >= 0.0 && *double < u64::MAX as f64;
            if fits {
                Ok(Value::Uint(*double as u64))
            } else {
                Err("unsigned integer overflow".to_owned())
            }
        }
        // Unlike for an integer, a sign is not allowed.
        ("uint", Value::Text(text)) if text.starts_with('+') => fails("uint"),
        ("uint", Value::Text(text)) => {
            text.parse().map_or_else(|_| fails("uint"), |uint| Ok(Value::Uint(uint)))
        }
        ("string", Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Text(text.into())),
            Err(_) => Err("invalid UTF-8 in bytes, cannot convert to string".to_owned()),
        },
        ("string", Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
            Ok(Value::Text(show(value).into()))
        }
        ("string" | "timestamp" | "duration", value) => time::convert(function, value),
        _ => Err(format!("no such overload: {function}({})", value.type_name())),
    }
}
