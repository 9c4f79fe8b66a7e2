//! The functions that Kubernetes adds to the language.

use std::rc::Rc;

use super::super::cost::Cost;
use super::super::opaque::{Cidr, Ip, NamedFormat, Opaque, Quantity, Semver, Url};
use super::super::outcome::{Outcome, no_such_overload};
use super::super::value::{Entries, Value};
use super::results::{string, strings};
use super::{Patterns, list, printing, text};

/// Calls a function with evaluated arguments. `None` if the language itself has the function.
pub(super) fn call<'a>(
    function: &str,
    args: &[Value<'a>],
    patterns: &mut Patterns<'_>,
    cost: &mut Cost<'_>,
) -> Option<Outcome<'a>> {
    Some(match (function, args) {
        ("string", [Value::Opaque(opaque)]) => match opaque.as_ref() {
            Opaque::Ip(ip) => Ok(string(ip.to_string())),
            Opaque::Cidr(cidr) => Ok(string(cidr.to_string())),
            _ => return None,
        },
        ("type", [Value::Opaque(opaque)]) => Ok(Value::Type(opaque.type_name())),
        ("optional.of", [value]) => Ok(Value::Optional(Some(Rc::new(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => {
            let held = (!is_zero(value)).then(|| Rc::new(value.clone()));
            Ok(Value::Optional(held))
        }
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.unwrap" | "unwrapOpt", [values]) => unwrap(values),
        ("value", [Value::Optional(held)]) => match held {
            Some(value) => Ok(value.as_ref().clone()),
            None => Err("optional.none() dereference".to_owned()),
        },
        ("hasValue", [Value::Optional(held)]) => Ok(Value::Bool(held.is_some())),
        ("first" | "last", [values]) => {
            let count = values.size().unwrap_or_default();
            let place = if function == "first" { 0 } else { count.wrapping_sub(1) };
            Ok(Value::Optional(values.item(place).map(Rc::new)))
        }
        ("cel.@mapInsert", [Value::Map(entries), rest @ ..]) => {
            insert(entries.as_ref().clone(), rest, cost).map(|entries| Value::Map(Rc::new(entries)))
        }
        ("find", [Value::Text(text), Value::Text(pattern)]) => {
            text::find(text, pattern, patterns, cost)
        }
        ("findAll", [Value::Text(text), Value::Text(pattern)]) => {
            text::find_all(text, pattern, usize::MAX, patterns, cost)
        }
        ("findAll", [Value::Text(text), Value::Text(pattern), Value::Int(limit)]) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            text::find_all(text, pattern, limit, patterns, cost)
        }
        ("format", [Value::Text(text), values]) if values.is_list() => {
            printing::format(text, values, cost)
        }
        _ => {
            return opaque(function, args)
                .or_else(|| text::call(function, args, cost))
                .or_else(|| list::call(function, args, cost));
        }
    })
}

fn made<'a>(opaque: Opaque) -> Value<'a> {
    Value::Opaque(Rc::new(opaque))
}

fn unwrap<'a>(values: &Value<'a>) -> Outcome<'a> {
    let Some(values) = values.items() else { return no_such_overload() };
    let held = values.filter_map(|value| match value {
        Value::Optional(held) => held.map(|held| held.as_ref().clone()),
        other => Some(other),
    });
    Ok(Value::List(Rc::new(held.collect())))
}

