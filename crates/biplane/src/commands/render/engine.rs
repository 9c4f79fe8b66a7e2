//! Renders a request: with the engine built in, with another binary that speaks the protocol, or with
//! such a one in a container.

mod container;
mod foreign;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use biplane_engine::FixedClock;
use biplane_engine::render::{RenderError, Settings};
use biplane_engine::sources::CountingIds;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::FunctionRunner;

use super::RENDER_TIME;
use super::docker::{self, Environment, PullPolicy};
use super::flags::EngineFlags;
use super::interrupt::Interrupted;
use super::runners::Runners;
use super::runtime::Function;

use container::IN_DOCKER;

/// Where images of the engine are published.
const IMAGES: &str = "xpkg.crossplane.io/crossplane/crossplane";

/// What is rendered, as errors call it.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Composite,
    Operation,
}

impl What {
    pub(super) fn attempted(self) -> &'static str {
        match self {
            Self::Composite => "cannot render composite resource",
            Self::Operation => "cannot render operation",
        }
    }
}

/// What renders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    BuiltIn,
    Binary(PathBuf),
    Image(Image),
}

/// An engine in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    pub reference: String,
    pub pull: PullPolicy,
    /// The network to join; a new one if unset.
    pub network: Option<String>,
    attempted: &'static str,
}

impl Image {
    /// Says that it could not even be run.
    pub(super) fn failed(&self, error: Error) -> Error {
        if error.is::<Interrupted>() {
            return error;
        }
        error.context(format!("{IN_DOCKER} returned error with output: ")).context(self.attempted)
    }
}

impl Engine {
    /// The engine that flags choose. Functions may have a network that it must join.
    pub(super) fn of(flags: &EngineFlags, what: What, functions: &[Function]) -> Self {
        if let Some(binary) = &flags.crossplane_binary {
            return if is_ourselves(binary) { Self::BuiltIn } else { Self::Binary(binary.clone()) };
        }
        let reference = match (&flags.crossplane_image, &flags.crossplane_version) {
            (Some(image), _) => image.clone(),
            (None, Some(version)) => format!("{IMAGES}:{version}"),
            (None, None)
                if flags.crossplane_docker_network.is_none()
                    && flags.crossplane_pull_policy.is_none() =>
            {
                return Self::BuiltIn;
            }
            (None, None) => format!("{IMAGES}:stable"),
        };
        let network = flags.crossplane_docker_network.as_deref().filter(|name| !name.is_empty());
        let network = network.or_else(|| functions.iter().find_map(docker::network));
        Self::Image(Image {
            reference,
            pull: flags.crossplane_pull_policy.unwrap_or_default(),
            network: network.map(str::to_owned),
            attempted: what.attempted(),
        })
    }

    pub(super) fn is_image(&self) -> bool {
        matches!(self, Self::Image(_))
    }
}

/// Whether the engine that flags choose can call back for context.
pub(super) fn check_context_support(flags: &EngineFlags) -> Result<()> {
    let image = Engine::of(flags, What::Composite, &[]).is_image();
    if image && Environment::of_process().is_remote() {
        bail!(
            "context handling via --context-values/--context-files/--include-context requires a local Docker daemon or Crossplane controller binary"
        );
    }
    Ok(())
}

/// Renders with the engine that the flags choose.
pub(super) async fn render(
    what: What,
    request: RenderRequest,
    runners: &Runners,
    flags: &EngineFlags,
    wrap: impl FnOnce(Arc<dyn FunctionRunner>) -> Arc<dyn FunctionRunner>,
) -> Result<RenderResponse> {
    let limit = flags.timeout.saturating_sub(runners.spent);
    match Engine::of(flags, what, &[]) {
        Engine::BuiltIn => {
            let render = built_in(request, wrap(Arc::new(runners.named())), limit);
            runners.unless_interrupted(render).await
        }
        Engine::Binary(binary) => {
            let render = async {
                let rendered = foreign::render(&binary, request, runners, limit).await;
                rendered.context(what.attempted())
            };
            runners.unless_interrupted(render).await
        }
        Engine::Image(image) => container::render(&image, request, runners, limit).await,
    }
}

async fn built_in(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    timeout: Duration,
) -> Result<RenderResponse> {
    let clock = FixedClock(RENDER_TIME.parse()?);
    // What has no other name to go by is counted: the same input gives the same output.
    let ids = Arc::new(CountingIds::default());
    let settings = Settings { clock: Arc::new(clock), ids, timeout };
    match biplane_engine::render::render(request, runner, &settings).await {
        Ok(response) => Ok(response),
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(anyhow!(text)),
    }
}

/// Whether a path leads to this very program, which need not be started once more.
fn is_ourselves(binary: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let ours = std::env::current_exe().ok().and_then(|path| real(&path));
    ours.is_some() && ours == real(binary)
}

#[cfg(test)]
mod tests;
