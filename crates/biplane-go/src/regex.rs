//! Regular expressions in the dialect of Go, on an engine of another.
//!
//! Both engines run in linear time and prefer matches alike; what differs is spelling. The pattern is
//! read by Go's rules, with Go's errors, and written out anew with nothing left to interpretation.

mod class;
mod literal;
mod translate;
mod unicode;

use std::borrow::Cow;

use regex::bytes::RegexBuilder;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct GoRegex {
    pattern: String,
    regex: regex::bytes::Regex,
    large: bool,
}

/// Why a pattern does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {what}: `{fragment}`")]
pub struct RegexError {
    /// What is wrong.
    pub what: &'static str,
    /// The part of the pattern that is.
    pub fragment: String,
}

/// Room for a class of a thousand characters, a thousand times.
const SIZE_LIMIT: usize = 256 << 20;

/// What hardly any pattern exceeds.
const USUAL_SIZE: usize = 1 << 20;

/// How deep groups may nest, within what the stack of any thread can hold.
const NEST_LIMIT: u32 = 400;

impl GoRegex {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        let translated = translate::translate(pattern)?;
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
        Ok(Self { pattern: pattern.to_owned(), regex, large })
    }

    /// Whether it takes more memory than one would keep without need.
    pub fn is_large(&self) -> bool {
        self.large
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in a text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(&Haystack::new(text).text)
    }

    /// A group of the first match, counted from zero for the whole. `None` means that there is no
    /// match or no such group; a group that took no part is empty.
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

/// A text with every stray byte replaced by the character that Go takes it for.
struct Haystack<'a> {
    text: Cow<'a, [u8]>,
    /// Where in the text a stray byte was replaced.
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

    /// Where a place in the replaced text was before. Each replacement is two bytes longer.
    fn origin(&self, at: usize) -> usize {
        at - 2 * self.replaced.partition_point(|place| *place < at)
    }
}

#[cfg(test)]
mod tests;
