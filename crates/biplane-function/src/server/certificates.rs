//! The certificates of a server, which are read again when their files change, or exchanged by
//! whoever has them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;

use crate::tls::{self, CertificateError};

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// What changes when a file is replaced or written: device, inode, size, and the time in seconds
/// and nanoseconds.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The TLS configuration of a server. Every connection uses the certificates as they are at that
/// time. If new ones cannot be used, for example because only some of their files have been
/// replaced so far, the previous ones remain in use.
#[derive(Debug)]
pub struct ReloadingTls {
    source: Source,
    state: Mutex<State>,
}

/// Where certificates come from.
#[derive(Debug)]
enum Source {
    /// A folder.
    Folder(PathBuf, Clients),
    /// Whoever calls [`ReloadingTls::exchange`].
    Given,
}

/// What clients show.
#[derive(Clone, Copy, Debug)]
enum Clients {
    /// A certificate of the same authority.
    Certified,
    /// Nothing.
    Any,
}

impl Clients {
    fn config(self, folder: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
        match self {
            Self::Certified => tls::server(folder),
            Self::Any => {
                let [chain, key] = tls::pair(folder)?;
                tls::https_server(&chain, &key)
            }
        }
    }
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    /// The files that were read last, whether they could be used or not.
    stamps: [Stamp; 3],
}

impl ReloadingTls {
    /// Reads the certificates of a folder for mutual TLS: `tls.crt`, `tls.key`, `ca.crt`.
    pub fn read(folder: &Path) -> Result<Self, CertificateError> {
        Self::of_folder(folder, Clients::Certified)
    }

    /// Reads the certificate of a folder for HTTPS: `tls.crt`, `tls.key`.
    pub fn read_https(folder: &Path) -> Result<Self, CertificateError> {
        Self::of_folder(folder, Clients::Any)
    }

    fn of_folder(folder: &Path, clients: Clients) -> Result<Self, CertificateError> {
        // Taken before the files are read, so that no change is missed.
        let stamps = stamps(folder);
        let config = clients.config(folder)?;
        let source = Source::Folder(folder.to_owned(), clients);
        Ok(Self { source, state: Mutex::new(State { config, stamps }) })
    }

    /// Takes a certificate and its key, as PEM, for HTTPS.
    pub fn https(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let config = tls::https_server(chain, key)?;
        let state = State { config, stamps: [None; 3] };
        Ok(Self { source: Source::Given, state: Mutex::new(state) })
    }

    /// Uses another certificate and key for HTTPS from now on.
    pub fn exchange(&self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let config = tls::https_server(chain, key)?;
        self.state().config = config;
        Ok(())
    }

    /// The configuration for the next connection.
    pub(super) async fn current(self: Arc<Self>) -> Arc<ServerConfig> {
        let tls = Arc::clone(&self);
        let refreshed = tokio::task::spawn_blocking(move || tls.refreshed()).await;
        refreshed.unwrap_or_else(|_| self.state().config.clone())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refreshed(&self) -> Arc<ServerConfig> {
        let Source::Folder(folder, clients) = &self.source else {
            return self.state().config.clone();
        };
        let stamps = stamps(folder);
        if self.state().stamps == stamps {
            return self.state().config.clone();
        }
        let read = clients.config(folder);
        let mut state = self.state();
        state.stamps = stamps;
        match read {
            Ok(config) => {
                tracing::info!("the certificates have changed and were read again");
                state.config = config;
            }
            Err(error) => {
                tracing::warn!(%error, "the certificates have changed but cannot be used");
            }
        }
        state.config.clone()
    }
}

fn stamps(folder: &Path) -> [Stamp; 3] {
    FILES.map(|name| {
        let found = std::fs::metadata(folder.join(name)).ok()?;
        Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    })
}

#[cfg(test)]
mod tests {
    use biplane_testkit::certs::Certs;

    use super::*;

    /// Replaces a file as Kubernetes does it: by another file, not by writing into it.
    fn replace(folder: &Path, other: &Path, name: &str) {
        let new = folder.join("new");
        std::fs::copy(other.join(name), &new).unwrap();
        std::fs::rename(new, folder.join(name)).unwrap();
    }

    #[tokio::test]
    async fn certificates_are_read_again_once_all_of_them_fit() {
        let (certs, others) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
        let folder = certs.server();
        let tls = Arc::new(ReloadingTls::read(&folder).unwrap());
        let first = tls.clone().current().await;
        assert!(Arc::ptr_eq(&first, &tls.clone().current().await), "nothing has changed");
        replace(&folder, &others.server(), "tls.crt");
        assert!(Arc::ptr_eq(&first, &tls.clone().current().await), "the key does not fit yet");
        replace(&folder, &others.server(), "tls.key");
        let second = tls.clone().current().await;
        assert!(!Arc::ptr_eq(&first, &second));
        std::fs::remove_file(folder.join("ca.crt")).unwrap();
        assert!(Arc::ptr_eq(&second, &tls.clone().current().await));
    }

    #[tokio::test]
    async fn certificates_for_https_come_from_two_files_or_from_whoever_has_them() {
        let (certs, others) = (Certs::new(&["localhost"]), Certs::new(&["localhost"]));
        let folder = certs.server();
        std::fs::remove_file(folder.join("ca.crt")).unwrap();
        let tls = Arc::new(ReloadingTls::read_https(&folder).unwrap());
        let first = tls.clone().current().await;
        for name in ["tls.crt", "tls.key"] {
            replace(&folder, &others.server(), name);
        }
        assert!(!Arc::ptr_eq(&first, &tls.clone().current().await));

        let pair = |certs: &Certs| {
            ["tls.crt", "tls.key"].map(|name| std::fs::read(certs.server().join(name)).unwrap())
        };
        // The files of the first are those of the second by now.
        let ([chain, key], [other, _]) = (pair(&others), pair(&Certs::new(&["localhost"])));
        let tls = Arc::new(ReloadingTls::https(&chain, &key).unwrap());
        let first = tls.clone().current().await;
        tls.exchange(&other, &key).unwrap_err();
        assert!(Arc::ptr_eq(&first, &tls.clone().current().await), "the key does not fit");
        tls.exchange(&chain, &key).unwrap();
        assert!(!Arc::ptr_eq(&first, &tls.clone().current().await));
    }
}
