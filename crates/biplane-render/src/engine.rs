//! Renders a request: with the engine built in, with another binary that speaks the protocol, or with
//! such a binary in a container.

mod container;
mod foreign;

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use biplane_console::Deadline;
use biplane_engine::FixedClock;
use biplane_engine::render::{RenderError, Settings};
use biplane_engine::sources::CountingIds;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};
use biplane_runner::FunctionRunner;
use biplane_runtime::{Engine, Runners, Subject};

use crate::RENDER_TIME;

/// Renders with an engine, by a deadline.
pub(crate) async fn render(
    engine: &Engine,
    subject: Subject,
    request: RenderRequest,
    runners: &Runners,
    deadline: Deadline,
    wrap: impl FnOnce(Arc<dyn FunctionRunner>) -> Arc<dyn FunctionRunner>,
) -> Result<RenderResponse> {
    deadline.check().context(subject.attempted())?;
    match engine {
        Engine::BuiltIn => {
            let render = built_in(request, wrap(Arc::new(runners.named())), deadline);
            runners.unless_interrupted(render).await
        }
        Engine::Binary(binary) => {
            let render = async {
                let rendered = foreign::render(binary, request, runners, deadline).await;
                rendered.context(subject.attempted())
            };
            runners.unless_interrupted(render).await
        }
        Engine::Image(image) => container::render(image, request, runners, deadline).await,
    }
}

async fn built_in(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    deadline: Deadline,
) -> Result<RenderResponse> {
    let clock = FixedClock(RENDER_TIME.parse()?);
    // Random names are counted instead, so that the same input gives the same output.
    let ids = Arc::new(CountingIds::default());
    let settings = Settings { clock: Arc::new(clock), ids, timeout: deadline.remaining() };
    match biplane_engine::render::render(request, runner, &settings).await {
        Ok(response) => Ok(response),
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(anyhow!(text)),
    }
}
