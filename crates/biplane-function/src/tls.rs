//! Loads certificates for mutual TLS from a folder with `tls.crt`, `tls.key` and `ca.crt`, and for
//! HTTPS from the first two.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;

pub use rustls::RootCertStore;
pub use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why the certificates in a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate or its key cannot be read, or they do not match.
    #[error("cannot load X509 keypair: {0}")]
    KeyPair(String),
    /// The CA certificate cannot be read.
    #[error("cannot read CA certificate: {0}")]
    Authority(String),
    /// The CA file contains no certificate.
    #[error("invalid CA certificate")]
    InvalidAuthority,
}

/// The certificates of one end of a connection.
#[derive(Debug)]
pub struct Certificates {
    /// Its own certificate and the intermediate certificates: `tls.crt`.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of its own certificate: `tls.key`.
    pub key: PrivateKeyDer<'static>,
    /// The CAs that the peer's certificate must be signed by: `ca.crt`.
    pub roots: RootCertStore,
}

/// The contents of the certificate and the key of a folder.
pub(crate) fn pair(folder: &Path) -> Result<[Vec<u8>; 2], CertificateError> {
    let read = |name: &str| bytes(&folder.join(name)).map_err(CertificateError::KeyPair);
    Ok([read("tls.crt")?, read("tls.key")?])
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    // Go's messages, which operators search for.
    std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("open {}: no such file or directory", path.display())
        }
        _ => format!("open {}: {error}", path.display()),
    })
}

impl Certificates {
    /// Reads the three files.
    pub fn read(folder: &Path) -> Result<Self, CertificateError> {
        let [chain, key] = pair(folder)?;
        // The pair is looked at first, whatever else is missing.
        let (chain, key) = key_pair(&chain, &key)?;
        let authority = bytes(&folder.join("ca.crt")).map_err(CertificateError::Authority)?;
        Ok(Self { chain, key, roots: roots(&authority)? })
    }

    /// Parses the contents of the three files.
    pub fn parse(chain: &[u8], key: &[u8], authority: &[u8]) -> Result<Self, CertificateError> {
        let (chain, key) = key_pair(chain, key)?;
        Ok(Self { chain, key, roots: roots(authority)? })
    }
}

/// A certificate with those that it is signed by, and its key.
type KeyPair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn key_pair(chain: &[u8], key: &[u8]) -> Result<KeyPair, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(|e| CertificateError::KeyPair(format!("tls.crt: {e}")))?;
    if chain.is_empty() {
        return Err(CertificateError::KeyPair("tls.crt: no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|e| CertificateError::KeyPair(format!("tls.key: {e}")))?;
    Ok((chain, key))
}

fn roots(authority: &[u8]) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate = certificate.map_err(|_| CertificateError::InvalidAuthority)?;
        roots.add(certificate).map_err(|_| CertificateError::InvalidAuthority)?;
    }
    if roots.is_empty() {
        return Err(CertificateError::InvalidAuthority);
    }
    Ok(roots)
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Returns the TLS configuration of a server. Clients must present a certificate signed by its CA,
/// with any name.
pub(crate) fn server(folder: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let files = Certificates::read(folder)?;
    let pair = |e: rustls::Error| CertificateError::KeyPair(e.to_string());
    let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(files.roots),
        provider(),
    )
    .build()
    .map_err(|_| CertificateError::InvalidAuthority)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_client_cert_verifier(clients)
        .with_single_cert(files.chain, files.key)
        .map_err(pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(Arc::new(config))
}

/// Returns the TLS configuration of an HTTPS server, given the contents of its certificate and its
/// key. Clients need no certificate, and must know TLS 1.3.
pub(crate) fn https_server(
    chain: &[u8],
    key: &[u8],
) -> Result<Arc<ServerConfig>, CertificateError> {
    let (chain, key) = key_pair(chain, key)?;
    let pair = |e: rustls::Error| CertificateError::KeyPair(e.to_string());
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config))
}
