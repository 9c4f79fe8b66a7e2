//! Certificates of both ends: a folder with `tls.crt`, `tls.key` and `ca.crt`.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Why the certificates in a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificate or its key cannot be read, or they do not belong together.
    #[error("cannot load X509 keypair: {0}")]
    KeyPair(String),
    /// The certificate of the authority cannot be read.
    #[error("cannot read CA certificate: {0}")]
    Authority(String),
    /// What should be the certificate of the authority is none.
    #[error("invalid CA certificate")]
    InvalidAuthority,
}

struct Folder {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    // Go's words, in which an operator searches.
    std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("open {}: no such file or directory", path.display())
        }
        _ => format!("open {}: {error}", path.display()),
    })
}

fn load(folder: &Path) -> Result<Folder, CertificateError> {
    let pair = |name: &str| read(&folder.join(name)).map_err(CertificateError::KeyPair);
    let (chain, key) = (pair("tls.crt")?, pair("tls.key")?);
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&chain)
        .collect::<Result<_, _>>()
        .map_err(|e| CertificateError::KeyPair(format!("tls.crt: {e}")))?;
    if chain.is_empty() {
        return Err(CertificateError::KeyPair("tls.crt: no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|e| CertificateError::KeyPair(format!("tls.key: {e}")))?;
    let authority = read(&folder.join("ca.crt")).map_err(CertificateError::Authority)?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&authority) {
        let certificate = certificate.map_err(|_| CertificateError::InvalidAuthority)?;
        roots.add(certificate).map_err(|_| CertificateError::InvalidAuthority)?;
    }
    if roots.is_empty() {
        return Err(CertificateError::InvalidAuthority);
    }
    Ok(Folder { chain, key, roots })
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

const HTTP2: &[u8] = b"h2";

/// What a client presents and trusts: its own certificate, and servers of its own authority only.
pub fn client(folder: &Path) -> Result<Arc<ClientConfig>, CertificateError> {
    let files = load(folder)?;
    let pair = |e: rustls::Error| CertificateError::KeyPair(e.to_string());
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_root_certificates(files.roots)
        .with_client_auth_cert(files.chain, files.key)
        .map_err(pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(Arc::new(config))
}

/// What a server presents and demands: a client certificate of its own authority, whatever its name.
pub fn server(folder: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let files = load(folder)?;
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
