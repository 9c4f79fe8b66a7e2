//! The `string` transform.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_function::Budget;
use biplane_go::fmt::{Arg, quote};
use biplane_go::regex::GoRegex;
use biplane_go::text::runes;
use biplane_go::{fmt, text};
use memchr::memmem;

use super::hash::{self, Hash};
use super::{Patterns, search};
use crate::config;
use crate::dialect;
use crate::value::Val;

#[derive(Debug)]
pub enum Text {
    Fail(String),
    Format(String),
    Convert(Conversion),
    TrimPrefix(String),
    TrimSuffix(String),
    Regexp { regex: Result<GoRegex, String>, pattern: String, group: i64 },
    Join(String, dialect::Join),
    Replace { search: String, replace: String },
}

#[derive(Debug)]
pub enum Conversion {
    ToUpper,
    ToLower,
    ToJson,
    ToBase64,
    FromBase64,
    Hash(Hash),
    Unknown(String),
}

impl Text {
    pub fn new(config: &config::Text, patterns: &Patterns, join: dialect::Join) -> Self {
        let kind = config.kind.as_str();
        let transform = match kind {
            "Format" => config.format.clone().map(Self::Format).ok_or("fmt"),
            "Convert" => {
                config.convert.as_deref().map(Conversion::new).map(Self::Convert).ok_or("convert")
            }
            "TrimPrefix" => config.trim.clone().map(Self::TrimPrefix).ok_or("trim"),
            "TrimSuffix" => config.trim.clone().map(Self::TrimSuffix).ok_or("trim"),
            "Regexp" => config.regexp.as_ref().map(|c| Self::regexp(c, patterns)).ok_or("regexp"),
            "Join" => config.separator.clone().map(|text| Self::Join(text, join)).ok_or("join"),
            "Replace" => config
                .replace
                .as_ref()
                .map(|config| Self::Replace {
                    search: config.search.clone(),
                    replace: config.replace.clone(),
                })
                .ok_or("replace"),
            _ => {
                return Self::Fail(format!(
                    "type {kind} is not supported for string transform type"
                ));
            }
        };
        transform.unwrap_or_else(|missing| {
            Self::Fail(format!("string transform of type {kind} {missing} is not set"))
        })
    }

    fn regexp(config: &config::Regexp, patterns: &Patterns) -> Self {
        Self::Regexp {
            regex: patterns
                .parse(&config.pattern)
                .map_err(|error| format!("could not compile regexp: {error}")),
            pattern: config.pattern.clone(),
            group: config.group,
        }
    }

    pub fn run(&self, value: &Val, budget: &Budget) -> Result<Vec<u8>, String> {
        match self {
            Self::Fail(error) => Err(error.clone()),
            Self::Format(format) => format_within(format, &[value.as_arg()], budget),
            Self::Convert(conversion) => made(conversion.run(value)?, budget),
            Self::TrimPrefix(prefix) => {
                let text = made(value.display(), budget)?;
                Ok(text.strip_prefix(prefix.as_bytes()).unwrap_or(&text).to_vec())
            }
            Self::TrimSuffix(suffix) => {
                let text = made(value.display(), budget)?;
                Ok(text.strip_suffix(suffix.as_bytes()).unwrap_or(&text).to_vec())
            }
            Self::Regexp { regex, pattern, group } => {
                let regex = regex.as_ref().map_err(Clone::clone)?;
                let text = made(value.display(), budget)?;
                search(regex, &text, budget)?;
                let found = match usize::try_from(*group) {
                    Ok(group) => regex
                        .group(&text, group)
                        .map_err(|error| format!("could not compile regexp: {error}"))?,
                    Err(_) => None,
                };
                found.map(<[u8]>::to_vec).ok_or_else(|| {
                    let pattern = quote(pattern);
                    format!("regexp {pattern} had no matches for group {group}")
                })
            }
            Self::Join(separator, how) => join(value, separator.as_bytes(), *how, budget),
            Self::Replace { search, replace } => {
                let text = made(value.display(), budget)?;
                replace_all(&text, search.as_bytes(), replace.as_bytes(), budget)
            }
        }
    }
}

/// The longest text: no caller accepts an answer that is as large.
const MAX_TEXT: usize = 16 << 20;

