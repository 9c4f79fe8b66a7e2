//! Field paths: the syntax in which compositions name a field of an object, with reading, writing
//! and merging at a path.
//!
//! A [`FieldPath`] is parsed once and used often. Reads distinguish a field that does not exist yet
//! (see [`PathError::is_not_found`]) from one that can never exist. Integers and doubles are
//! different kinds of numbers. The kind of a JSON number decides, and [`normalize`] turns every
//! whole double into an integer, as encoding to JSON and decoding would.

mod error;
mod expand;
mod kind;
mod merge;
mod parse;
mod read;
mod write;

pub use error::{ParseError, PathError};
pub use kind::{normalize, normalize_map, to_doubles, type_name};
pub use merge::MergeOptions;

use std::fmt;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    text: String,
    segments: Vec<Segment>,
}

/// One segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A field of an object.
    Field(String),
    /// An index into an array.
    Index(u32),
}

impl Segment {
    /// A field. Any quotes around the name are removed.
    pub fn field(name: &str) -> Self {
        Self::Field(name.trim_matches(['\'', '"']).to_owned())
    }

    /// An index if the string is one, or else a field.
    pub fn field_or_index(text: &str) -> Self {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(index) if digits => Self::Index(index),
            _ => Self::field(text),
        }
    }

    /// Whether expansion replaces this segment with every child.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Field(name) if name == "*")
    }
}

impl FieldPath {
    /// Parses a path. The empty string is a path without segments.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { text: text.to_owned(), segments: parse::segments(text)? })
    }

    /// The string that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// The segments in canonical form, which may differ from the string that was parsed.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(&self.segments))
    }
}

/// Prints segments in canonical form: with brackets only where needed, and without quotes.
pub fn print(segments: &[Segment]) -> String {
    let mut out = String::new();
    for segment in segments {
        match segment {
            Segment::Index(index) => {
                out.push('[');
                out.push_str(&index.to_string());
                out.push(']');
            }
            Segment::Field(name) if name == "*" || name.contains('.') => {
                out.push('[');
                out.push_str(name);
                out.push(']');
            }
            Segment::Field(name) => {
                out.push('.');
                out.push_str(name);
            }
        }
    }
    if out.starts_with('.') {
        out.remove(0);
    }
    out
}

#[cfg(test)]
mod tests;
