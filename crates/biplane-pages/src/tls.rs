//! The certificate of the pages, which is read again when its files change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key cannot be used.
    #[error("cannot use the certificate of {}: {reason}", path.display())]
    Use {
        /// The file of the certificate.
        path: PathBuf,
        /// Why.
        reason: rustls::Error,
    },
}

/// What changes when a file is replaced or written: device, inode, size and time.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// A certificate and its key. Each connection uses the files as they are then; if they cannot be
/// used, because only one of them has been replaced so far, those before remain in use.
#[derive(Debug)]
pub struct Certificate {
    files: [PathBuf; 2],
    state: Mutex<(Arc<ServerConfig>, [Stamp; 2])>,
}

impl Certificate {
    /// Reads a certificate, with the chain that leads to it, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = [certificate.to_owned(), key.to_owned()];
        // Taken before the files are read, so that no change is missed.
        let stamps = stamps(&files);
        let config = configuration(&files)?;
        Ok(Self { files, state: Mutex::new((config, stamps)) })
    }

    /// The configuration for the next connection. It may read files.
    pub fn current(&self) -> Arc<ServerConfig> {
        let stamps = stamps(&self.files);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1 != stamps {
            state.1 = stamps;
            match configuration(&self.files) {
                Ok(config) => {
                    tracing::info!("the certificate has changed and was read again");
                    state.0 = config;
                }
                Err(error) => {
                    tracing::warn!(%error, "the certificate has changed but cannot be used");
                }
            }
        }
        Arc::clone(&state.0)
    }
}

fn configuration([certificate, key]: &[PathBuf; 2]) -> Result<Arc<ServerConfig>, TlsError> {
    let unread = |path: &Path| {
        let path = path.to_owned();
        move |reason| TlsError::Read { path, reason }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unread(certificate))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(unread(certificate))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(unread(key))?;
    let unused = |reason| TlsError::Use { path: certificate.clone(), reason };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unused)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unused)?;
    Ok(Arc::new(config))
}

fn stamps(files: &[PathBuf; 2]) -> [Stamp; 2] {
    [0, 1].map(|at| {
        let found = std::fs::metadata(&files[at]).ok()?;
        Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    })
}

#[cfg(test)]
mod tests {
    use biplane_testkit::certs::Certs;

    use super::*;

    #[test]
    fn the_certificate_is_read_again_once_the_key_fits() {
        let (certs, others) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
        let (folder, other) = (certs.server(), others.server());
        let file = |name: &str| folder.join(name);
        let replace = |name: &str| {
            let new = folder.join("new");
            std::fs::copy(other.join(name), &new).unwrap();
            std::fs::rename(new, file(name)).unwrap();
        };
        let tls = Certificate::read(&file("tls.crt"), &file("tls.key")).unwrap();
        let first = tls.current();
        assert!(Arc::ptr_eq(&first, &tls.current()), "nothing has changed");
        replace("tls.crt");
        assert!(Arc::ptr_eq(&first, &tls.current()), "the key does not fit yet");
        replace("tls.key");
        assert!(!Arc::ptr_eq(&first, &tls.current()));
        let missing = Certificate::read(&file("none"), &file("tls.key")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