/// Formats arguments, if there is room for the result.
pub fn format_within(format: &str, args: &[Arg<'_>], budget: &Budget) -> Result<Vec<u8>, String> {
    let text = fmt::sprintf_within(format.as_bytes(), args, budget.room().min(MAX_TEXT));
    made(text.ok_or_else(|| budget.overflow().to_string())?, budget)
}

/// Counts a text that was made from a value that was counted.
fn made(text: Vec<u8>, budget: &Budget) -> Result<Vec<u8>, String> {
    make(text.len(), budget)?;
    Ok(text)
}

/// Makes room for a text.
fn make(length: usize, budget: &Budget) -> Result<(), String> {
    let room = if length > MAX_TEXT { Err(budget.overflow()) } else { budget.make(length) };
    room.map_err(|exceeded| exceeded.to_string())
}

/// Joins a list.
fn join(
    value: &Val,
    separator: &[u8],
    how: dialect::Join,
    budget: &Budget,
) -> Result<Vec<u8>, String> {
    let items = match value {
        Val::Array(items) => items.as_slice(),
        Val::NilArray => &[],
        _ => {
            return Err(match how {
                dialect::Join::Between => "cannot join non-array values".into(),
                dialect::Join::CutByte => "could not parse input array".into(),
            });
        }
    };
    let mut out = Vec::new();
    for item in items {
        let item = fmt::display(item.into());
        let length = item.len() + separator.len();
        if out.len() + length > MAX_TEXT {
            return Err(budget.overflow().to_string());
        }
        make(length, budget)?;
        out.extend(item);
        out.extend_from_slice(separator);
    }
    let surplus = match how {
        dialect::Join::Between => separator.len(),
        dialect::Join::CutByte => separator.len().min(1),
    };
    out.truncate(out.len().saturating_sub(surplus));
    Ok(out)
}

fn replace_all(
    text: &[u8],
    search: &[u8],
    replace: &[u8],
    budget: &Budget,
) -> Result<Vec<u8>, String> {
    if search.is_empty() {
        let count = runes(text).count() + 1;
        make(text.len().saturating_add(count.saturating_mul(replace.len())), budget)?;
        return Ok(fill(text, replace));
    }
    let finder = memmem::Finder::new(search);
    let count = finder.find_iter(text).count();
    let length = text.len() - count * search.len();
    let length = length.saturating_add(count.saturating_mul(replace.len()));
    make(length, budget)?;
    let mut out = Vec::with_capacity(length);
    let mut done = 0;
    for found in finder.find_iter(text) {
        out.extend_from_slice(text.get(done..found).unwrap_or_default());
        out.extend_from_slice(replace);
        done = found + search.len();
    }
    out.extend_from_slice(text.get(done..).unwrap_or_default());
    Ok(out)
}

/// Replaces an empty search string, which matches around every character.
fn fill(text: &[u8], replace: &[u8]) -> Vec<u8> {
    let mut out = replace.to_vec();
    for (_, bytes) in runes(text) {
        out.extend_from_slice(bytes);
        out.extend_from_slice(replace);
    }
    out
}

impl Conversion {
    fn new(name: &str) -> Self {
        match name {
            "ToUpper" => Self::ToUpper,
            "ToLower" => Self::ToLower,
            "ToJson" => Self::ToJson,
            "ToBase64" => Self::ToBase64,
            "FromBase64" => Self::FromBase64,
            "ToSha1" => Self::Hash(Hash::Sha1),
            "ToSha256" => Self::Hash(Hash::Sha256),
            "ToSha512" => Self::Hash(Hash::Sha512),
            "ToAdler32" => Self::Hash(Hash::Adler32),
            other => Self::Unknown(other.to_owned()),
        }
    }

    fn run(&self, value: &Val) -> Result<Vec<u8>, String> {
        match self {
            Self::ToUpper => Ok(text::to_upper(&value.display())),
            Self::ToLower => Ok(text::to_lower(&value.display())),
            Self::ToJson => hash::json(value).map(String::into_bytes),
            Self::ToBase64 => Ok(STANDARD.encode(value.display()).into_bytes()),
            Self::FromBase64 => biplane_go::base64::decode(&value.display()).map_err(|at| {
                format!("string is not valid base64: illegal base64 data at input byte {at}")
            }),
            Self::Hash(hash) => hash.run(value).map(String::into_bytes),
            Self::Unknown(name) => Err(format!("type {name} is not supported for string convert")),
        }
    }
}
