//! Describes how the functions of a project are built. Containers are created from these
//! descriptions.

use std::path::{Path, PathBuf};

use crate::archive::Archive;

/// A function of the project could not be built.
#[derive(Debug, thiserror::Error)]
#[error("cannot build embedded functions")]
pub(crate) struct NotBuilt;

/// A function of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildSpec {
    /// The name of the function in the project.
    pub name: String,
    pub source: BuildSource,
}

/// How a function is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BuildSource {
    /// Files for the image of another function, such as one that runs KCL.
    Files {
        /// The folder of the files.
        folder: PathBuf,
        /// The language of the files.
        language: &'static str,
        base: String,
        env: &'static [&'static str],
        /// The files at their paths from the root.
        files: Archive,
    },
    /// A Go module, which is compiled locally.
    Go {
        /// The root folder of the project.
        root: PathBuf,
        folder: PathBuf,
        base: String,
    },
    /// A Python package, which is installed in a container.
    Python(Python),
    /// Images in tar files.
    Tarball {
        /// The root folder of the project.
        root: PathBuf,
        /// The prefix of the files' paths within the project.
        prefix: String,
        /// The name that the images are given, without a tag.
        repository: String,
    },
}

/// A Python package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Python {
    /// The root folder of the project.
    pub root: PathBuf,
    /// The folder of the function, relative to the root.
    pub folder: String,
    /// The folder of the generated types that it may use, relative to the root.
    pub schemas: String,
    /// The image in which it is installed.
    pub builder: String,
    /// The image in which it runs.
    pub base: String,
}

impl BuildSpec {
    /// Whether a file of the project is part of this function.
    pub(crate) fn is_made_of(&self, file: &Path) -> bool {
        match &self.source {
            BuildSource::Files { folder, .. } | BuildSource::Go { folder, .. } => {
                file.starts_with(folder)
            }
            BuildSource::Python(python) => file.starts_with(python.root.join(&python.folder)),
            BuildSource::Tarball { root, prefix, .. } => {
                let file = file.strip_prefix(root).map(Path::as_os_str);
                file.is_ok_and(|file| file.as_encoded_bytes().starts_with(prefix.as_bytes()))
            }
        }
    }

    /// Whether it can run without Docker.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.source, BuildSource::Go { .. } | BuildSource::Python(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_function_whose_folder_or_name_they_have() {
        let build = |source| BuildSpec { name: "a".to_owned(), source };
        let go = build(BuildSource::Go {
            root: "/p".into(),
            folder: "/p/functions/a".into(),
            base: String::new(),
        });
        let python = build(BuildSource::Python(Python {
            root: "/p".into(),
            folder: "functions/a".to_owned(),
            schemas: String::new(),
            builder: String::new(),
            base: String::new(),
        }));
        for build in [go, python] {
            assert!(build.is_made_of(Path::new("/p/functions/a/more/main.py")));
            assert!(!build.is_made_of(Path::new("/p/functions/ab/main.py")));
            assert!(!build.is_made_of(Path::new("/p/schemas/a")));
        }
        let tarball = build(BuildSource::Tarball {
            root: "/p".into(),
            prefix: "out/a".to_owned(),
            repository: String::new(),
        });
        assert!(tarball.is_made_of(Path::new("/p/out/a-amd64.tar.gz")));
        assert!(!tarball.is_made_of(Path::new("/p/out/b-amd64.tar.gz")));
    }
}
