//! Comparing and showing JSON values the way the API server's merge does.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A number as the API server holds it: whole numbers of 64 bits, and doubles.
#[derive(Clone, Copy)]
enum Num {
    Int(i64),
    Float(f64),
}

fn num(number: &Number) -> Num {
    match number.as_i64() {
        Some(int) => Num::Int(int),
        None => Num::Float(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// The same value, where a whole double equals the integer.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((ak, av), (bk, bv))| ak == bk && equal(av, bv))
        }
        _ => a == b,
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (num(a), num(b)) {
        (Num::Int(a), Num::Int(b)) => a.cmp(&b),
        (Num::Int(a), Num::Float(b)) => (a as f64).partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Num::Float(a), Num::Int(b)) => a.partial_cmp(&(b as f64)).unwrap_or(Ordering::Equal),
        (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// Numbers, strings, booleans, lists, objects, null: in this order, and by content within.
pub fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare(a, b))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .zip(b)
            .map(|((ak, av), (bk, bv))| ak.cmp(bk).then_with(|| compare(av, bv)))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// A value inside a path that is shown to people.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k}={}", shown(v))).collect::<Vec<_>>().concat()
        }
        Value::Bool(_) | Value::Number(_) => plain(value),
    }
}

/// Text in double quotes with Go's escapes.
pub fn quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A value as Go prints it with `%v`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match num(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(float) => go_float(float),
        },
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(k, v)| format!("{k}:{}", plain(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

/// A double as Go's `%v` writes it: shortest digits, exponents beyond 21 digits or below 1e-4.
pub fn go_float(float: f64) -> String {
    if float == 0.0 || !float.is_finite() {
        return match float {
            f if f.is_nan() => "NaN".into(),
            f if f.is_infinite() => if f > 0.0 { "+Inf" } else { "-Inf" }.into(),
            f if f.is_sign_negative() => "-0".into(),
            _ => "0".into(),
        };
    }
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// JSON with `<`, `>` and `&` escaped, as the API server writes values inside path elements.
pub fn escaped_json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // These characters can only be inside strings, so plain replacement keeps the JSON valid.
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}
