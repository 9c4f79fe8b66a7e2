//! Options that control how functions are found and started.

use std::path::PathBuf;

use biplane_function::Registry;

use crate::docker;

/// How functions are found and started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The functions that can run in process.
    pub registry: Registry,
    /// Whether upstream's functions run in process by default.
    pub builtin: bool,
    /// Whether functions may run as local processes.
    pub allow_process: bool,
    /// The maximum number of concurrent registry requests, and of concurrent starts of functions.
    pub max_concurrency: usize,
    /// The folder in which responses of registries are cached.
    pub cache_dir: Option<PathBuf>,
    /// The project that provides the functions when they are not listed in a file.
    pub project_file: PathBuf,
    /// The environment variables about Docker.
    pub docker: docker::Environment,
}

impl Options {
    /// Whether a function can run in process.
    pub(crate) fn in_box(&self, name: &str) -> bool {
        self.registry.get(name).is_some()
    }
}
