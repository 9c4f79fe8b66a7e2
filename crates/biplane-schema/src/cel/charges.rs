//! What Kubernetes counts for the calls of functions.

use super::ast::{CONVERSIONS, Expr, Kind, Literal};
use super::functions;
use super::opaque::Opaque;
use super::value::Value;

/// What it counts for making a list.
pub(super) const LIST: u64 = 10;
/// What it counts for making a map.
pub(super) const MAP: u64 = 30;

/// Whether the result of a call is known before the program runs, so that the call is free.
pub(super) fn is_folded(function: &str, args: &[Expr]) -> bool {
    match args {
        [only] => CONVERSIONS.contains(&function) && only.is_constant(),
        [_, list] => function == "@in" && matches!(list.kind, Kind::List(_)) && list.is_constant(),
        _ => false,
    }
}

/// The reason why a call with literals can never work.
pub(super) fn literal_fault(expression: &Expr) -> Option<String> {
    let searches = matches!(&expression.kind, Kind::Call { function, .. } if function != "matches");
    if let Some(pattern) = expression.literal_pattern().filter(|_| searches) {
        return biplane_go::regex::GoRegex::new(pattern).err().map(|error| error.to_string());
    }
    match &expression.kind {
        Kind::Call { function, target: None, args } if is_folded(function, args) => {
            let [Expr { kind: Kind::Literal(literal), .. }] = args.as_slice() else { return None };
            functions::convert(function, &literal.into()).err().filter(|_| {
                !matches!(literal, Literal::Type(_) | Literal::Null)
                    && !matches!(function.as_str(), "dyn" | "type")
            })
        }
        _ => None,
    }
}

fn size(value: Option<&Value<'_>>) -> u64 {
    value.and_then(Value::size).map_or(1, |size| size as u64)
}

/// A share of a size, rounded up.
fn share(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn tenth(size: u64) -> u64 {
    share(size, 0.1)
}

/// What it counts for a call with these arguments and this result.
pub(super) fn of_call(function: &str, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
    let arg = |place: usize| size(args.get(place));
    let is_text = |place: usize| matches!(args.get(place), Some(Value::Text(_) | Value::Bytes(_)));
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            args.first().map_or(0, traversal)
        }
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "cidr" | "isIP" | "isCIDR"
        | "quantity" | "isQuantity" | "semver" | "isSemver" | "startsWith" | "endsWith"
        | "strings.quote" | "format" => tenth(arg(0)),
        "ip" if is_text(0) => tenth(arg(0)),
        "replace" | "split" | "ip.isCanonical" => share(arg(0), 0.2),
        "join" => share(size(result), 0.2),
        "find" | "findAll" | "matches" => tenth(1 + arg(0)) * share(arg(1), 0.25),
        "containsIP" => tenth(2 * arg(0)) + if is_text(1) { tenth(arg(1)) } else { 0 },
        "containsCIDR" => {
            let parsed = if is_text(1) { tenth(arg(1)) } else { 0 };
            tenth(2 * arg(0)) + tenth(arg(0)) + 1 + parsed
        }
        "validate" => match args.first() {
            Some(Value::Opaque(opaque)) => match opaque.as_ref() {
                Opaque::Format(format) => tenth(1 + arg(1)) * format.cost,
                _ => 1,
            },
            _ => 1,
        },
        "slice" | "reverse" | "lists.range" => size(result) + 1 + LIST,
        "flatten" => {
            let depth = match args.get(1) {
                Some(Value::Int(depth)) => depth.unsigned_abs(),
                _ => 1,
            };
            arg(0).saturating_mul(depth) + 1 + LIST
        }
        "distinct" | "sort" => self_compared(args.first()),
        "lists.@sortByAssociatedKeys" => self_compared(args.get(1)),
        "sets.contains" | "sets.intersects" => 1 + arg(0) * arg(1),
        "sets.equivalent" => 1 + arg(0) * arg(1) * 2,
        "bytes" | "string" if is_text(0) && !same_type(function, args) => tenth(arg(0)),
        "@in" if args.get(1).is_some_and(Value::is_list) => arg(1),
        "_==_" | "_!=_" if matches!(args.first(), Some(Value::Opaque(_))) && function == "_==_" => {
            1
        }
        "_==_" | "_!=_" => tenth(arg(0).min(arg(1))),
        "_<_" | "_<=_" | "_>_" | "_>=_" if is_text(0) => tenth(arg(0).min(arg(1))),
        "_+_" if is_text(0) => tenth(arg(0) + arg(1)),
        "contains" => tenth(arg(0)) * tenth(arg(1)),
        _ => 1,
    }
}

/// Whether a conversion has nothing to do.
fn same_type(function: &str, args: &[Value<'_>]) -> bool {
    matches!((function, args), ("bytes", [Value::Bytes(_)]) | ("string", [Value::Text(_)]))
}

fn self_compared(list: Option<&Value<'_>>) -> u64 {
    let count = size(list);
    let first = list.and_then(|list| list.item(0));
    let factor = match first {
        None => return 1 + LIST,
        Some(Value::Text(_) | Value::Bytes(_)) => 2.1,
        Some(_) => 2.0,
    };
    (count.saturating_mul(count) as f64 * factor) as u64 + 1 + LIST
}

/// What it counts for walking through a value.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::Text(text) => (text.len() as f64 * 0.1) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * 0.1) as u64,
        list if list.is_list() => {
            list.items().into_iter().flatten().map(|item| traversal(&item)).sum()
        }
        other => match other.keys() {
            Some(keys) => {
                let inner = |key: &Value<'_>| other.get(key).map_or(0, |value| traversal(&value));
                keys.iter().map(|key| traversal(key) + inner(key)).sum()
            }
            None => 1,
        },
    }
}
