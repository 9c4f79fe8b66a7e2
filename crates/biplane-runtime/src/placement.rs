//! Decides where a function runs.

use anyhow::{Context, Result, bail};
use biplane_go::fmt::quote;

use crate::docker;
use crate::function::{Function, PROCESS_COMMAND, RUNTIME};

const DEVELOPMENT_TARGET: &str = "render.crossplane.io/runtime-development-target";

/// Where a function runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In this process, as the built-in function of this name.
    InProcess(String),
    /// At a gRPC target.
    Development(String),
    /// As a local process.
    Process(Vec<String>),
    /// In a container.
    Docker(Box<docker::Options>),
}

impl Function {
    /// Decides where a function runs. `in_box` reports whether a function is built in. Upstream's
    /// functions run in process unless their annotations say otherwise or `builtin` is off.
    pub(crate) fn placement(
        &self,
        in_box: impl Fn(&str) -> bool,
        builtin: bool,
    ) -> Result<Placement> {
        match self.annotation(RUNTIME) {
            "" => {
                let upstream = self.upstream_name().filter(|name| in_box(name));
                match upstream {
                    Some(name) if builtin => Ok(Placement::InProcess(name.to_owned())),
                    _ => self.docker(),
                }
            }
            "Docker" => self.docker(),
            "Development" => {
                let target = self.annotation(DEVELOPMENT_TARGET);
                let target = if target.is_empty() { "localhost:9443" } else { target };
                Ok(Placement::Development(target.to_owned()))
            }
            "InProcess" => {
                let base = self.base_name();
                let name = [base, &self.name].into_iter().find(|name| in_box(name));
                let Some(name) = name else {
                    bail!("there is no function {} in the box to run in process", quote(base));
                };
                Ok(Placement::InProcess(name.to_owned()))
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
                Ok(Placement::Process(command))
            }
            other => {
                bail!("unsupported {RUNTIME:?} annotation value {} (unknown runtime)", quote(other))
            }
        }
    }

    fn docker(&self) -> Result<Placement> {
        Ok(Placement::Docker(Box::new(docker::Options::of(self)?)))
    }
}

#[cfg(test)]
mod tests;
