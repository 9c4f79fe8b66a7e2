//! Renders a request: with the engine built in, or with another binary that speaks the protocol.

mod foreign;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use biplane_engine::render::{RenderError, Settings};
use biplane_engine::{FixedClock, SystemIds};
use biplane_function::FunctionRunner;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};

use super::RENDER_TIME;
use super::flags::EngineFlags;
use super::functions::{self, Runners};

/// Someone asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// What is rendered, as errors call it.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Composite,
    Operation,
}

/// Renders with the engine that the flags choose.
pub(super) async fn render(
    what: What,
    request: RenderRequest,
    runners: &Runners,
    flags: &EngineFlags,
    wrap: impl FnOnce(Arc<dyn FunctionRunner>) -> Arc<dyn FunctionRunner>,
) -> Result<RenderResponse> {
    if let Some(flag) = image_flag(flags) {
        bail!(
            "{flag} needs Docker, which is not supported yet; leave it out to render with the engine built in, or pass --crossplane-binary"
        );
    }
    let rendered = async {
        match &flags.crossplane_binary {
            Some(binary) if !is_ourselves(binary) => {
                let attempted = match what {
                    What::Composite => "cannot render composite resource",
                    What::Operation => "cannot render operation",
                };
                foreign::render(binary, request, runners, flags.timeout).await.context(attempted)
            }
            _ => built_in(request, wrap(Arc::new(functions::named(runners))), flags).await,
        }
    };
    unless_interrupted(runners, rendered).await
}

/// Waits for something that calls functions, but no longer than until someone asks to stop.
/// Programs must not outlive the command.
pub(super) async fn unless_interrupted<T>(
    runners: &Runners,
    done: impl Future<Output = Result<T>>,
) -> Result<T> {
    let interrupted = runners.values().find_map(|running| running.interrupted.clone());
    let Some(mut interrupted) = interrupted else { return done.await };
    tokio::select! {
        done = done => done,
        Ok(_) = interrupted.wait_for(|interrupted| *interrupted) => Err(Interrupted.into()),
    }
}

async fn built_in(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    flags: &EngineFlags,
) -> Result<RenderResponse> {
    let clock = FixedClock(RENDER_TIME.parse()?);
    let settings =
        Settings { clock: Arc::new(clock), ids: Arc::new(SystemIds), timeout: flags.timeout };
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

fn image_flag(flags: &EngineFlags) -> Option<&'static str> {
    if flags.crossplane_version.is_some() {
        Some("--crossplane-version")
    } else if flags.crossplane_image.is_some() {
        Some("--crossplane-image")
    } else {
        None
    }
}
