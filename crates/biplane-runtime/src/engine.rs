//! Selects the engine that renders, and describes what it needs to run.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result, bail};
use biplane_console::Interrupted;

use crate::docker::{self, PullPolicy};
use crate::function::Function;

/// The repository of the engine's images.
const IMAGES: &str = "xpkg.crossplane.io/crossplane/crossplane";
/// The command of an engine in a container, as errors name it.
pub const IN_DOCKER: &str = "crossplane internal render in Docker";

/// The kind of object that is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A composite resource.
    Composite,
    /// An Operation.
    Operation,
}

impl Subject {
    /// The name of the attempted action in errors.
    pub fn attempted(self) -> &'static str {
        match self {
            Self::Composite => "cannot render composite resource",
            Self::Operation => "cannot render operation",
        }
    }
}

/// The user's options for the engine.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// The release whose image is used.
    pub version: Option<String>,
    /// The image that is used.
    pub image: Option<String>,
    /// The binary that is used.
    pub binary: Option<PathBuf>,
    /// The Docker network of the engine's container.
    pub network: Option<String>,
    /// When the engine's image is pulled.
    pub pull: Option<PullPolicy>,
}

/// The engine that renders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engine {
    /// This program.
    BuiltIn,
    /// Another binary that implements the protocol.
    Binary(PathBuf),
    /// Such a binary in a container.
    Image(Image),
}

/// An engine in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The image.
    pub reference: String,
    /// When it is pulled.
    pub pull: PullPolicy,
    /// The network to join. If unset, the functions' network or a new one.
    pub network: Option<String>,
    /// The name of the attempted action in errors.
    pub attempted: &'static str,
}

impl Image {
    /// The error for an engine that could not be run.
    pub fn failed(&self, error: Error) -> Error {
        if error.is::<Interrupted>() {
            return error;
        }
        error.context(format!("{IN_DOCKER} returned error with output: ")).context(self.attempted)
    }

    /// The network to join: its own, or that of the first function that asks for one.
    pub(crate) fn network<'a>(&'a self, functions: &'a [Function]) -> Option<&'a str> {
        self.network.as_deref().or_else(|| functions.iter().find_map(docker::network))
    }
}

impl Engine {
    /// The engine that the user chose.
    pub fn choose(options: &EngineOptions, subject: Subject) -> Self {
        if let Some(binary) = &options.binary {
            return if is_this_program(binary) {
                Self::BuiltIn
            } else {
                Self::Binary(binary.clone())
            };
        }
        let reference = match (&options.image, &options.version) {
            (Some(image), _) => image.clone(),
            (None, Some(version)) => format!("{IMAGES}:{version}"),
            (None, None) if options.network.is_none() && options.pull.is_none() => {
                return Self::BuiltIn;
            }
            (None, None) => format!("{IMAGES}:stable"),
        };
        Self::Image(Image {
            reference,
            pull: options.pull.unwrap_or_default(),
            network: options.network.clone().filter(|name| !name.is_empty()),
            attempted: subject.attempted(),
        })
    }

    /// Whether it runs in a container.
    pub fn is_image(&self) -> bool {
        matches!(self, Self::Image(_))
    }

    /// Fails if the engine cannot call back to this machine, which is required to seed and capture
    /// context.
    pub fn check_context_support(&self, docker: &docker::Environment) -> Result<()> {
        if self.is_image() && docker.is_remote() {
            bail!(
                "context handling via --context-values/--context-files/--include-context requires a local Docker daemon or Crossplane controller binary"
            );
        }
        Ok(())
    }
}

/// Whether a path leads to this program, which need not be started again.
fn is_this_program(binary: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let ours = std::env::current_exe().ok().and_then(|path| real(&path));
    ours.is_some() && ours == real(binary)
}

#[cfg(test)]
mod tests;
