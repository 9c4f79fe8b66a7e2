//! What the functions of a project are made of, for those who make containers of them.

use std::path::PathBuf;

use super::archive::Archive;

/// A function of the project could not be made ready to run.
#[derive(Debug, thiserror::Error)]
#[error("cannot build embedded functions")]
pub(super) struct NotBuilt;

/// A function of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Build {
    /// What the project calls it.
    pub name: String,
    pub source: Source,
}

/// What a function is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Files that the function of another image works from.
    Files {
        /// What they are written in.
        language: &'static str,
        base: String,
        env: &'static [&'static str],
        /// Where they belong, seen from the root.
        files: Archive,
    },
    /// A Go module, to be compiled here.
    Go { folder: PathBuf, base: String },
    /// A Python package, to be installed in a container.
    Python(Python),
    /// Images in files.
    Tarball {
        /// The folder of the project.
        root: PathBuf,
        /// How the path of the files below it begins.
        prefix: String,
        /// The name that they are given, without a tag.
        repository: String,
    },
}

/// A Python package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Python {
    /// The folder of the project.
    pub root: PathBuf,
    /// The folder of the function, below that of the project.
    pub folder: String,
    /// The folder of the types that it may use, below that of the project.
    pub schemas: String,
    /// The image in which it is installed.
    pub builder: String,
    /// The image in which it runs.
    pub base: String,
}

impl Build {
    /// Whether there is a way to run it without Docker.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.source, Source::Go { .. } | Source::Python(_))
    }
}
