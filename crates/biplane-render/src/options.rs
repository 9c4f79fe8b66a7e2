//! The options of a render that composite resources and Operations share.

use std::collections::BTreeMap;
use std::path::PathBuf;

use biplane_manifest::Line;
use biplane_runner::Inspection;

/// How documents are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// YAML.
    #[default]
    Yaml,
    /// One line of JSON per document.
    Json,
}

/// How functions are found and started, and their input.
#[derive(Clone, Debug)]
pub struct FunctionOptions {
    /// How they are found and started.
    pub runtime: biplane_runtime::Options,
    /// Annotations that every function gets, as `KEY=VALUE`.
    pub annotations: Vec<String>,
    /// Files with context for the pipeline, by key.
    pub context_files: BTreeMap<String, PathBuf>,
    /// Context for the pipeline as YAML or JSON, by key. These win over files.
    pub context_values: BTreeMap<String, String>,
    /// Secrets that pipeline steps name.
    pub credentials: Option<PathBuf>,
    /// Resources that functions may require.
    pub required_resources: Vec<PathBuf>,
    /// OpenAPI documents with the schemas that functions may require.
    pub required_schemas: Option<PathBuf>,
    /// Emits what functions are given and what they answer, if that is wanted. Only the built-in
    /// engine does it.
    pub inspection: Option<Inspection>,
}

/// What is printed, and how.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is independent of the others
pub struct OutputOptions {
    /// The major version of Crossplane whose documents are printed.
    pub line: Line,
    /// How documents are written.
    pub format: Format,
    /// Whether the pipeline's context is printed.
    pub context: bool,
    /// Whether the functions' results are printed.
    pub results: bool,
    /// Whether a summary of changes and unready resources is printed to stderr.
    pub summary: bool,
    /// Whether the duration of each call is printed to stderr.
    pub timing: bool,
}
