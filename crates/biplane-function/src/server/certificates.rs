//! The certificates of a server, which are read again when their files change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ServerConfig;

use crate::tls::{self, CertificateError};

const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// What changes when a file is replaced or written: device, inode, size, and the time in seconds
/// and nanoseconds.
type Stamp = Option<(u64, u64, u64, i64, i64)>;

/// The TLS configuration for mutual TLS with the certificates of a folder. Every connection uses
/// the files as they are at that time. If they cannot be used, for example because only some of
/// them have been replaced so far, the previous ones remain in use.
#[derive(Debug)]
pub struct ReloadingTls {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    /// The files that were read last, whether they could be used or not.
    stamps: [Stamp; 3],
}

impl ReloadingTls {
    /// Reads the certificates of a folder.
    pub fn read(folder: &Path) -> Result<Self, CertificateError> {
        // Taken before the files are read, so that no change is missed.
        let stamps = stamps(folder);
        let config = tls::server(folder)?;
        Ok(Self { folder: folder.to_owned(), state: Mutex::new(State { config, stamps }) })
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
        let stamps = stamps(&self.folder);
        if self.state().stamps == stamps {
            return self.state().config.clone();
        }
        let read = tls::server(&self.folder);
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
}
