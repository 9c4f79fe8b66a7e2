//! Integers and doubles: conversion, arithmetic, rounding and sequences.

use super::args::{any, int, made, reserve_items, text};
use super::cast::{atoi, sign, to_float64, to_int64};
use super::random;
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{List, Value};

const DIVIDE: &str = "runtime error: integer divide by zero";

pub(super) fn functions() -> Vec<Func> {
    const ANY: &[Type] = &[Type::Any];
    const TWO: &[Type] = &[Type::Any, Type::Any];
    let max = |_: &mut Call<'_>, args: &[Value]| Ok(extreme(args, i64::max));
    let mut functions = vec![
        Func::new("int", ANY, Type::INT, |_, args| Ok(Value::int(to_int64(any(args, 0))))),
        Func::new("int64", ANY, Type::INT64, |_, args| Ok(Value::int64(to_int64(any(args, 0))))),
        Func::new("float64", ANY, Type::Float64, |_, args| Ok(to_float64(any(args, 0)).into())),
        Func::new("atoi", &[Type::String], Type::INT, |_, args| {
            Ok(Value::int(atoi(text(args, 0))))
        }),
        Func::new("toDecimal", ANY, Type::INT64, |call, args| {
            let text = call.display(any(args, 0))?;
            Ok(Value::int64(to_decimal(&text)))
        }),
        Func::new("add1", ANY, Type::INT64, |_, args| {
            Ok(Value::int64(to_int64(any(args, 0)).wrapping_add(1)))
        }),
        Func::variadic("add", ANY, Type::INT64, |_, args| {
            Ok(Value::int64(args.iter().map(to_int64).fold(0, i64::wrapping_add)))
        }),
        Func::variadic("mul", TWO, Type::INT64, |_, args| {
            Ok(Value::int64(args.iter().map(to_int64).fold(1, i64::wrapping_mul)))
        }),
        Func::new("sub", TWO, Type::INT64, |_, args| {
            Ok(Value::int64(to_int64(any(args, 0)).wrapping_sub(to_int64(any(args, 1)))))
        }),
        Func::new("div", TWO, Type::INT64, |_, args| divide(args, i64::wrapping_div)),
        Func::new("mod", TWO, Type::INT64, |_, args| divide(args, i64::wrapping_rem)),
        Func::variadic("max", TWO, Type::INT64, max),
        Func::variadic("biggest", TWO, Type::INT64, max),
        Func::variadic("min", TWO, Type::INT64, |_, args| Ok(extreme(args, i64::min))),
        Func::variadic("maxf", TWO, Type::Float64, |_, args| Ok(extreme_float(args, go_max))),
        Func::variadic("minf", TWO, Type::Float64, |_, args| {
            Ok(extreme_float(args, |a, b| -go_max(-a, -b)))
        }),
        Func::new("floor", ANY, Type::Float64, |_, args| {
            Ok(to_float64(any(args, 0)).floor().into())
        }),
        Func::new("ceil", ANY, Type::Float64, |_, args| Ok(to_float64(any(args, 0)).ceil().into())),
        Func::variadic(
            "round",
            &[Type::Any, Type::INT, Type::Float64],
            Type::Float64,
            |_, args| Ok(round(args).into()),
        ),
        Func::new("until", &[Type::INT], Type::INTS, |call, args| {
            let count = int(args, 0);
            ints(call, range(0, count, if count < 0 { -1 } else { 1 }))
        }),
        Func::new("untilStep", &[Type::INT, Type::INT, Type::INT], Type::INTS, |call, args| {
            ints(call, range(int(args, 0), int(args, 1), int(args, 2)))
        }),
        Func::variadic("seq", &[Type::INT], Type::String, seq),
        Func::new("randInt", &[Type::INT, Type::INT], Type::INT, |call, args| {
            let (low, high) = (int(args, 0), int(args, 1));
            let size = high.wrapping_sub(low);
            Ok(Value::int(random::intn(call.host(), size)?.wrapping_add(low)))
        }),
    ];
    functions.extend(super::decimal::functions());
    functions
}

/// A text, read as an octal number.
fn to_decimal(text: &[u8]) -> i64 {
    let (negative, digits) = sign(text);
    let mut number = if digits.is_empty() { None } else { Some(0_i128) };
    for byte in digits {
        number = match (number, byte) {
            (Some(number), b'0'..=b'7') => {
                number.checked_mul(8).map(|n| n + i128::from(byte - b'0'))
            }
            _ => None,
        };
    }
    let signed = number.and_then(|n| i64::try_from(if negative { -n } else { n }).ok());
    signed.unwrap_or(0)
}

