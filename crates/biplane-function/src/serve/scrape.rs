//! Serves metrics over plain HTTP. Every path returns all of them.

use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::server::{Page, PlainHttp};

/// Serves the metrics until the server is dropped. Returns `None` if binding fails.
pub(super) async fn serve(address: &str, metrics: Metrics) -> Option<PlainHttp> {
    let page =
        move |_: &str| Page { status: 200, content_type: CONTENT_TYPE, body: metrics.text() };
    match PlainHttp::start(address, page).await {
        Ok(server) => Some(server),
        Err(error) => {
            tracing::info!(address, %error, "cannot serve metrics");
            None
        }
    }
}
