//! Field paths: how compositions name a place in an object, and what can be done there.
//!
//! A [`FieldPath`] is parsed once and used often. Reading tells two kinds of failure apart: what is
//! not there yet (see [`PathError::is_not_found`]), and what can never be there. Integers and
//! doubles are different kinds of number; a JSON number's own kind decides, and [`normalize`] turns
//! every whole double into an integer as a trip through JSON text would.

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

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Into an object.
    Field(String),
    /// Into an array.
    Index(u32),
}

impl Segment {
    /// A field. Quotes around the name, however many, are not part of it.
    pub fn field(name: &str) -> Self {
        Self::Field(name.trim_matches(['\'', '"']).to_owned())
    }

    /// An index if the text is one, or else a field.
    pub fn field_or_index(text: &str) -> Self {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(index) if digits => Self::Index(index),
            _ => Self::field(text),
        }
    }

    /// Whether expansion takes this step for every child.
    pub fn is_wildcard(&self) -> bool {
        matches!(self, Self::Field(name) if name == "*")
    }
}

impl FieldPath {
    /// Reads a path. The empty text is a path without steps.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Ok(Self { text: text.to_owned(), segments: parse::segments(text)? })
    }

    /// The text that was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The steps.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// The steps in their usual spelling, which is not always the text that was parsed.
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(&self.segments))
    }
}

/// Steps in their usual spelling: brackets only where they are needed, never quotes.
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
