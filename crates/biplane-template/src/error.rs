//! Errors with Go's text, and the place in the template for people.

use crate::budget::Exceeded;

/// Where an error is, and what may have been meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The template that was being parsed or run.
    pub template: String,
    /// Counted from one.
    pub line: usize,
    /// Bytes before the place in its line.
    pub column: usize,
    /// Bytes before the place in the text.
    pub offset: usize,
    /// Bytes that the place covers in the text, as far as they are known.
    pub length: usize,
    /// The part of the template, as Go writes it. Empty in errors of parsing.
    pub node: String,
    /// The function, field, variable or template that does not exist.
    pub misspelt: Option<String>,
    /// Names that exist and look like the misspelt one, the most similar first.
    pub near: Vec<String>,
}

/// The text is not a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: String,
    place: Box<Place>,
}

impl ParseError {
    pub(crate) fn new(message: String, place: Place) -> Self {
        Self { message, place: Box::new(place) }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// A run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    pub(crate) message: String,
    pub(crate) place: Option<Box<Place>>,
    pub(crate) limit: Option<Exceeded>,
}

impl RunError {
    /// Where the run stopped. Errors inside of `include` are where the included template stopped.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_deref()
    }

    /// The limit that the run exceeded.
    pub fn limit(&self) -> Option<Exceeded> {
        self.limit
    }
}

/// At most this many names are proposed.
const PROPOSALS: usize = 3;

/// The names that are most like a misspelt one.
pub(crate) fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let lower = name.to_lowercase();
    let limit = match name.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        _ => 3,
    };
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter(|candidate| *candidate != name && candidate.len() < 200)
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(PROPOSALS).map(|(_, name)| name.to_owned()).collect()
}

/// How many characters must be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(200).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let best = (diagonal + usize::from(x != *y)).min(*cell + 1).min(left + 1);
            diagonal = *cell;
            *cell = best;
            left = best;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The line of an offset, counted from one, and the bytes before it in that line.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    (line, before.len() - start)
}
