//! The certificates that the control plane shows to functions: from files or from a Secret, and
//! exchanged without a restart.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_cluster::{Change, Query};
use biplane_engine::pipeline::secret_data;
use biplane_model::{Gvk, Object};
use biplane_runner::grpc::Security;
use biplane_runner::tls::{self, CertificateError};

use crate::controller::Watch;

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// A folder with `tls.crt`, `tls.key` and `ca.crt`.
    Folder(PathBuf),
    /// A Secret with these keys.
    Secret {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot load client TLS certificates: {0}")]
pub struct LoadError(#[from] CertificateError);

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// The contents of the three files.
type Contents = [Vec<u8>; 3];

/// The credentials in use.
#[derive(Debug)]
pub(super) struct Credentials {
    source: Option<CertificateSource>,
    current: Arc<Mutex<Option<Contents>>>,
}

impl Credentials {
    pub(super) fn new(source: Option<CertificateSource>) -> Self {
        Self { source, current: Arc::default() }
    }

    /// Reads files if they have changed. `None` if they have not, or if the certificates are no
    /// files.
    pub(super) fn load(&self) -> Result<Option<Security>, LoadError> {
        let Some(CertificateSource::Folder(folder)) = &self.source else { return Ok(None) };
        let mut contents = Contents::default();
        for (content, file) in contents.iter_mut().zip(FILES) {
            match std::fs::read(folder.join(file)) {
                Ok(read) => *content = read,
                // This says in the usual words which file is missing.
                Err(_) => return Ok(Some(Security::MutualTls(tls::client(folder)?))),
            }
        }
        Ok(exchange(&self.current, contents)?)
    }

    /// Watches the Secret, if certificates come from one.
    pub(super) fn watch(
        &self,
        exchanged: impl Fn(Security) + Send + Sync + 'static,
    ) -> Option<Watch> {
        let Some(CertificateSource::Secret { namespace, name }) = &self.source else { return None };
        let query = Query { namespace: namespace.clone(), name: name.clone(), ..Query::default() };
        let current = Arc::clone(&self.current);
        let watch = Watch::observed("Secret", Gvk::new("v1", "Secret"), move |change| {
            let Change::Changed { object, .. } = change else { return };
            match contents(object).and_then(|c| exchange(&current, c).map_err(|e| e.to_string())) {
                Ok(Some(security)) => exchanged(security),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(secret = %object.id(), error, "cannot load client TLS certificates");
                }
            }
        });
        Some(watch.matching(query))
    }

    /// Fails if certificates are wanted and there are none yet.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.source {
            Some(CertificateSource::Secret { namespace, name })
                if self.current.lock().unwrap_or_else(PoisonError::into_inner).is_none() =>
            {
                Err(format!("there is no client TLS certificate in Secret {namespace}/{name} yet"))
            }
            _ => Ok(()),
        }
    }
}

/// The security with these contents, unless they are in use already.
fn exchange(
    current: &Mutex<Option<Contents>>,
    contents: Contents,
) -> Result<Option<Security>, CertificateError> {
    let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
    if current.as_ref() == Some(&contents) {
        return Ok(None);
    }
    let [chain, key, authority] = &contents;
    let config = tls::client_of(chain, key, authority)?;
    *current = Some(contents);
    Ok(Some(Security::MutualTls(config)))
}

fn contents(secret: &Object) -> Result<Contents, String> {
    let mut data = secret_data(secret).map_err(|failure| failure.to_string())?;
    Ok(FILES.map(|file| data.remove(file).unwrap_or_default()))
}
