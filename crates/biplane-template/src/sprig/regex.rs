//! Functions on Go's regular expressions.

use biplane_go::regex::{GoRegex, RegexError};

use super::args::{int, made, reserve_items, text};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{List, Value};

type Body = fn(&mut Call<'_>, &GoRegex, &[Value]) -> Result<Value, Failure>;

const MATCH: &[Type] = &[Type::String, Type::String];
const LIMITED: &[Type] = &[Type::String, Type::String, Type::INT];
const REPLACE: &[Type] = &[Type::String, Type::String, Type::String];

/// How many steps of a search count as one step of a template.
const SEARCH_STEPS: u64 = 1000;

pub(super) fn functions() -> Vec<Func> {
    let is_match: Body =
        |_, regex, args| Ok(regex.is_match(text(args, 1)).map_err(unusable)?.into());
    let mut functions = vec![
        Func::new("regexMatch", MATCH, Type::Bool, move |call, args| match compile(call, args)? {
            Ok(regex) => is_match(call, &regex, args),
            Err(_) => Ok(false.into()),
        }),
        must("mustRegexMatch", MATCH, Type::Bool, is_match),
        Func::new("regexQuoteMeta", &[Type::String], Type::String, |call, args| {
            let mut out = Vec::with_capacity(text(args, 0).len());
            for byte in text(args, 0) {
                if br"\.+*?()|[]{}^$".contains(byte) {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
            made(call, out)
        }),
    ];
    let pairs: [(&str, &str, &[Type], Type, Body); 5] = [
        ("regexFind", "mustRegexFind", MATCH, Type::String, |_, regex, args| {
            let found = regex.group(text(args, 1), 0).map_err(unusable)?;
            Ok(Value::text(found.unwrap_or_default()))
        }),
        ("regexFindAll", "mustRegexFindAll", LIMITED, Type::STRINGS, find_all),
        ("regexReplaceAll", "mustRegexReplaceAll", REPLACE, Type::String, |call, regex, args| {
            let (whole, template) = (text(args, 1), text(args, 2));
            let groups = memchr::memchr_iter(b'$', template).count() as u64;
            reserve_replaced(call, regex, whole, template, groups)?;
            Ok(Value::text(regex.replace_all(whole, template).map_err(unusable)?))
        }),
        (
            "regexReplaceAllLiteral",
            "mustRegexReplaceAllLiteral",
            REPLACE,
            Type::String,
            |call, regex, args| {
                let (whole, replacement) = (text(args, 1), text(args, 2));
                reserve_replaced(call, regex, whole, replacement, 0)?;
                let out = regex.replace_all_literal(whole, replacement).map_err(unusable)?;
                Ok(Value::text(out))
            },
        ),
        ("regexSplit", "mustRegexSplit", LIMITED, Type::STRINGS, split),
    ];
    for (name, must_name, params, result, body) in pairs {
        functions.push(Func::new(name, params, result, move |call, args| {
            match compile(call, args)? {
                Ok(regex) => body(call, &regex, args),
                // Go's `MustCompile` panics with the pattern.
                Err(error) => {
                    Err(Failure::new(format!("regexp: Compile({}): {error}", quote(text(args, 0)))))
                }
            }
        }));
        functions.push(must(must_name, params, result, body));
    }
    functions
}

fn must(name: &'static str, params: &'static [Type], result: Type, body: Body) -> Func {
    Func::new(name, params, result, move |call, args| match compile(call, args)? {
        Ok(regex) => body(call, &regex, args),
        Err(error) => Err(Failure::new(error)),
    })
}

/// The pattern of the first argument. The inner error is Go's message.
fn compile(call: &mut Call<'_>, args: &[Value]) -> Result<Result<GoRegex, String>, Failure> {
    // Compiling takes much longer than an instruction, and matching is linear in the text.
    let size: u64 =
        args.iter().map(|arg| if let Value::Str(t) = arg { t.len() as u64 } else { 0 }).sum();
    call.spend(100 + size / 8)?;
    let pattern = text(args, 0);
    let pattern = match std::str::from_utf8(pattern) {
        Ok(pattern) => pattern,
        Err(error) => {
            let rest = pattern.get(error.valid_up_to()..).unwrap_or_default();
            let shown: String = super::text::chars(rest).collect();
            return Ok(Err(format!("error parsing regexp: invalid UTF-8: `{shown}`")));
        }
    };
    match GoRegex::new(pattern) {
        Ok(regex) => {
            call.reserve(regex.size() as u64)?;
            call.spend(regex.search_steps(text(args, 1).len()) / SEARCH_STEPS)?;
            Ok(Ok(regex))
        }
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// A pattern that is too large for the engine, which shows only when it is used.
#[allow(clippy::needless_pass_by_value)] // the signature of map_err
fn unusable(error: RegexError) -> Failure {
    Failure::new(error.to_string())
}

/// Go's quoting of a pattern: between backquotes, if possible.
fn quote(pattern: &[u8]) -> String {
    match std::str::from_utf8(pattern) {
        Ok(text) if biplane_go::fmt::can_backquote(pattern) => format!("`{text}`"),
        _ => biplane_go::fmt::quote_bytes(pattern),
    }
}

fn reserve_replaced(
    call: &mut Call<'_>,
    regex: &GoRegex,
    whole: &[u8],
    replacement: &[u8],
    groups: u64,
) -> Result<(), Failure> {
    let count = regex.find_all(whole, None).map_err(unusable)?.len() as u64;
    let literal = count.saturating_mul(replacement.len() as u64);
    let repeated = (whole.len() as u64).saturating_mul(groups + 1);
    call.spend(count)?;
    call.reserve(literal.saturating_add(repeated))
}

fn limit(args: &[Value]) -> Option<usize> {
    usize::try_from(int(args, 2)).ok()
}

fn find_all(call: &mut Call<'_>, regex: &GoRegex, args: &[Value]) -> Result<Value, Failure> {
    let whole = text(args, 1);
    let found = regex.find_all(whole, limit(args)).map_err(unusable)?;
    strings(call, whole, found)
}

fn split(call: &mut Call<'_>, regex: &GoRegex, args: &[Value]) -> Result<Value, Failure> {
    let whole = text(args, 1);
    if limit(args) == Some(0) {
        return Ok(Value::List(List::nil(&Type::String)));
    }
    let parts = regex.split(whole, limit(args)).map_err(unusable)?;
    if parts.is_empty() {
        return Ok(Value::strings(Vec::<&[u8]>::new()));
    }
    strings(call, whole, parts)
}

/// The parts of a text as a list of strings. No parts are a nil list.
fn strings(
    call: &mut Call<'_>,
    whole: &[u8],
    parts: Vec<std::ops::Range<usize>>,
) -> Result<Value, Failure> {
    if parts.is_empty() {
        return Ok(Value::List(List::nil(&Type::String)));
    }
    reserve_items(call, parts.len() as u64)?;
    call.reserve(whole.len() as u64)?;
    Ok(Value::strings(parts.into_iter().map(|part| whole.get(part).unwrap_or_default())))
}
