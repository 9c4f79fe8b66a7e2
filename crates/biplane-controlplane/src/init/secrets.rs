//! The Secrets with the certificates of the control plane.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::{Part, Patch, Precondition, Write, WriteError};
use biplane_engine::pipeline::secret_data;
use biplane_model::{Gvk, Object, ObjectId};
use jiff::Timestamp;
use serde_json::json;

use super::certificates::{Authority, Pair, Purpose};
use super::{Address, MANAGER, Options, Target, soon};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";

/// How often a Secret is looked at again after somebody else wrote it.
const ATTEMPTS: usize = 5;

type Data = BTreeMap<String, Vec<u8>>;

/// Makes the certificates that are missing, incomplete or about to expire.
pub(super) async fn ensure(target: &Target<'_>, options: &Options) -> Result<()> {
    let Options { namespace, secrets, .. } = options;
    let (authority, pem) = authority(target, namespace, &secrets.authority)
        .await
        .context("cannot load or generate certificate signer")?;
    if authority.is_expiring(target.clock.now()) {
        tracing::warn!(
            secret = secrets.authority,
            "the certificate authority expires soon. Delete its Secret and run this again to \
             replace it and all certificates that it has signed"
        );
    }
    let authority = std::sync::Arc::new(authority);
    if let Some(webhooks) = &options.webhooks {
        let names = match &webhooks.at {
            Address::Service { name, namespace, .. } => {
                vec![name.clone(), format!("{name}.{namespace}"), format!("{name}.{namespace}.svc")]
            }
            Address::Url(url) => vec![url.host().to_owned()],
        };
        let leaf = Leaf { namespace, name: &secrets.server, names, purpose: Purpose::Server };
        leaf.ensure(target, &authority, &pem)
            .await
            .context("could not generate server certificate")?;
    }
    let names = vec![format!("{}.{namespace}", options.service_account)];
    let leaf = Leaf { namespace, name: &secrets.client, names, purpose: Purpose::Client };
    leaf.ensure(target, &authority, &pem).await.context("could not generate client certificate")
}

/// Returns the authority in a Secret, with the PEM of its certificate. Makes one if there is none.
async fn authority(
    target: &Target<'_>,
    namespace: &str,
    name: &str,
) -> Result<(Authority, Vec<u8>)> {
    for _ in 0..ATTEMPTS {
        let (secret, data) = read(target, namespace, name).await?;
        if let (Some(certificate), Some(key)) = (filled(&data, CERTIFICATE), filled(&data, KEY)) {
            return Ok((Authority::parse(certificate, key)?, certificate.to_vec()));
        }
        let now = target.clock.now();
        let Pair { certificate, key } = blocking(move || Authority::generate(now)).await?;
        let data = [(CERTIFICATE, certificate.as_bytes()), (KEY, key.as_bytes())];
        if write(target, namespace, name, secret.as_ref(), &data).await? {
            let authority = Authority::parse(certificate.as_bytes(), key.as_bytes())?;
            return Ok((authority, certificate.into_bytes()));
        }
    }
    bail!("cannot create or update secret: {name}: others keep changing it")
}

/// A certificate that the authority signs.
struct Leaf<'a> {
    namespace: &'a str,
    name: &'a str,
    names: Vec<String>,
    purpose: Purpose,
}

impl Leaf<'_> {
    async fn ensure(
        &self,
        target: &Target<'_>,
        authority: &std::sync::Arc<Authority>,
        authority_pem: &[u8],
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let (secret, data) = read(target, self.namespace, self.name).await?;
            let now = target.clock.now();
            let Some(reason) = objection(authority, &data, &self.names, now) else {
                return Ok(());
            };
            tracing::info!(secret = self.name, reason, "making a certificate");
            let (authority, names) = (std::sync::Arc::clone(authority), self.names.clone());
            let purpose = self.purpose;
            let Pair { certificate, key } =
                blocking(move || authority.issue(&names, purpose, now)).await?;
            let data = [
                (CERTIFICATE, certificate.as_bytes()),
                (KEY, key.as_bytes()),
                (AUTHORITY, authority_pem),
            ];
            if write(target, self.namespace, self.name, secret.as_ref(), &data).await? {
                return Ok(());
            }
        }
        bail!("cannot create or update secret: {}: others keep changing it", self.name)
    }
}

/// Why the certificate of a Secret must be replaced.
fn objection(
    authority: &Authority,
    data: &Data,
    names: &[String],
    now: Timestamp,
) -> Option<&'static str> {
    let [Some(certificate), Some(key), Some(_)] =
        [CERTIFICATE, KEY, AUTHORITY].map(|field| filled(data, field))
    else {
        return Some("it is missing or not complete");
    };
    authority.objection(certificate, key, now).or_else(|| {
        let lacks = authority.has_signed_without(certificate, names);
        lacks.then_some("its certificate does not have all names that it needs")
    })
}

/// The certificates that the API server trusts webhooks by: those of the authority of the server's
/// certificate. Its own certificate would do as well, but not any more when it is exchanged.
pub(super) async fn server_authority(target: &Target<'_>, options: &Options) -> Result<Vec<u8>> {
    let (namespace, name) = (&options.namespace, &options.secrets.server);
    let (_, data) = read(target, namespace, name).await?;
    match filled(&data, AUTHORITY) {
        Some(authority) => Ok(authority.to_vec()),
        None => bail!("cannot find {AUTHORITY} key in webhook tls secret {namespace}/{name}"),
    }
}

fn filled<'a>(data: &'a Data, field: &str) -> Option<&'a [u8]> {
    data.get(field).map(Vec::as_slice).filter(|value| !value.is_empty())
}

/// Computes something that takes long.
async fn blocking<T: Send + 'static, E: std::error::Error + Send + Sync + 'static>(
    compute: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T> {
    Ok(tokio::task::spawn_blocking(compute).await??)
}

fn id(namespace: &str, name: &str) -> ObjectId {
    ObjectId::new(Gvk::new("v1", "Secret"), namespace, name)
}

async fn read(target: &Target<'_>, namespace: &str, name: &str) -> Result<(Option<Object>, Data)> {
    let attempted = || format!("cannot get TLS secret: {name}");
    let secret = target.find(&id(namespace, name)).await.with_context(attempted)?;
    let data = match &secret {
        Some(secret) => secret_data(secret).map_err(|failure| anyhow::anyhow!("{failure}")),
        None => Ok(Data::new()),
    };
    Ok((secret, data.with_context(attempted)?))
}

/// Writes fields of a Secret. Returns `false` if somebody else has written it since it was read.
async fn write(
    target: &Target<'_>,
    namespace: &str,
    name: &str,
    before: Option<&Object>,
    data: &[(&str, &[u8])],
) -> Result<bool> {
    let data: serde_json::Map<_, _> = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into()))
        .collect();
    let written = match before {
        None => {
            let secret = super::object(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"name": name, "namespace": namespace},
                "data": data,
            }));
            target.create(secret).await
        }
        Some(before) => {
            let how = Write::by(MANAGER).only_if(Precondition::unchanged(before));
            let patch = Patch::Merge(json!({"data": data}));
            let cluster = &target.cluster;
            match cluster.patch(&id(namespace, name), Part::Main, &patch, &how, soon()).await {
                Ok(_) => {
                    tracing::info!(secret = name, "updated");
                    Ok(true)
                }
                Err(WriteError::Conflict(_) | WriteError::NotFound(_)) => Ok(false),
                Err(error) => Err(error),
            }
        }
    };
    written.with_context(|| format!("cannot create or update secret: {name}"))
}
