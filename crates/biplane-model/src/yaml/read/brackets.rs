//! Syntax that go-yaml reads differently from YAML 1.2: `?` and `:` in plain scalars within
//! brackets, tags directly followed by something else, and names of anchors.

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

use super::repair::Edit;
use super::words::{self, Found};
use super::{Failure, located_in_words};

/// Tracks which lists and objects are written in brackets.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    /// One entry for each open list and object.
    open: Vec<bool>,
}

impl Brackets {
    /// Checks an event before it is turned into a value.
    pub(super) fn event(
        &mut self,
        event: &Event<'_>,
        span: &Span,
        text: &str,
    ) -> Result<(), Failure> {
        tag(span, text)?;
        match event {
            Event::SequenceStart(style, ..) | Event::MappingStart(style, ..) => {
                self.open.push(*style == StructureStyle::Flow);
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            Event::Scalar(_, ScalarStyle::Plain, ..) if self.open.last() == Some(&true) => {
                plain(span, text)?;
            }
            Event::Anchor(_, name) if !name.bytes().all(words::is_of_name) => {
                let at = located_in_words(Found::AnchorName, text, &span.start);
                return Err(Failure::Located(at));
            }
            _ => {}
        }
        Ok(())
    }
}

/// A tag extends to the next whitespace.
fn tag(span: &Span, text: &str) -> Result<(), Failure> {
    let Some(tag) = span.tag_span() else { return Ok(()) };
    let Some(end) = tag.byte_range().map(|range| range.end) else { return Ok(()) };
    if is_blank(text, end) {
        return Ok(());
    }
    let at = located_in_words(Found::TagEnd, text, &tag.start);
    Err(match tag_edit(text, end) {
        Some(edit) => Failure::Edit(at, edit),
        None => Failure::Located(at),
    })
}

/// Replaces a character that go-yaml reads as part of a tag by a letter. No such tag has a meaning.
pub(super) fn tag_edit(text: &str, at: usize) -> Option<Edit> {
    let part = matches!(text.as_bytes().get(at), Some(b',' | b'[' | b']'));
    part.then(|| Edit { at, removed: 1, added: "x".into() })
}

/// A plain scalar continues past a colon that no whitespace follows, and ends at a question mark.
fn plain(span: &Span, text: &str) -> Result<(), Failure> {
    let Some(range) = span.byte_range().filter(|range| !range.is_empty()) else { return Ok(()) };
    let word = text.get(range.clone()).unwrap_or_default();
    let at = |found| located_in_words(found, text, &span.start);
    if word.starts_with(':') {
        return Err(Failure::Located(at(Found::LeadingColon)));
    }
    if word.starts_with('?') {
        let edit = Edit { at: range.start + 1, removed: 0, added: " ".into() };
        return Err(Failure::Edit(at(Found::QuestionMark), edit));
    }
    if word.contains('?') {
        return Err(Failure::Located(at(Found::QuestionMark)));
    }
    let rest = text.get(range.end..).unwrap_or_default();
    let after = rest.trim_start_matches([' ', '\t']);
    let colon = text.len() - after.len();
    if after.starts_with(':') && !is_blank(text, colon + 1) {
        let whole = text.get(range.start..=colon).unwrap_or_default();
        let at = at(Found::QuestionMark);
        return Err(match quoted(range.start, whole) {
            Some(edit) => Failure::Edit(at, edit),
            None => Failure::Located(at),
        });
    }
    Ok(())
}

/// Quotes a plain scalar that is a string.
pub(super) fn quoted(at: usize, word: &str) -> Option<Edit> {
    let added = format!("'{}'", word.replace('\'', "''"));
    (!word.contains(['\n', '\r'])).then_some(Edit { at, removed: word.len(), added })
}

/// Separates an alias from the colon that follows it.
pub(super) fn alias_edit(text: &str, at: usize) -> Option<Edit> {
    let name = text.get(at..)?.strip_prefix('*')?;
    let length = name.bytes().take_while(|b| words::is_of_name(*b)).count();
    let colon = at + 1 + length;
    let is_key = length > 0 && text.as_bytes().get(colon) == Some(&b':');
    (is_key && is_blank(text, colon + 1)).then(|| Edit { at: colon, removed: 0, added: " ".into() })
}

/// Whether there is whitespace or the end of the text at this offset.
fn is_blank(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), None | Some(b' ' | b'\t' | b'\n' | b'\r'))
}
