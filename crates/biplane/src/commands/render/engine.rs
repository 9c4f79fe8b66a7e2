//! Renders a request: with the engine built in, or with another binary that speaks the protocol.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use biplane_engine::render::{RenderError, Settings};
use biplane_engine::{FixedClock, SystemIds};
use biplane_function::FunctionRunner;
use biplane_proto::render::v1alpha1::{RenderRequest, RenderResponse};

use super::RENDER_TIME;
use super::flags::EngineFlags;

/// Renders with the engine that the flags choose.
pub(super) async fn render(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    flags: &EngineFlags,
) -> Result<RenderResponse> {
    if let Some(flag) = image_flag(flags) {
        bail!(
            "{flag} needs Docker, which is not supported yet; leave it out to render with the engine built in, or pass --crossplane-binary"
        );
    }
    if flags.crossplane_binary.is_some() {
        bail!(
            "--crossplane-binary is not supported yet; leave it out to render with the engine built in"
        );
    }
    let clock = FixedClock(RENDER_TIME.parse()?);
    let settings =
        Settings { clock: Arc::new(clock), ids: Arc::new(SystemIds), timeout: flags.timeout };
    match biplane_engine::render::render(request, runner, &settings).await {
        Ok(response) => Ok(response),
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(anyhow!(text)),
    }
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
