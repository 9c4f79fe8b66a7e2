//! The certificate that webhooks are served with: from files or from a Secret, and exchanged without
//! a restart.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::{Change, Cluster, Query, ReadError, Source, Subscribe};
use biplane_engine::pipeline::secret_data;
use biplane_function::server::ReloadingTls;
use biplane_function::tls::CertificateError;
use biplane_model::{Gvk, Object, ObjectId};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::functions::CertificateSource;

/// The time limit of one request.
const REQUEST: Duration = Duration::from_secs(30);
/// How long to wait before a Secret is watched again.
const PAUSE: Duration = Duration::from_secs(5);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableCertificate {
    /// The files cannot be used.
    #[error("cannot load server TLS certificate: {0}")]
    Files(CertificateError),
    /// The Secret cannot be read.
    #[error("cannot read the server TLS certificate in Secret {id}: {source}")]
    Unreadable {
        /// Namespace and name.
        id: String,
        /// Why not.
        source: ReadError,
    },
    /// The Secret cannot be used.
    #[error("cannot load the server TLS certificate in Secret {id}: {reason}")]
    Secret {
        /// Namespace and name.
        id: String,
        /// Why not.
        reason: String,
    },
}

/// The contents of `tls.crt` and `tls.key`.
type Pair = [Vec<u8>; 2];

/// Loads a certificate. What is returned with it follows the Secret.
pub(super) async fn load(
    cluster: &Arc<dyn Cluster>,
    source: &CertificateSource,
) -> Result<(Arc<ReloadingTls>, Option<AbortHandle>), UnusableCertificate> {
    let (namespace, name) = match source {
        CertificateSource::Folder(folder) => {
            let tls = ReloadingTls::read_https(folder).map_err(UnusableCertificate::Files)?;
            return Ok((Arc::new(tls), None));
        }
        CertificateSource::Secret { namespace, name } => (namespace, name),
    };
    let id = format!("{namespace}/{name}");
    let secret = cluster
        .get(&ObjectId::new(secrets(), namespace, name), Source::Live, Instant::now() + REQUEST)
        .await
        .map_err(|source| UnusableCertificate::Unreadable { id: id.clone(), source })?;
    let unusable = |reason: String| UnusableCertificate::Secret { id: id.clone(), reason };
    let pair = pair(&secret).map_err(unusable)?;
    let tls = ReloadingTls::https(&pair[0], &pair[1]);
    let tls = Arc::new(tls.map_err(|error| unusable(error.to_string()))?);
    let query = Query { namespace: namespace.clone(), name: name.clone(), ..Query::default() };
    let following = tokio::spawn(follow(Arc::clone(cluster), query, Arc::clone(&tls), pair));
    Ok((tls, Some(following.abort_handle())))
}

fn secrets() -> Gvk {
    Gvk::new("v1", "Secret")
}

fn pair(secret: &Object) -> Result<Pair, String> {
    let mut data = secret_data(secret).map_err(|failure| failure.to_string())?;
    Ok(["tls.crt", "tls.key"].map(|field| data.remove(field).unwrap_or_default()))
}

/// Exchanges the certificate whenever the Secret has another one.
async fn follow(cluster: Arc<dyn Cluster>, query: Query, tls: Arc<ReloadingTls>, mut used: Pair) {
    loop {
        let by = Instant::now() + REQUEST;
        match cluster.subscribe(&secrets(), &query, &Subscribe::default(), by).await {
            Ok(mut changes) => {
                while let Some(change) = changes.next().await {
                    let Change::Changed { object, .. } = change else { continue };
                    exchange(&object, &tls, &mut used);
                }
            }
            Err(error) => {
                tracing::warn!(%error, secret = query.name, "cannot watch the server TLS certificate");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn exchange(secret: &Object, tls: &ReloadingTls, used: &mut Pair) {
    let exchanged = pair(secret).and_then(|pair| {
        if pair != *used {
            tls.exchange(&pair[0], &pair[1]).map_err(|error| error.to_string())?;
            tracing::info!(secret = secret.name(), "the server TLS certificate was exchanged");
            *used = pair;
        }
        Ok(())
    });
    if let Err(error) = exchanged {
        tracing::warn!(error, secret = secret.name(), "cannot use the new server TLS certificate");
    }
}
