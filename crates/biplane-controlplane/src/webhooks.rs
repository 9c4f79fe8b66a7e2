//! The webhooks that review Compositions and definitions (XRDs) for the API server, as those of
//! Crossplane v1 did.
//!
//! `core init` tells the API server about them, see [`crate::init`].

mod certificates;
mod compositions;
mod definitions;
mod review;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use biplane_cluster::Cluster;
use biplane_function::server::{self, Limits, ListenError, Listener, Network, Page, Posted};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

pub use certificates::UnusableCertificate;
use compositions::Compositions;
use definitions::Definitions;
use review::{Request, Verdict};

pub use crate::functions::CertificateSource;

/// The path at which Compositions are reviewed.
pub const COMPOSITIONS: &str = "/validate-apiextensions-crossplane-io-v1-composition";
/// The path at which definitions are reviewed.
pub const DEFINITIONS: &str =
    "/validate-apiextensions-crossplane-io-v1-compositeresourcedefinition";

/// The largest review. It has an object and its earlier state.
const LARGEST: usize = 7 << 20;
/// How long a review may take, from the moment in which it was asked for. The API server waits for
/// ten seconds.
const PATIENCE: Duration = Duration::from_secs(9);
/// The field manager of dry runs.
const MANAGER: &str = "crossplane";

/// How webhooks are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address to listen at, in Go's format: `:9443` is every address of the machine.
    pub address: String,
    /// The certificate and its key.
    pub certificates: CertificateSource,
    /// Whether Compositions are checked with the schemas of what they compose.
    pub schemas: bool,
}

/// Why webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address cannot be listened at.
    #[error("cannot serve webhooks at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: ListenError,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] UnusableCertificate),
}

/// What reviews objects of a kind.
#[async_trait]
trait Review: Send + Sync {
    /// Reviews an object by a time.
    async fn review(&self, request: &Request, by: Instant) -> Verdict;
}

type Reviews = BTreeMap<&'static str, Arc<dyn Review>>;

/// Webhooks that are being served. They end when this is dropped.
#[derive(Debug)]
pub struct Webhooks {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
    _following: Option<Following>,
}

/// A task that ends with this.
#[derive(Debug)]
struct Following(AbortHandle);

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Webhooks {
    /// Listens and serves webhooks.
    pub async fn start(cluster: Arc<dyn Cluster>, options: &Options) -> Result<Self, WebhookError> {
        let Options { address, certificates, schemas } = options;
        let listener = Listener::bind(Network::Tcp, address)
            .await
            .map_err(|source| WebhookError::Listen { address: address.clone(), source })?;
        Self::serve(listener, cluster, certificates, *schemas).await
    }

    /// Serves webhooks on a socket.
    pub async fn serve(
        listener: Listener,
        cluster: Arc<dyn Cluster>,
        certificates: &CertificateSource,
        schemas: bool,
    ) -> Result<Self, WebhookError> {
        let (tls, following) = certificates::load(&cluster, certificates).await?;
        let reviews = reviews(cluster, schemas);
        let (stop, stopped) = oneshot::channel::<()>();
        tracing::info!(address = listener.target(), "serving webhooks");
        let task = tokio::spawn(async move {
            let limits = Limits { connections: 128, streams: 16, ..Limits::default() };
            // It also stops when nobody is left who could tell it to.
            let stopped = async { drop(stopped.await) };
            let answer = move |posted: Posted| answer(Arc::clone(&reviews), posted);
            let served = server::serve_posts(listener, tls, &limits, LARGEST, stopped, answer);
            if let Err(error) = served.await {
                tracing::error!(%error, "webhooks are not served any more");
            }
        });
        Ok(Self { stop, task, _following: following.map(Following) })
    }

    /// Ends them, after the reviews that are running.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

fn reviews(cluster: Arc<dyn Cluster>, schemas: bool) -> Arc<Reviews> {
    let compositions = Compositions::new(Arc::clone(&cluster), schemas);
    let mut reviews = Reviews::new();
    reviews.insert(COMPOSITIONS, Arc::new(compositions));
    reviews.insert(DEFINITIONS, Arc::new(Definitions { cluster }));
    Arc::new(reviews)
}

/// Answers a request of an API server.
async fn answer(reviews: Arc<Reviews>, posted: Posted) -> Page {
    let path = posted.path.strip_suffix('/').unwrap_or(&posted.path);
    let Some(review) = reviews.get(path) else {
        return Page::text(404, "404 page not found\n");
    };
    let (status, answer) = match Request::parse(&posted.content_type, &posted.body) {
        Ok(request) => {
            let verdict = if request.is_of_the_end() {
                Verdict::default()
            } else {
                review.review(&request, posted.since + PATIENCE).await
            };
            for warning in &verdict.warnings {
                tracing::info!(webhook = path, object = request.name(), warning, "warned");
            }
            if let Some(denial) = &verdict.denial {
                let reason = denial.message();
                tracing::info!(webhook = path, object = request.name(), reason, "refused");
            }
            (200, request.answer(&verdict))
        }
        Err(unreadable) => {
            tracing::warn!(webhook = path, error = unreadable, "cannot read a review");
            (400, review::refusal(unreadable))
        }
    };
    Page { status, content_type: "application/json", body: answer.to_string() }
}
