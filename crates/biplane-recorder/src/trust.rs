//! Which servers a client believes: those with a certificate that the system or a file vouches for.

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Where distributions keep the certificates that they trust.
const SYSTEM_ROOTS: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Why certificates cannot be verified.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    /// A file has no certificates.
    #[error("cannot read certificates from {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// Settings that verify servers by the certificates of a file, or else of the system.
pub(crate) fn client(roots: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let system = SYSTEM_ROOTS.into_iter().map(Path::new).find(|path| path.exists());
    let mut store = RootCertStore::empty();
    if let Some(path) = roots.or(system) {
        let unreadable = |reason: String| TrustError::File { file: path.to_owned(), reason };
        let found = CertificateDer::pem_file_iter(path);
        for certificate in found.map_err(|error| unreadable(error.to_string()))? {
            // One certificate that is not understood must not make all others useless.
            let _ = store.add(certificate.map_err(|error| unreadable(error.to_string()))?);
        }
        if roots.is_some() && store.is_empty() {
            return Err(unreadable("there are none in it".to_owned()));
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(store).with_no_client_auth())
}
