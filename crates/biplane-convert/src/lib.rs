//! Converts objects to newer kinds and features.
//!
//! [`pipeline_composition`] turns a Composition in `mode: Resources` into one with a pipeline,
//! [`composition_environment`] replaces the environment of a Composition by a function, and
//! [`deployment_runtime`] turns a ControllerConfig into a DeploymentRuntimeConfig. Each takes the text
//! of a manifest and returns the text of another. If the manifest has comments, they are kept, and so
//! is the order of what does not change.

mod composition_environment;
mod deployment_runtime;
mod document;
mod patches;
mod pipeline_composition;
mod print;

pub use composition_environment::composition_environment;
pub use deployment_runtime::deployment_runtime;
pub use pipeline_composition::{Functions, pipeline_composition};

/// The name of the Function that reads environments, unless another one is given.
pub const ENVIRONMENT_CONFIGS: &str = "function-environment-configs";
/// The name of the Function that patches and transforms, unless another one is given.
pub const PATCH_AND_TRANSFORM: &str = "function-patch-and-transform";
