//! Where an object was read from, for complaints about what it says.

use std::fmt::Display;
use std::path::Path;

use anyhow::{Error, anyhow};
use biplane_model::yaml::Place;

use crate::cli::values::STDIN;

/// One document of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
    /// Counted from 0, without empty ones.
    pub document: usize,
}

impl Source<'_> {
    /// A complaint about a part of the document, with the line to look at.
    pub(super) fn complain(&self, path: &[&str], problem: impl Display) -> Error {
        let file = name(self.file);
        match Place::find(self.text, self.document, path) {
            Some(place) => anyhow!("{problem}\n--> {file}, {place}"),
            None => anyhow!("{problem}\n--> {file}, document {}", self.document + 1),
        }
    }
}

/// A file as people know it.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() }
}
