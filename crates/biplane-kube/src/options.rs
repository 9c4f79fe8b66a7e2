//! Where the API server is, who asks, and what the limits are.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::metrics::Counters;

/// How to connect to an API server, and how to use it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kubeconfig file. Without one, the usual places are tried: the file that `KUBECONFIG`
    /// names, `~/.kube/config`, the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig. Without one, its current context.
    pub context: Option<String>,
    /// How requests introduce themselves. The server's audit log shows it.
    pub user_agent: String,
    /// How many requests are in flight at most. Watches do not count.
    pub in_flight: usize,
    /// How long a watch goes on without subscribers.
    pub linger: Duration,
    /// Where requests are counted.
    pub counters: Counters,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            user_agent: concat!("biplane/", env!("CARGO_PKG_VERSION")).to_owned(),
            in_flight: 64,
            linger: Duration::from_mins(1),
            counters: Counters::default(),
        }
    }
}

/// Why a cluster cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig file is missing or wrong.
    #[error("cannot use kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no kubeconfig, and this is no pod.
    #[error("cannot find out which cluster to use: {0}")]
    Nowhere(Box<dyn std::error::Error + Send + Sync>),
    /// The address, a certificate, a key or the credentials cannot be used.
    #[error("cannot use the configuration of the cluster: {0}")]
    Configuration(Box<dyn std::error::Error + Send + Sync>),
    /// The API server is behind a proxy.
    #[error("cannot connect through the proxy {0}: proxies are not supported")]
    Proxy(String),
}

impl ConnectError {
    pub(crate) fn configuration(
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Configuration(error.into())
    }
}

/// An API server with a token, for tests and development.
#[derive(Clone)]
pub struct Endpoint {
    /// `https://host:port`.
    pub url: String,
    /// The certificate authority of the server, as PEM.
    pub ca_pem: String,
    /// A bearer token.
    pub token: String,
}

/// The token is a secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Reads the configuration that the options name.
pub(crate) async fn configuration(options: &Options) -> Result<Config, ConnectError> {
    let choice =
        KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &options.kubeconfig {
        let wrong = |source: kube::config::KubeconfigError| ConnectError::Kubeconfig {
            path: path.clone(),
            source: source.into(),
        };
        let file = Kubeconfig::read_from(path).map_err(wrong)?;
        return Config::from_custom_kubeconfig(file, &choice).await.map_err(wrong);
    }
    if options.context.is_some() {
        return Config::from_kubeconfig(&choice)
            .await
            .map_err(|error| ConnectError::Nowhere(error.into()));
    }
    Config::infer().await.map_err(|error| ConnectError::Nowhere(error.into()))
}

/// The configuration of an endpoint.
pub(crate) fn endpoint(endpoint: &Endpoint) -> Result<Config, ConnectError> {
    let mut config = Config::new(endpoint.url.parse().map_err(ConnectError::configuration)?);
    let certificates: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(endpoint.ca_pem.as_bytes())
            .map(|certificate| certificate.map(|der| der.as_ref().to_vec()))
            .collect();
    config.root_cert = Some(certificates.map_err(ConnectError::configuration)?);
    config.auth_info.token = Some(endpoint.token.clone().into());
    Ok(config)
}

/// The TLS settings of a configuration.
pub(crate) fn tls(config: &Config) -> Result<Arc<rustls::ClientConfig>, ConnectError> {
    use kube::client::ConfigExt as _;
    // kube takes the provider of the process. This fails if there is one already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    config.rustls_client_config().map(Arc::new).map_err(ConnectError::configuration)
}