fn divide(args: &[Value], operation: impl Fn(i64, i64) -> i64) -> Result<Value, Failure> {
    match (to_int64(any(args, 0)), to_int64(any(args, 1))) {
        (_, 0) => Err(Failure::new(DIVIDE)),
        (a, b) => Ok(Value::int64(operation(a, b))),
    }
}

fn extreme(args: &[Value], pick: fn(i64, i64) -> i64) -> Value {
    Value::int64(args.iter().map(to_int64).reduce(pick).unwrap_or(0))
}

fn extreme_float(args: &[Value], pick: fn(f64, f64) -> f64) -> Value {
    args.iter().map(to_float64).reduce(pick).unwrap_or(0.0).into()
}

/// `math.Max`: infinity wins over NaN, NaN over everything else, and zero over minus zero.
fn go_max(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == 0.0 && b == 0.0 {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

fn round(args: &[Value]) -> f64 {
    let on = match args.get(2) {
        Some(Value::Float(on)) => *on,
        _ => 0.5,
    };
    let power = power_of_ten(int(args, 1));
    let digit = power * to_float64(any(args, 0));
    let rounded = if digit.fract() >= on { digit.ceil() } else { digit.floor() };
    rounded / power
}

/// `math.Pow(10, n)` with the rounding errors that Go's repeated squaring has.
fn power_of_ten(exponent: i64) -> f64 {
    let (mut result, mut result_exponent) = (1.0_f64, 0_i64);
    // Ten is 0.625 times two to the fourth.
    let (mut factor, mut factor_exponent) = (0.625_f64, 4_i64);
    let mut rest = exponent.unsigned_abs();
    while rest != 0 {
        if !(-4096..=4096).contains(&factor_exponent) {
            result_exponent += factor_exponent;
            break;
        }
        if rest & 1 == 1 {
            result *= factor;
            result_exponent += factor_exponent;
        }
        factor *= factor;
        factor_exponent *= 2;
        if factor < 0.5 {
            factor += factor;
            factor_exponent -= 1;
        }
        rest >>= 1;
    }
    if exponent < 0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    scale(result, result_exponent)
}

/// A number near one times a power of two. Only the last step can round.
fn scale(number: f64, exponent: i64) -> f64 {
    let half = (exponent.clamp(-2200, 2200) / 2) as i32;
    let rest = exponent.clamp(-2200, 2200) as i32 - half;
    if exponent > -1000 && exponent < 1000 {
        return number * 2_f64.powi(exponent as i32);
    }
    number * 2_f64.powi(half) * 2_f64.powi(rest)
}

/// The numbers from a start to a stop, which is not one of them.
fn range(start: i64, stop: i64, step: i64) -> (i64, u64, i64) {
    let distance = i128::from(stop) - i128::from(start);
    let step_wide = i128::from(step);
    let runs = if distance < 0 { step < 0 } else { step > 0 };
    let count = if runs { (distance.abs() + step_wide.abs() - 1) / step_wide.abs() } else { 0 };
    (start, u64::try_from(count).unwrap_or(u64::MAX), step)
}

fn numbers((start, count, step): (i64, u64, i64)) -> impl Iterator<Item = i64> {
    (0..count).map(move |at| start.wrapping_add(at.cast_signed().wrapping_mul(step)))
}

fn ints(call: &mut Call<'_>, range: (i64, u64, i64)) -> Result<Value, Failure> {
    reserve_items(call, range.1)?;
    Ok(Value::List(List::new(&Type::INT, numbers(range).map(Value::int).collect())))
}

fn seq(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let number = |at| int(args, at);
    let range = match args.len() {
        1 => {
            let step = if number(0) < 1 { -1 } else { 1 };
            range(1, number(0).wrapping_add(step), step)
        }
        2 => {
            let step = if number(1) < number(0) { -1 } else { 1 };
            range(number(0), number(1).wrapping_add(step), step)
        }
        3 if number(2) < number(0) && number(1) > 0 => return Ok(Value::text("")),
        3 => {
            let beyond = if number(2) < number(0) { -1 } else { 1 };
            range(number(0), number(2).wrapping_add(beyond), number(1))
        }
        _ => return Ok(Value::text("")),
    };
    call.spend(range.1)?;
    call.reserve(range.1.saturating_mul(2))?;
    let mut out = String::new();
    for number in numbers(range) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&number.to_string());
    }
    made(call, out)
}
