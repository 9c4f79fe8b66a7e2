//! Functions on strings.

use biplane_go::text::{to_lower, to_upper};
use memchr::memmem;

use super::args::{ITEM, any, int, made, text};
use super::{case, text as algorithms};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{List, Map, Text, Value};

type Body = fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure>;

const ONE: &[Type] = &[Type::String];
const TWO: &[Type] = &[Type::String, Type::String];
const COUNTED: &[Type] = &[Type::INT, Type::String];
const ANYTHING: &[Type] = &[Type::Any];

pub(super) fn functions() -> Vec<Func> {
    let trim_all: Body = |call, args| {
        let cutset: Vec<char> = algorithms::chars(text(args, 0)).collect();
        call.spend((cutset.len() as u64).saturating_mul(text(args, 1).len() as u64) / 64)?;
        made(call, algorithms::trim(text(args, 1), |c| cutset.contains(&c)))
    };
    let of_text: [(&'static str, Body); 13] = [
        ("trim", |call, args| made(call, algorithms::trim(text(args, 0), char::is_whitespace))),
        ("upper", |call, args| made(call, to_upper(text(args, 0)))),
        ("lower", |call, args| made(call, to_lower(text(args, 0)))),
        ("title", |call, args| made(call, algorithms::title(text(args, 0)))),
        ("untitle", |call, args| made(call, algorithms::untitle(text(args, 0)))),
        ("swapcase", |call, args| made(call, algorithms::swap_case(text(args, 0)))),
        ("nospace", |call, args| made(call, algorithms::no_space(text(args, 0)))),
        ("initials", |call, args| made(call, algorithms::initials(text(args, 0)))),
        ("camelcase", |call, args| made(call, case::camel(text(args, 0)))),
        ("snakecase", |call, args| made(call, case::separated(text(args, 0), b'_'))),
        ("kebabcase", |call, args| made(call, case::separated(text(args, 0), b'-'))),
        ("hello", |_, _| Ok(Value::text("Hello!"))),
        ("fail", |_, args| Err(Failure::new(String::from_utf8_lossy(text(args, 0))))),
    ];
    let mut functions: Vec<Func> = of_text
        .into_iter()
        .map(|(name, body)| {
            Func::new(name, if name == "hello" { &[] } else { ONE }, Type::String, body)
        })
        .collect();
    functions.extend([
        Func::new("trimAll", TWO, Type::String, trim_all),
        Func::new("trimall", TWO, Type::String, trim_all),
        Func::new("trimPrefix", TWO, Type::String, |_, args| {
            let whole = text(args, 1);
            Ok(Value::text(whole.strip_prefix(text(args, 0)).unwrap_or(whole)))
        }),
        Func::new("trimSuffix", TWO, Type::String, |_, args| {
            let whole = text(args, 1);
            Ok(Value::text(whole.strip_suffix(text(args, 0)).unwrap_or(whole)))
        }),
        Func::new("contains", TWO, Type::Bool, |_, args| {
            Ok(memmem::find(text(args, 1), text(args, 0)).is_some().into())
        }),
        Func::new("hasPrefix", TWO, Type::Bool, |_, args| {
            Ok(text(args, 1).starts_with(text(args, 0)).into())
        }),
        Func::new("hasSuffix", TWO, Type::Bool, |_, args| {
            Ok(text(args, 1).ends_with(text(args, 0)).into())
        }),
        Func::new("repeat", COUNTED, Type::String, |call, args| {
            let repeated = repeat(call, text(args, 1), int(args, 0), 1)?;
            Ok(Value::text(repeated))
        }),
        Func::new("substr", &[Type::INT, Type::INT, Type::String], Type::String, substr),
        Func::new("trunc", COUNTED, Type::String, |_, args| {
            Ok(Value::text(trunc(int(args, 0), text(args, 1))))
        }),
        Func::new("abbrev", COUNTED, Type::String, |call, args| {
            let (width, whole) = (int(args, 0), text(args, 1));
            let short =
                if width < 4 { None } else { Some(algorithms::abbreviate(whole, 0, width)) };
            made(call, short.unwrap_or_else(|| whole.to_vec()))
        }),
        Func::new("abbrevboth", &[Type::INT, Type::INT, Type::String], Type::String, abbrev_both),
        Func::new("wrap", COUNTED, Type::String, |call, args| {
            wrap(call, text(args, 1), int(args, 0), b"\n", false)
        }),
        Func::new("wrapWith", &[Type::INT, Type::String, Type::String], Type::String, wrap_with),
        Func::variadic("quote", ANYTHING, Type::String, |call, args| {
            join_known(call, args, |call, value| {
                let text = to_string(call, value)?;
                Ok(biplane_go::fmt::quote_bytes(&text).into_bytes())
            })
        }),
        Func::variadic("squote", ANYTHING, Type::String, |call, args| {
            join_known(call, args, |call, value| {
                Ok([b"'", call.display(value)?.as_slice(), b"'"].concat())
            })
        }),
        Func::variadic("cat", ANYTHING, Type::String, |call, args| {
            join_known(call, args, Call::display)
        }),
        Func::new("indent", COUNTED, Type::String, |call, args| {
            Ok(Value::text(indent(call, b"", text(args, 1), int(args, 0))?))
        }),
        Func::new("nindent", COUNTED, Type::String, |call, args| {
            Ok(Value::text(indent(call, b"\n", text(args, 1), int(args, 0))?))
        }),
        Func::new("replace", &[Type::String, Type::String, Type::String], Type::String, replace),
        Func::new("plural", &[Type::String, Type::String, Type::INT], Type::String, |_, args| {
            let chosen = usize::from(int(args, 2) != 1);
            Ok(any(args, chosen).clone())
        }),
        Func::new("toString", ANYTHING, Type::String, |call, args| {
            Ok(Value::text(to_string(call, any(args, 0))?))
        }),
        Func::new("toStrings", ANYTHING, Type::STRINGS, |call, args| {
            Ok(Value::List(to_strings(call, any(args, 0))?))
        }),
        Func::new("join", &[Type::String, Type::Any], Type::String, join),
        Func::new("sortAlpha", ANYTHING, Type::STRINGS, sort_alpha),
        Func::new("split", TWO, Type::STRING_MAP, |call, args| {
            numbered(call, text(args, 0), text(args, 1), None)
        }),
        Func::new(
            "splitn",
            &[Type::String, Type::INT, Type::String],
            Type::STRING_MAP,
            |call, args| {
                numbered(call, text(args, 0), text(args, 2), usize::try_from(int(args, 1)).ok())
            },
        ),
        Func::new("splitList", TWO, Type::STRINGS, |call, args| {
            let (separator, whole) = (text(args, 0), text(args, 1));
            reserve_parts(call, whole, separator, None)?;
            Ok(Value::strings(algorithms::split(whole, separator, None)))
        }),
    ]);
    functions
}

/// A value as `toString` prints it: bytes are text.
pub(super) fn to_string(call: &mut Call<'_>, value: &Value) -> Result<Vec<u8>, Failure> {
    if let Value::Str(text) = value {
        call.reserve(text.len() as u64)?;
    }
    match value.as_byte_slice() {
        Some(bytes) => {
            call.reserve(bytes.len() as u64)?;
            Ok(bytes)
        }
        None => call.display(value),
    }
}

/// The strings of a list. What is not a list is one string.
pub(super) fn to_strings(call: &mut Call<'_>, value: &Value) -> Result<List, Failure> {
    let items = match value {
        Value::List(list) if *list.element() == Type::String => return Ok(list.clone()),
        Value::List(list) => {
            let known: Vec<Value> = list.to_vec();
            call.spend(known.len() as u64)?;
            let known = known.iter().filter(|item| !matches!(item, Value::Nil));
            known
                .map(|item| Ok(Value::text(to_string(call, item)?)))
                .collect::<Result<_, Failure>>()?
        }
        Value::Nil => Vec::new(),
        value => vec![Value::text(to_string(call, value)?)],
    };
    call.reserve(items.len() as u64 * ITEM)?;
    Ok(List::new(&Type::String, items))
}

fn size(value: &Value) -> u64 {
    if let Value::Str(text) = value { text.len() as u64 } else { 0 }
}

/// A text several times. `overhead` more bytes are made per copy.
fn repeat(
    call: &mut Call<'_>,
    piece: &[u8],
    count: i64,
    overhead: u64,
) -> Result<Vec<u8>, Failure> {
    let Ok(copies) = u64::try_from(count) else {
        return Err(Failure::new("strings: negative Repeat count"));
    };
    let total =
        (piece.len() as u64).checked_mul(copies).filter(|total| i64::try_from(*total).is_ok());
    let Some(total) = total else {
        return Err(Failure::new("strings: Repeat output length overflow"));
    };
    call.reserve(total.saturating_add(overhead))?;
    Ok(if total == 0 { Vec::new() } else { piece.repeat(copies as usize) })
}

fn bounds(text: &str) -> Failure {
    Failure::new(format!("runtime error: slice bounds out of range {text}"))
}

fn substr(_: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let (start, end, whole) = (int(args, 0), int(args, 1), text(args, 2));
    let length = whole.len().cast_signed() as i64;
    let part = |from: i64, to: i64| whole.get(from as usize..to as usize).unwrap_or_default();
    if start < 0 {
        return match end {
            end if end < 0 => Err(bounds(&format!("[:{end}]"))),
            end if end > length => Err(bounds(&format!("[:{end}] with length {length}"))),
            end => Ok(Value::text(part(0, end))),
        };
    }
    let end = if end < 0 || end > length { length } else { end };
    if start > end {
        return Err(bounds(&format!("[{start}:{end}]")));
    }
    Ok(Value::text(part(start, end)))
}

/// The first bytes, or the last ones for a negative number.
fn trunc(count: i64, whole: &[u8]) -> &[u8] {
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let part = if count < 0 {
        whole.len().checked_sub(size).filter(|at| *at > 0).and_then(|at| whole.get(at..))
    } else {
        whole.get(..size)
    };
    part.unwrap_or(whole)
}

fn abbrev_both(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let (left, width, whole) = (int(args, 0), int(args, 1), text(args, 2));
    if width < 4 || (left > 0 && width < 7) {
        return Ok(Value::text(whole));
    }
    made(call, algorithms::abbreviate(whole, left, width))
}

fn wrap_with(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let separator = text(args, 1);
    let separator = if separator.is_empty() { b"\n" } else { separator };
    wrap(call, text(args, 2), int(args, 0), separator, true)
}

fn wrap(
    call: &mut Call<'_>,
    whole: &[u8],
    width: i64,
    separator: &[u8],
    cut: bool,
) -> Result<Value, Failure> {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let length = whole.len() as u64;
    // Words can be shorter than the lines: at worst there is a break at every byte.
    let breaks = if cut && !whole.contains(&b' ') { length / width as u64 } else { length };
    call.spend(length)?;
    call.reserve(length.saturating_add(breaks.saturating_mul(separator.len() as u64)))?;
    Ok(Value::text(algorithms::wrap(whole, width, separator, cut)))
}

/// The texts of all arguments but nil, with spaces between them.
fn join_known<'a>(
    call: &mut Call<'a>,
    args: &[Value],
    show: impl Fn(&mut Call<'a>, &Value) -> Result<Vec<u8>, Failure>,
) -> Result<Value, Failure> {
    let known = args.iter().filter(|value| !matches!(value, Value::Nil));
    let texts = known.map(|value| show(call, value)).collect::<Result<Vec<_>, _>>()?;
    made(call, texts.join(&b' '))
}

/// The text with spaces in front of every line, behind `before`.
fn indent(
    call: &mut Call<'_>,
    before: &[u8],
    whole: &[u8],
    spaces: i64,
) -> Result<Vec<u8>, Failure> {
    let pad = repeat(call, b" ", spaces, whole.len() as u64)?;
    let breaks = memchr::memchr_iter(b'\n', whole).count();
    call.reserve((breaks as u64).saturating_mul(pad.len() as u64))?;
    let mut out =
        Vec::with_capacity(before.len() + whole.len() + (breaks + 1).saturating_mul(pad.len()));
    out.extend_from_slice(before);
    out.extend_from_slice(&pad);
    let mut rest = whole;
    while let Some((line, below)) =
        memchr::memchr(b'\n', rest).and_then(|at| rest.split_at_checked(at + 1))
    {
        out.extend_from_slice(line);
        out.extend_from_slice(&pad);
        rest = below;
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn replace(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let (old, new, whole) = (text(args, 0), text(args, 1), text(args, 2));
    let count = algorithms::count(whole, old) as u64;
    call.reserve((whole.len() as u64).saturating_add(count.saturating_mul(new.len() as u64)))?;
    Ok(Value::text(algorithms::replace(whole, old, new)))
}

fn join(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let separator = text(args, 0);
    let list = to_strings(call, any(args, 1))?;
    let items = list.items();
    let bytes: u64 = items.iter().map(|item| size(item) + separator.len() as u64).sum();
    call.reserve(bytes)?;
    let texts: Vec<&[u8]> = items
        .iter()
        .filter_map(|item| match item {
            Value::Str(text) => Some(text.as_bytes()),
            _ => None,
        })
        .collect();
    Ok(Value::text(texts.join(separator)))
}

/// Sorts the strings of a list. A list of strings is sorted in place.
fn sort_alpha(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let value = any(args, 0);
    if !matches!(value, Value::List(_)) {
        return Ok(Value::strings([to_string(call, value)?]));
    }
    let list = to_strings(call, value)?;
    call.spend(list.len() as u64)?;
    list.update(|items| {
        items.sort_by(|a, b| match (a, b) {
            (Value::Str(a), Value::Str(b)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        });
    });
    Ok(Value::List(list))
}

fn reserve_parts(
    call: &mut Call<'_>,
    whole: &[u8],
    separator: &[u8],
    limit: Option<usize>,
) -> Result<(), Failure> {
    let count =
        (algorithms::count(whole, separator) as u64 + 1).min(limit.unwrap_or(usize::MAX) as u64);
    super::args::reserve_items(call, count)?;
    call.reserve(whole.len() as u64)
}

fn numbered(
    call: &mut Call<'_>,
    separator: &[u8],
    whole: &[u8],
    limit: Option<usize>,
) -> Result<Value, Failure> {
    reserve_parts(call, whole, separator, limit)?;
    let parts = algorithms::split(whole, separator, limit);
    let entries = parts.into_iter().enumerate();
    let entries = entries.map(|(at, part)| (Text::from(format!("_{at}")), Value::text(part)));
    Ok(Value::Map(Map::typed(&Type::String, entries)))
}