/// Adds entries to a map. Keys must be new.
pub(in crate::cel) fn insert<'a>(
    mut entries: Entries<'a>,
    added: &[Value<'a>],
    cost: &mut Cost<'_>,
) -> Result<Entries<'a>, String> {
    cost.spend(entries.len() as u64)?;
    let mut add = |key: Value<'a>, value: Value<'a>| {
        if entries.get(&key).is_some() {
            let key = super::super::outcome::show(&key);
            return Err(format!("insert failed: key {key} already exists"));
        }
        entries.set(key, value);
        Ok(())
    };
    match added {
        [key, value] => add(key.clone(), value.clone())?,
        [map] => {
            for key in map.keys().unwrap_or_default() {
                if let Some(value) = map.get(&key) {
                    add(key, value)?;
                }
            }
        }
        _ => return no_such_overload(),
    }
    Ok(entries)
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(bool) => !bool,
        Value::Int(int) => *int == 0,
        Value::Uint(uint) => *uint == 0,
        Value::Double(double) => *double == 0.0,
        Value::Duration(nanos) => *nanos == 0,
        Value::Optional(held) => held.is_none(),
        Value::Text(text) => text.is_empty(),
        Value::Opaque(_) | Value::Timestamp(_) | Value::Type(_) => false,
        other => other.size() == Some(0),
    }
}

fn opaque<'a>(function: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
    let parse = |what: Result<Opaque, String>| what.map(made);
    Some(match (function, args) {
        ("url", [Value::Text(text)]) => {
            let wrapped =
                |reason| format!("URL parse error during conversion from string: {reason}");
            parse(Url::parse(text).map(Opaque::Url).map_err(wrapped))
        }
        ("isURL", [Value::Text(text)]) => Ok(Value::Bool(Url::parse(text).is_ok())),
        ("quantity", [Value::Text(text)]) => parse(Quantity::parse(text).map(Opaque::Quantity)),
        ("isQuantity", [Value::Text(text)]) => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        ("ip", [Value::Text(text)]) => parse(Ip::parse(text).map(Opaque::Ip)),
        ("isIP", [Value::Text(text)]) => Ok(Value::Bool(Ip::parse(text).is_ok())),
        ("ip.isCanonical", [Value::Text(text)]) => {
            Ip::parse(text).map(|ip| Value::Bool(ip.to_string() == **text))
        }
        ("cidr", [Value::Text(text)]) => parse(Cidr::parse(text).map(Opaque::Cidr)),
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(Cidr::parse(text).is_ok())),
        ("semver", [Value::Text(text)] | [Value::Text(text), Value::Bool(false)]) => {
            parse(Semver::parse(text).map(Opaque::Semver))
        }
        ("semver", [Value::Text(text), Value::Bool(true)]) => {
            parse(Semver::parse_loosely(text).map(Opaque::Semver))
        }
        ("isSemver", [Value::Text(text)] | [Value::Text(text), Value::Bool(false)]) => {
            Ok(Value::Bool(Semver::parse(text).is_ok()))
        }
        ("isSemver", [Value::Text(text), Value::Bool(true)]) => {
            Ok(Value::Bool(Semver::parse_loosely(text).is_ok()))
        }
        ("format.named", [Value::Text(name)]) => {
            let format = NamedFormat::named(name);
            Ok(Value::Optional(format.map(|format| Rc::new(made(Opaque::Format(format))))))
        }
        (name, []) => {
            let format = NamedFormat::named(name.strip_prefix("format.")?)?;
            Ok(made(Opaque::Format(format)))
        }
        (_, [Value::Opaque(target), rest @ ..]) => return member(function, target, rest),
        _ => return None,
    })
}

