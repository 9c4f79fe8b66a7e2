//! Go regular expressions, run by Rust's regex engine.
//!
//! Both engines run in linear time and prefer the same matches. Only the syntax differs. The
//! pattern is parsed by Go's rules, with Go's errors, and translated into an unambiguous pattern
//! for the engine.

mod class;
mod literal;
mod rewrite;
mod translate;
mod unicode;

use std::borrow::Cow;

use regex::bytes::RegexBuilder;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct GoRegex {
    pattern: String,
    regex: regex::bytes::Regex,
    /// The names of the groups. A group without a name has an empty one.
    names: Vec<String>,
    large: bool,
}

/// The reason why a pattern does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {what}: `{fragment}`")]
pub struct RegexError {
    /// The problem.
    pub what: &'static str,
    /// The invalid part of the pattern.
    pub fragment: String,
}

/// Enough for a class of a thousand characters, repeated a thousand times.
const SIZE_LIMIT: usize = 256 << 20;

/// Patterns above this size are rare.
const USUAL_SIZE: usize = 1 << 20;

/// How deeply groups may nest, so that they fit on the stack of any thread.
const NEST_LIMIT: u32 = 400;

impl GoRegex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        let translate::Translated { pattern: translated, names } = translate::translate(pattern)?;
        let build =
            |limit| RegexBuilder::new(&translated).size_limit(limit).nest_limit(NEST_LIMIT).build();
        let usual = build(USUAL_SIZE);
        let large = matches!(usual, Err(regex::Error::CompiledTooBig(_)));
        let regex = if large { build(SIZE_LIMIT) } else { usual };
        let regex = regex.map_err(|error| RegexError {
            what: match error {
                regex::Error::CompiledTooBig(_) => "expression too large",
                _ => "expression nests too deeply",
            },
            fragment: pattern.to_owned(),
        })?;
        Ok(Self { pattern: pattern.to_owned(), regex, names, large })
    }

    /// Whether it uses so much memory that it should not be kept without need.
    pub fn is_large(&self) -> bool {
        self.large
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in a string.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(&Haystack::new(text).text)
    }

    /// A group of the first match. Group zero is the whole match. `None` means that there is no
    /// match or no such group. A group that did not take part in the match is empty.
    pub fn group<'a>(&self, text: &'a [u8], group: usize) -> Option<&'a [u8]> {
        let haystack = Haystack::new(text);
        let captures = self.regex.captures(&haystack.text)?;
        if group >= captures.len() {
            return None;
        }
        let Some(found) = captures.get(group) else { return Some(b"") };
        let (start, end) = (haystack.origin(found.start()), haystack.origin(found.end()));
        Some(text.get(start..end).unwrap_or_default())
    }
}

/// A string in which every invalid byte is replaced by the replacement character, as in Go.
struct Haystack<'a> {
    text: Cow<'a, [u8]>,
    /// The offsets at which invalid bytes were replaced.
    replaced: Vec<usize>,
}

impl<'a> Haystack<'a> {
    fn new(text: &'a [u8]) -> Self {
        if std::str::from_utf8(text).is_ok() {
            return Self { text: Cow::Borrowed(text), replaced: Vec::new() };
        }
        let mut valid = Vec::with_capacity(text.len() * 3);
        let mut replaced = Vec::new();
        for (c, bytes) in crate::text::runes(text) {
            if c.is_some() {
                valid.extend_from_slice(bytes);
            } else {
                replaced.push(valid.len());
                valid.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
        Self { text: Cow::Owned(valid), replaced }
    }

    /// Whether an offset is not within a character. Go looks for matches only there.
    fn is_boundary(&self, at: usize) -> bool {
        self.text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
    }

    /// Converts an offset in the replaced string to one in the original. Each replacement is two
    /// bytes longer.
    fn origin(&self, at: usize) -> usize {
        at - 2 * self.replaced.partition_point(|place| *place < at)
    }
}

#[cfg(test)]
mod tests;
