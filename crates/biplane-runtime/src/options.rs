//! How functions are found and started.

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
    /// Whether functions may be programs on this machine.
    pub allow_process: bool,
    /// How many registries are asked, and how many functions started, at a time.
    pub max_concurrency: usize,
    /// Where the answers of registries are kept.
    pub cache_dir: Option<PathBuf>,
    /// The project that functions are taken from when they are not listed.
    pub project_file: PathBuf,
    /// What the environment says about Docker.
    pub docker: docker::Environment,
}

impl Options {
    /// Whether a function can run in process.
    pub(crate) fn in_box(&self, name: &str) -> bool {
        self.registry.get(name).is_some()
    }
}
