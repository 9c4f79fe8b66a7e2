//! Where something was redacted. A path costs nothing until something is.

use super::Redacted;
use biplane_model::fieldpath::{self, Segment};

/// A place in a message, as a list from the inside out.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    /// A field of the message itself.
    pub(super) fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Field(name) }
    }

    /// A field in this place.
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// An item in this place.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    fn print(&self) -> String {
        let mut segments = Vec::new();
        let mut next = Some(self);
        while let Some(at) = next {
            segments.push(match at.step {
                Step::Field(name) => Segment::Field(name.to_owned()),
                Step::Index(index) => Segment::Index(u32::try_from(index).unwrap_or(u32::MAX)),
            });
            next = at.parent;
        }
        segments.reverse();
        fieldpath::print(&segments)
    }
}

/// Everything that was redacted so far.
#[derive(Debug, Default)]
pub(super) struct Found(Vec<String>);

impl Found {
    pub(super) fn add(&mut self, at: &At<'_>) {
        self.0.push(at.print());
    }

    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Adds what was redacted in another part of the message.
    pub(super) fn extend(&mut self, paths: &[String]) {
        self.0.extend_from_slice(paths);
    }

    /// The message in which it was redacted.
    pub(super) fn of<T>(mut self, value: T) -> Redacted<T> {
        self.0.sort();
        Redacted { value, paths: self.0 }
    }
}
