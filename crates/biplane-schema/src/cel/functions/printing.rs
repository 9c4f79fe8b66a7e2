//! The function `format`: values in a text.

use biplane_go::fmt::quote;
use biplane_go::fmt::{FloatVerb, format_float};

use super::super::cost::Cost;
use super::super::outcome::Outcome;
use super::super::value::Value;
use super::convert;
use super::results::string;

/// Digits after the point, unless the text says how many.
const PRECISION: usize = 6;

/// Replaces each `%` and its letter by the next value.
pub(super) fn format<'a>(text: &str, values: &Value<'a>, cost: &mut Cost<'_>) -> Outcome<'a> {
    let mut out = String::new();
    let mut next = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut verb = rest.next().ok_or("unexpected end of string")?;
        if verb == '%' {
            out.push('%');
            continue;
        }
        let mut precision = None;
        if verb == '.' {
            let mut digits = String::new();
            loop {
                verb = rest.next().ok_or("could not find end of precision specifier")?;
                if !verb.is_ascii_digit() {
                    break;
                }
                digits.push(verb);
            }
            precision = digits.parse::<usize>().ok();
        }
        let value = values.item(next).ok_or_else(|| format!("index {next} out of range"))?;
        next += 1;
        if let Value::Failed(reason) = value {
            return Err(reason.to_string());
        }
        let shown = one(verb, precision, &value)?;
        cost.spend_text(shown.len())?;
        out.push_str(&shown);
    }
    Ok(string(out))
}

fn one(verb: char, precision: Option<usize>, value: &Value<'_>) -> Result<String, String> {
    let wrong = |clause: &str, wanted: &str| {
        Err(format!(
            "error during formatting: {clause} can only be used on {wanted}, was given {}",
            value.type_name()
        ))
    };
    let precision = precision.unwrap_or(PRECISION).min(1000);
    match (verb, value) {
        ('s', _) => shown(value),
        ('d', Value::Int(int)) => Ok(int.to_string()),
        ('d', Value::Uint(uint)) => Ok(uint.to_string()),
        ('d', _) => wrong("decimal clause", "integers"),
        ('f', _) => match double(value) {
            Some(double) => Ok(grouped(double, precision)),
            None => wrong("fixed-point clause", "doubles"),
        },
        ('e', _) => match double(value) {
            Some(double) => Ok(scientific(double)),
            None => wrong("scientific clause", "doubles"),
        },
        ('b', Value::Int(int)) if *int < 0 => Ok(format!("-{:b}", int.unsigned_abs())),
        ('b', Value::Int(int)) => Ok(format!("{int:b}")),
        ('b', Value::Uint(uint)) => Ok(format!("{uint:b}")),
        ('b', Value::Bool(bool)) => Ok(if *bool { "1" } else { "0" }.to_owned()),
        ('b', _) => wrong("binary clause", "integers and bools"),
        ('x' | 'X', _) => match hex(value) {
            Some(hex) if verb == 'X' => Ok(hex.to_uppercase()),
            Some(hex) => Ok(hex),
            None => wrong("hex clause", "integers, byte buffers, and strings"),
        },
        ('o', Value::Int(int)) if *int < 0 => Ok(format!("-{:o}", int.unsigned_abs())),
        ('o', Value::Int(int)) => Ok(format!("{int:o}")),
        ('o', Value::Uint(uint)) => Ok(format!("{uint:o}")),
        ('o', _) => wrong("octal clause", "integers"),
        _ => Err(format!("unrecognized formatting clause \"{verb}\"")),
    }
}

fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(double) => Some(*double),
        Value::Text(text) => match text.as_ref() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn special(double: f64) -> Option<String> {
    if double.is_nan() {
        Some("NaN".to_owned())
    } else if double.is_infinite() {
        Some(if double > 0.0 { "∞" } else { "-∞" }.to_owned())
    } else {
        None
    }
}

/// A double with thousands in groups, as in American English.
fn grouped(double: f64, precision: usize) -> String {
    if let Some(special) = special(double) {
        return special;
    }
    let plain = format!("{double:.precision$}");
    let (sign, plain) = plain.strip_prefix('-').map_or(("", plain.as_str()), |rest| ("-", rest));
    let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
    let mut out = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A double with a power of ten in raised digits.
fn scientific(double: f64) -> String {
    if let Some(special) = special(double) {
        return special;
    }
    let plain = format_float(double, FloatVerb::Exponent, Some(PRECISION));
    let (number, exponent) = plain.split_once('e').unwrap_or((&plain, "+00"));
    let raised = exponent.chars().filter(|c| *c != '+').map(|c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => digit.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(digit),
    });
    format!("{number}×10{}", raised.collect::<String>())
}

fn hex(value: &Value<'_>) -> Option<String> {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half & 15)]);
    let bytes = |bytes: &[u8]| -> String {
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
    };
    Some(match value {
        Value::Int(int) if *int < 0 => format!("-{:x}", int.unsigned_abs()),
        Value::Int(int) => format!("{int:x}"),
        Value::Uint(uint) => format!("{uint:x}"),
        Value::Text(text) => bytes(text.as_bytes()),
        Value::Bytes(data) => bytes(data),
        _ => return None,
    })
}

/// A value as `%s` shows it.
fn shown(value: &Value<'_>) -> Result<String, String> {
    if value.is_list() {
        let parts = value.items().into_iter().flatten().map(|item| inner(&item));
        return Ok(format!("[{}]", parts.collect::<Result<Vec<_>, _>>()?.join(", ")));
    }
    if let Some(keys) = value.keys() {
        let mut entries = Vec::new();
        for key in keys {
            let name = match &key {
                Value::Text(text) => quote(text),
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) => shown(&key)?,
                other => {
                    return Err(format!(
                        "no formatting function for map key of type {}",
                        other.type_name()
                    ));
                }
            };
            let held = value.get(&key).unwrap_or(Value::Null);
            entries.push((name, inner(&held)?));
        }
        entries.sort();
        let entries: Vec<String> =
            entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
        return Ok(format!("{{{}}}", entries.join(", ")));
    }
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::Type(name) => Ok((*name).to_owned()),
        Value::Failed(reason) => Err(reason.to_string()),
        Value::Optional(_) | Value::Opaque(_) | Value::Raw(_) => Err(format!(
            "error during formatting: string clause can only be used on strings, bools, bytes, \
             ints, doubles, maps, lists, types, durations, and timestamps, was given {}",
            value.type_name()
        )),
        _ => match convert("string", value)? {
            Value::Text(text) => Ok(text.to_string()),
            other => Err(format!("could not convert argument of type {}", other.type_name())),
        },
    }
}

/// A value inside of a list or a map, as the language writes it.
fn inner(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::Text(text) => quote(text),
        Value::Bytes(_) => format!("b{}", quote(&shown(value)?)),
        Value::Timestamp(_) => format!("timestamp({})", quote(&shown(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&shown(value)?)),
        Value::Double(double) if double.is_finite() => format!("{double:.PRECISION$}"),
        Value::Double(double) => quote(&special(*double).unwrap_or_default()),
        _ => shown(value)?,
    })
}
