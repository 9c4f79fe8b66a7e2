//! What a recorder serves over HTTP: answers to questions, metrics and probes.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use biplane_function::metrics::{CONTENT_TYPE, Metrics};
use biplane_function::server::{Asked, Page, PlainHttp};
use biplane_recorder::api::Api;
use biplane_recorder::query::archive::{Archive, Error};
use biplane_recorder::query::stored::Stored;
use biplane_recorder::recorder::Recorder;

use crate::commands::records;

/// Serves at an address until the server is dropped. Nothing is served at an empty one.
pub(super) async fn serve(
    address: &str,
    store: &str,
    recorder: &Arc<Recorder>,
    metrics: &Metrics,
) -> Result<Option<PlainHttp>> {
    if address.is_empty() {
        return Ok(None);
    }
    let store = store.to_owned();
    let open = Arc::new(move || -> Result<Box<dyn Archive + Send>, Error> {
        Ok(Box::new(Stored::open(&store)?))
    });
    let api = Api::new(Vec::new(), open, Arc::new(records::now));
    let (recorder, metrics) = (Arc::clone(recorder), metrics.clone());
    let page = move |asked: Asked| {
        let (api, recorder, metrics) = (api.clone(), Arc::clone(&recorder), metrics.clone());
        async move {
            match asked.target.split('?').next().unwrap_or_default() {
                "/metrics" => {
                    Page { status: 200, content_type: CONTENT_TYPE, body: metrics.text() }
                }
                "/healthz" => probe(recorder.is_alive()),
                "/readyz" => probe(recorder.is_ready()),
                path if path.starts_with("/api/") => api.page(asked).await,
                _ => Page::text(404, "404 page not found\n"),
            }
        }
    };
    let served = PlainHttp::start_asking(address, page).await;
    served
        .map(Some)
        .with_context(|| format!("cannot serve answers, metrics and probes at {address}"))
}

/// The answer to a probe.
fn probe(state: Result<(), &str>) -> Page {
    match state {
        Ok(()) => Page::text(200, "ok"),
        Err(reason) => Page::text(500, format!("{reason}\n")),
    }
}
