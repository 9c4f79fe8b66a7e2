//! Prepares a cluster for the control plane: namespace, certificates, CRDs, webhooks, stored versions
//! and default objects.
//!
//! Everything that is there already is kept, so a second run writes nothing.

pub mod certificates;
mod defaults;
mod definitions;
mod secrets;
mod stored_versions;
#[cfg(test)]
mod tests;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_cluster::{Cluster, Optional as _, ReadError, Source, Write, WriteError};
use biplane_engine::Clock;
use biplane_model::{Gvk, Object, ObjectId};
pub use biplane_schema::own_kinds::Features;
use tokio::time::Instant;

pub use webhooks::WebhookUrl;

/// The field manager of all writes.
const MANAGER: &str = "crossplane";
/// The time limit of one request.
const REQUEST: Duration = Duration::from_secs(30);

/// What to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace of the control plane. It is created if it does not exist.
    pub namespace: String,
    /// The service account of the control plane. The client certificate names it.
    pub service_account: String,
    /// A folder with the CRDs to install. Without one, the built-in CRDs are installed.
    pub crds: Option<PathBuf>,
    /// What Compositions can have, according to the built-in CRDs.
    pub features: Features,
    /// How long to wait until all CRDs are served.
    pub crds_within: Duration,
    /// The Secrets with the certificates.
    pub secrets: SecretNames,
    /// The webhooks of the control plane. Without them, no server certificate is made.
    pub webhooks: Option<Webhooks>,
    /// The packages to install.
    pub packages: Packages,
    /// The names of the managed resources to activate.
    pub activate: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        let namespace = "crossplane-system".to_owned();
        Self {
            service_account: "crossplane".to_owned(),
            crds: None,
            features: Features::default(),
            crds_within: Duration::from_mins(2),
            secrets: SecretNames::default(),
            webhooks: Some(Webhooks {
                at: Address::Service {
                    name: "crossplane-webhooks".to_owned(),
                    namespace: namespace.clone(),
                    port: 9443,
                },
                validation: false,
            }),
            packages: Packages::default(),
            activate: Vec::new(),
            namespace,
        }
    }
}

/// The names of the Secrets with the certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretNames {
    /// The certificate authority.
    pub authority: String,
    /// The certificate of the webhook server.
    pub server: String,
    /// The certificate that the control plane shows to functions.
    pub client: String,
}

impl Default for SecretNames {
    fn default() -> Self {
        Self {
            authority: "crossplane-root-ca".to_owned(),
            server: "crossplane-tls-server".to_owned(),
            client: "crossplane-tls-client".to_owned(),
        }
    }
}

/// The webhooks of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhooks {
    /// Where the API server finds them.
    pub at: Address,
    /// Whether the API server asks them about Compositions and definitions. If not, it is told to
    /// stop, should an earlier release have told it to ask.
    pub validation: bool,
}

/// Where webhooks are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// At a Service.
    Service {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Its port.
        port: u16,
    },
    /// At a URL, for control planes that no Service leads to.
    Url(WebhookUrl),
}

/// The packages to install, by their images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packages {
    /// Providers.
    pub providers: Vec<String>,
    /// Configurations.
    pub configurations: Vec<String>,
    /// Functions.
    pub functions: Vec<String>,
}

/// Prepares a cluster.
pub async fn run(cluster: Arc<dyn Cluster>, clock: &dyn Clock, options: &Options) -> Result<()> {
    let target = Target { cluster, clock };
    target.ensure_namespace(&options.namespace).await?;
    secrets::ensure(&target, options).await?;
    let validation = options.webhooks.as_ref().filter(|webhooks| webhooks.validation);
    if validation.is_none() {
        webhooks::remove(&target).await?;
    }
    // Files are read before anything is applied.
    let crds = definitions::load(options.crds.as_deref(), options.features)?;
    definitions::install(&target, &crds, options.crds_within).await?;
    if let Some(wanted) = validation {
        let authority = secrets::server_authority(&target, options).await?;
        webhooks::ensure(&target, &wanted.at, &authority).await?;
    }
    stored_versions::migrate(&target, &crds).await?;
    defaults::ensure(&target, options).await
}

/// The cluster that is prepared.
struct Target<'a> {
    cluster: Arc<dyn Cluster>,
    clock: &'a dyn Clock,
}

/// The deadline of a request that is sent now.
fn soon() -> Instant {
    Instant::now() + REQUEST
}

impl Target<'_> {
    /// Reads an object. `None` if it does not exist.
    async fn find(&self, id: &ObjectId) -> Result<Option<Object>, ReadError> {
        self.cluster.get(id, Source::Live, soon()).await.optional()
    }

    /// Creates an object. Returns whether it did not exist before.
    async fn create(&self, object: Object) -> Result<bool, WriteError> {
        let id = object.id();
        match self.cluster.create(object, &Write::by(MANAGER), soon()).await {
            Ok(_) => {
                tracing::info!(object = %id, "created");
                Ok(true)
            }
            Err(WriteError::AlreadyExists(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates an object unless it exists.
    async fn ensure(&self, object: Object) -> Result<()> {
        if self.find(&object.id()).await?.is_none() {
            self.create(object).await?;
        }
        Ok(())
    }

    async fn ensure_namespace(&self, name: &str) -> Result<()> {
        let namespace = object(serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }));
        let attempted = || format!("cannot create namespace {name}");
        match self.find(&namespace.id()).await {
            Ok(None) => self.create(namespace).await.map(drop).with_context(attempted),
            // In a pod, the namespace exists, and the service account may know nothing about
            // namespaces.
            Ok(Some(_)) | Err(ReadError::Forbidden(_)) => Ok(()),
            Err(error) => Err(error).with_context(attempted),
        }
    }
}

/// A cluster-scoped object.
fn cluster_scoped(api_version: &str, kind: &str, name: &str) -> ObjectId {
    ObjectId::new(Gvk::new(api_version, kind), "", name)
}

/// An object that is written here as a literal.
fn object(value: serde_json::Value) -> Object {
    Object::from_value(value).unwrap_or_default()
}
