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
use std::sync::{Arc, OnceLock};

use regex::bytes::RegexBuilder;

use translate::Translated;

/// A pattern. It is parsed at once, and compiled when it is first used. Clones share the compiled
/// form.
#[derive(Clone, Debug)]
pub struct GoRegex(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pattern: String,
    translated: Translated,
    compiled: OnceLock<Result<regex::bytes::Regex, RegexError>>,
}

/// The reason why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {what}: `{fragment}`")]
pub struct RegexError {
    /// The problem.
    pub what: &'static str,
    /// The invalid part of the pattern.
    pub fragment: String,
}

/// How much memory one pattern may take when it is compiled: enough for any letter, repeated a
/// thousand times.
pub const MAX_SIZE: usize = 64 << 20;

/// The memory of the automaton that a search builds and keeps.
const SEARCH_CACHE: usize = 256 << 10;

/// Patterns above this size get a larger automaton, because a search without one is slow.
const USUAL_SIZE: usize = 256 << 10;

/// How deeply groups may nest, so that they fit on the stack of any thread.
const NEST_LIMIT: u32 = 400;

impl GoRegex {
    /// Parses a pattern. Every error that Go would report is found here.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        let translated = translate::translate(pattern)?;
        if translated.size > MAX_SIZE as u64 {
            return Err(too_large(pattern));
        }
        let pattern = pattern.to_owned();
        Ok(Self(Arc::new(Inner { pattern, translated, compiled: OnceLock::new() })))
    }

    fn regex(&self) -> Result<&regex::bytes::Regex, RegexError> {
        let Inner { pattern, translated, compiled } = &*self.0;
        let compile = || {
            let mut builder = RegexBuilder::new(&translated.text);
            builder.size_limit(MAX_SIZE).nest_limit(NEST_LIMIT);
            if translated.size < USUAL_SIZE as u64 {
                builder.dfa_size_limit(SEARCH_CACHE);
            }
            builder.build().map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => too_large(pattern),
                _ => {
                    RegexError { what: "expression nests too deeply", fragment: pattern.to_owned() }
                }
            })
        };
        compiled.get_or_init(compile).as_ref().map_err(Clone::clone)
    }

    /// About how many bytes the compiled pattern takes. It depends on the pattern alone.
    pub fn size(&self) -> usize {
        usize::try_from(self.0.translated.size).unwrap_or(usize::MAX)
    }

    /// How many steps a search takes at most in a string of this length.
    pub fn search_steps(&self, length: usize) -> u64 {
        self.0.translated.instructions.saturating_mul(length as u64)
    }

    /// The pattern.
    pub fn pattern(&self) -> &str {
        &self.0.pattern
    }

    /// Whether the pattern matches anywhere in a string. Fails if the pattern is too large or too
    /// deep for the engine.
    pub fn is_match(&self, text: &[u8]) -> Result<bool, RegexError> {
        Ok(self.regex()?.is_match(&Haystack::new(text).text))
    }

    /// A group of the first match. Group zero is the whole match. `None` means that there is no
    /// match or no such group. A group that did not take part in the match is empty. Fails like
    /// [`GoRegex::is_match`].
    pub fn group<'a>(&self, text: &'a [u8], group: usize) -> Result<Option<&'a [u8]>, RegexError> {
        let haystack = Haystack::new(text);
        let Some(captures) = self.regex()?.captures(&haystack.text) else { return Ok(None) };
        if group >= captures.len() {
            return Ok(None);
        }
        let Some(found) = captures.get(group) else { return Ok(Some(b"")) };
        let (start, end) = (haystack.origin(found.start()), haystack.origin(found.end()));
        Ok(Some(text.get(start..end).unwrap_or_default()))
    }
}

fn too_large(pattern: &str) -> RegexError {
    RegexError { what: "expression too large", fragment: pattern.to_owned() }
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
