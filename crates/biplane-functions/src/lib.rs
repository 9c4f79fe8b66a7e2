//! The built-in functions: `function-auto-ready`, `function-dummy`, `function-environment-configs`,
//! `function-go-templating` and `function-patch-and-transform`.

pub mod auto_ready;
pub mod dummy;
pub mod environment_configs;
pub mod go_templating;
mod kept;
pub mod patch_and_transform;

use biplane_function::Registry;

/// Returns the built-in functions, by the names that pipelines use.
pub fn registry() -> Registry {
    Registry::default()
        .with("function-dummy", dummy::Dummy)
        .with("function-auto-ready", auto_ready::AutoReady::default())
        .with("function-environment-configs", environment_configs::EnvironmentConfigs)
        .with("function-go-templating", go_templating::GoTemplating::default())
        .with("function-patch-and-transform", patch_and_transform::PatchAndTransform::default())
}
