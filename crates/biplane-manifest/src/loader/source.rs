//! The origin of an object (file, document, line), for errors about its content.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Error, anyhow};
use biplane_model::yaml::{Place, Problem, YamlError};

use super::secrecy::holds_secret;

/// The path that denotes standard input.
pub const STDIN: &str = "-";

/// One document of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub file: &'a Path,
    pub text: &'a str,
    /// The index of the document, from 0, not counting empty documents.
    pub document: usize,
    /// The path to the object in the document, if that is a list.
    pub within: &'a [&'a str],
    /// Whether the document is meant to hold secrets, so that its text must not be shown. The text
    /// of a document that is a Secret is never shown.
    pub secret: bool,
}

/// The same as owned data, for errors that may occur later.
#[derive(Clone, Debug)]
pub struct Origin {
    pub(super) file: Arc<Path>,
    pub(super) text: Arc<str>,
    pub(super) document: usize,
    pub(super) within: Arc<[String]>,
}

impl Origin {
    /// Adds the location of a part of the object, or of the closest parent, to an error.
    pub fn complain(&self, path: &[&str], problem: impl Display) -> Error {
        let within: Vec<_> = self.within.iter().map(String::as_str).collect();
        let (file, text, document) = (&*self.file, &*self.text, self.document);
        Source { file, text, document, within: &within, secret: false }.complain(path, problem)
    }

    /// Describes a line and a column inside a text of the object: see [`Place::find_within`].
    pub fn place_within(&self, path: &[&str], line: usize, column: usize) -> Option<String> {
        let within: Vec<_> = self.within.iter().map(String::as_str).collect();
        let path = [within.as_slice(), path].concat();
        let place = Place::find_within(&self.text, self.document, &path, line, column)?;
        Some(format!("--> {}, {place}", name(&self.file)))
    }

    /// Reports that there is no object.
    pub fn complain_of_nothing(&self, problem: impl Display) -> Error {
        anyhow!("{problem}\n--> {}: there is no object in it", name(&self.file))
    }
}

impl Source<'_> {
    /// An error about a part of the document, with the line to look at.
    pub(super) fn complain(&self, path: &[&str], problem: impl Display) -> Error {
        let file = name(self.file);
        match self.find(path) {
            Some(place) if self.is_secret() => {
                anyhow!("{problem}\n--> {file}, {}", numbers(&place))
            }
            Some(place) => anyhow!("{problem}\n--> {file}, {place}"),
            None => anyhow!("{problem}\n--> {file}, document {}", self.document + 1),
        }
    }

    /// The same, with a different message at the location.
    pub(super) fn complain_in_words(
        &self,
        path: &[&str],
        problem: impl Display,
        words: &str,
    ) -> Error {
        let file = name(self.file);
        match self.find(path) {
            Some(place) if self.is_secret() => {
                anyhow!("{problem}\n--> {file}, {}: {words}", numbers(&place))
            }
            Some(place) => anyhow!("{problem}\n--> {file}, {}", place.saying(words)),
            None => anyhow!("{problem}\n--> {file}: {words}"),
        }
    }
}

/// A location without the line there.
pub(super) fn numbers(Place { document, line, column, .. }: &Place) -> String {
    format!("document {document}, line {line}, column {column}")
}

impl<'a> Source<'a> {
    /// A document that holds one object and no secrets.
    pub(super) fn new(file: &'a Path, text: &'a str, document: usize) -> Self {
        Self { file, text, document, within: &[], secret: false }
    }

    /// Converts to owned data.
    pub(super) fn keep(&self) -> Origin {
        let within: Vec<_> = self.within.iter().map(|&step| step.to_owned()).collect();
        let (file, text, within) = (self.file.into(), self.text.into(), within.into());
        Origin { file, text, document: self.document, within }
    }

    /// Whether the text must not be shown.
    pub(super) fn is_secret(&self) -> bool {
        self.secret || holds_secret(self.text)
    }

    fn find(&self, path: &[&str]) -> Option<Place> {
        Place::find(self.text, self.document, &[self.within, path].concat())
    }
}

/// Describes an error in a text of which nothing may be shown: its location and kind.
pub fn without_text(error: &YamlError) -> Error {
    if error.problem == Problem::Empty {
        return anyhow!(error.to_string());
    }
    let known = error.reference();
    let yaml = |problem: &str| format!("error converting YAML to JSON: yaml: {problem}");
    let problem = match &error.problem {
        Problem::WrongTag { wanted, .. } => yaml(&format!("cannot decode as a !!{wanted}")),
        Problem::NotJson(_) => yaml("a value is not a number that JSON can hold"),
        Problem::Separator(_) => "invalid Yaml document separator".to_owned(),
        Problem::AliasOfItself(_) => yaml("an anchor's value contains itself"),
        // A value that begins with a star may be meant as a string.
        _ if known.contains("unknown anchor") => yaml("unknown anchor referenced"),
        _ => known,
    };
    let YamlError { source_name, document, line, column, .. } = error;
    let place = format!("document {document}, line {line}, column {column}");
    anyhow!("{problem}\n--> {source_name}, {place}")
}

/// The name of a file as shown to users.
pub fn name(path: &Path) -> String {
    if path == Path::new(STDIN) { "standard input".to_owned() } else { path.display().to_string() }
}
