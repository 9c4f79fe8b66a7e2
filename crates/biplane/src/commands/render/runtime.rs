//! Where a Function says that it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value};

use super::build::Build;
use super::docker;

pub(super) const RUNTIME: &str = "render.crossplane.io/runtime";
const DEVELOPMENT_TARGET: &str = "render.crossplane.io/runtime-development-target";
pub(super) const PROCESS_COMMAND: &str = "render.crossplane.io/runtime-process-command";

/// A Function of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub name: String,
    pub package: String,
    pub annotations: BTreeMap<String, String>,
    /// What it is made of, if it is part of a project.
    pub build: Option<Arc<Build>>,
}

/// Where a function runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    /// In this process, as the function of this name in the box.
    InProcess(String),
    /// At a gRPC target.
    Development(String),
    /// As a program on this machine.
    Process(Vec<String>),
    /// In a container.
    Docker(Box<docker::Options>),
}

impl Function {
    pub(super) fn from_object(object: &Object) -> Self {
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

    pub(super) fn annotation(&self, key: &str) -> &str {
        self.annotations.get(key).map_or("", String::as_str)
    }

    /// Where this function runs. `in_box` knows the functions in the box; those of upstream run in
    /// process unless they say otherwise or `builtin` is off.
    pub(super) fn runtime(&self, in_box: impl Fn(&str) -> bool, builtin: bool) -> Result<Runtime> {
        match self.annotation(RUNTIME) {
            "" => {
                let upstream = self.upstream_name().filter(|name| in_box(name));
                match upstream {
                    Some(name) if builtin => Ok(Runtime::InProcess(name.to_owned())),
                    _ => self.docker(),
                }
            }
            "Docker" => self.docker(),
            "Development" => {
                let target = self.annotation(DEVELOPMENT_TARGET);
                let target = if target.is_empty() { "localhost:9443" } else { target };
                Ok(Runtime::Development(target.to_owned()))
            }
            "InProcess" => {
                let (_, base) = self.repository();
                let name = [base, &self.name].into_iter().find(|name| in_box(name));
                let Some(name) = name else {
                    bail!("there is no function {} in the box to run in process", quote(base));
                };
                Ok(Runtime::InProcess(name.to_owned()))
            }
            "Process" => {
                let command = self.annotation(PROCESS_COMMAND);
                if command.is_empty() {
                    bail!("there is no {PROCESS_COMMAND:?} annotation to say what to start");
                }
                let command: Vec<String> = serde_json::from_str(command).with_context(|| {
                    format!("the value of {PROCESS_COMMAND:?} is not a JSON array of strings")
                })?;
                if command.is_empty() {
                    bail!("the value of {PROCESS_COMMAND:?} names no program");
                }
                Ok(Runtime::Process(command))
            }
            other => {
                bail!("unsupported {RUNTIME:?} annotation value {} (unknown runtime)", quote(other))
            }
        }
    }

    fn docker(&self) -> Result<Runtime> {
        Ok(Runtime::Docker(Box::new(docker::Options::of(self)?)))
    }

    /// The path and the last part of the package's repository, without registry, tag and digest.
    fn repository(&self) -> (&str, &str) {
        let package = self.package.split('@').next().unwrap_or_default();
        let slash = package.rfind('/').map_or(0, |at| at + 1);
        let (path, base) = package.split_at(slash);
        let base = base.split(':').next().unwrap_or_default();
        (path.trim_end_matches('/'), base)
    }

    /// The function's name, if the package is one of upstream's own. What lies deeper in a registry
    /// than upstream's packages do may be anyone's.
    pub(super) fn upstream_name(&self) -> Option<&str> {
        let (path, base) = self.repository();
        let is_registry = |part: &str| part.contains(['.', ':']) || part == "localhost";
        let organisation = match path.split_once('/') {
            Some((registry, organisation)) if is_registry(registry) => organisation,
            _ => path,
        };
        matches!(organisation, "crossplane" | "crossplane-contrib").then_some(base)
    }
}

/// Sets annotations on every function, over what it says itself.
pub(super) fn override_annotations(functions: &mut [Function], entries: &[String]) -> Result<()> {
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

#[cfg(test)]
mod tests;
