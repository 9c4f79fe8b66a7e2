//! A Function as described by the input.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value};
use biplane_package::reference::organisation_and_name;

use crate::build_spec::BuildSpec;

/// The annotation that selects where a function runs.
pub const RUNTIME: &str = "render.crossplane.io/runtime";
pub(crate) const PROCESS_COMMAND: &str = "render.crossplane.io/runtime-process-command";

/// A Function of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its package, an image.
    pub package: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// How it is built, if it is part of a project.
    pub(crate) build: Option<Arc<BuildSpec>>,
}

impl Function {
    /// A Function of a package, with annotations.
    pub fn new(name: String, package: String, annotations: BTreeMap<String, String>) -> Self {
        Self { name, package, annotations, build: None }
    }

    /// A Function that is not listed in a file and runs in process.
    pub fn in_process(name: String) -> Self {
        let annotations = [(RUNTIME.to_owned(), "InProcess".to_owned())];
        Self::new(name.clone(), name, annotations.into())
    }

    /// Reads a Function object.
    pub fn from_object(object: &Object) -> Self {
        let annotations = object.at(&["metadata", "annotations"]).and_then(Value::as_object);
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        Self {
            name: object.name().to_owned(),
            package: object.str_at(&["spec", "package"]).to_owned(),
            annotations: annotations
                .into_iter()
                .flatten()
                .map(|(key, value)| (key.clone(), text(value)))
                .collect(),
            build: None,
        }
    }

    pub(crate) fn annotation(&self, key: &str) -> &str {
        self.annotations.get(key).map_or("", String::as_str)
    }

    /// Whether it is part of a project.
    pub fn is_of_project(&self) -> bool {
        self.build.is_some()
    }

    /// Whether a file of the project is part of this function.
    pub fn is_made_of(&self, file: &Path) -> bool {
        self.build.as_ref().is_some_and(|build| build.is_made_of(file))
    }

    /// The base name of the package.
    pub(crate) fn base_name(&self) -> &str {
        organisation_and_name(&self.package).1
    }

    /// The function's name, if the package is published by upstream. A package with a longer path
    /// than upstream's may be from any publisher.
    pub(crate) fn upstream_name(&self) -> Option<&str> {
        let (organisation, name) = organisation_and_name(&self.package);
        matches!(organisation, "crossplane" | "crossplane-contrib").then_some(name)
    }
}

/// Sets annotations on every function. They override the function's own.
pub fn override_annotations(functions: &mut [Function], entries: &[String]) -> Result<()> {
    for function in functions {
        for entry in entries {
            let Some((key, value)) = entry.split_once('=') else {
                bail!(
                    "cannot apply function annotation overrides: invalid function annotation format {}, expected key=value",
                    quote(entry)
                );
            };
            function.annotations.insert(key.to_owned(), value.to_owned());
        }
    }
    Ok(())
}