fn member<'a>(function: &str, target: &Opaque, rest: &[Value<'a>]) -> Option<Outcome<'a>> {
    let other = match rest {
        [Value::Opaque(other)] => Some(other.as_ref()),
        _ => None,
    };
    Some(Ok(match (target, function, rest) {
        (Opaque::Url(url), "getScheme", []) => string(url.scheme()),
        (Opaque::Url(url), "getHost", []) => string(url.host()),
        (Opaque::Url(url), "getHostname", []) => string(url.hostname()),
        (Opaque::Url(url), "getPort", []) => string(url.port()),
        (Opaque::Url(url), "getEscapedPath", []) => string(url.escaped_path()),
        (Opaque::Url(url), "getQuery", []) => {
            let mut entries = Entries::default();
            for (name, values) in url.query() {
                entries.set(string(name), strings(values));
            }
            Value::Map(Rc::new(entries))
        }
        (Opaque::Quantity(quantity), _, _) => return amount(function, *quantity, rest, other),
        (Opaque::Ip(ip), "family", []) => Value::Int(ip.family()),
        (Opaque::Ip(ip), _, []) => Value::Bool(ip.is(function)),
        (Opaque::Cidr(cidr), "ip", []) => made(Opaque::Ip(cidr.ip())),
        (Opaque::Cidr(cidr), "masked", []) => made(Opaque::Cidr(cidr.masked())),
        (Opaque::Cidr(cidr), "prefixLength", []) => Value::Int(cidr.bits()),
        (Opaque::Cidr(cidr), "containsIP", [Value::Text(text)]) => match Ip::parse(text) {
            Ok(ip) => Value::Bool(cidr.contains(ip)),
            Err(_) => return Some(no_such_overload()),
        },
        (Opaque::Cidr(cidr), "containsCIDR", [Value::Text(text)]) => match Cidr::parse(text) {
            Ok(other) => Value::Bool(cidr.contains_network(other)),
            Err(reason) => return Some(Err(reason)),
        },
        (Opaque::Cidr(cidr), "containsIP", _) => match other {
            Some(Opaque::Ip(ip)) => Value::Bool(cidr.contains(*ip)),
            _ => return Some(no_such_overload()),
        },
        (Opaque::Cidr(cidr), "containsCIDR", _) => match other {
            Some(Opaque::Cidr(other)) => Value::Bool(cidr.contains_network(*other)),
            _ => return Some(no_such_overload()),
        },
        (Opaque::Semver(version), "major", []) => Value::Int(version.number(0)),
        (Opaque::Semver(version), "minor", []) => Value::Int(version.number(1)),
        (Opaque::Semver(version), "patch", []) => Value::Int(version.number(2)),
        (Opaque::Semver(version), _, _) => match other {
            Some(Opaque::Semver(other)) => return compared(function, version.order(other)),
            _ => return Some(no_such_overload()),
        },
        (Opaque::Format(format), "validate", [Value::Text(text)]) => {
            let problems = format.problems(text);
            let held = (!problems.is_empty()).then(|| Rc::new(strings(problems)));
            Value::Optional(held)
        }
        _ => return None,
    }))
}

fn compared<'a>(function: &str, order: std::cmp::Ordering) -> Option<Outcome<'a>> {
    Some(Ok(match function {
        "isLessThan" => Value::Bool(order.is_lt()),
        "isGreaterThan" => Value::Bool(order.is_gt()),
        "compareTo" => Value::Int(order as i64),
        _ => return None,
    }))
}

fn amount<'a>(
    function: &str,
    quantity: Quantity,
    rest: &[Value<'a>],
    other: Option<&Opaque>,
) -> Option<Outcome<'a>> {
    let other = match (rest, other) {
        ([Value::Int(int)], _) => Some(Quantity::whole(*int)),
        (_, Some(Opaque::Quantity(other))) => Some(*other),
        _ => None,
    };
    Some(Ok(match (function, other) {
        ("sign", None) => Value::Int(quantity.sign()),
        ("isInteger", None) => Value::Bool(quantity.integer().is_some()),
        ("asInteger", None) => match quantity.integer() {
            Some(whole) => Value::Int(whole),
            None => return Some(Err("cannot convert value to integer".to_owned())),
        },
        ("asApproximateFloat", None) => Value::Double(quantity.float()),
        ("add", Some(other)) => made(Opaque::Quantity(quantity.plus(other))),
        ("sub", Some(other)) => made(Opaque::Quantity(quantity.minus(other))),
        (function, Some(other)) => return compared(function, quantity.cmp(&other)),
        _ => return None,
    }))
}
