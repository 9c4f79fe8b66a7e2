//! The TLS configuration of the client, from `tls.crt`, `tls.key` and `ca.crt`: files in a folder, or
//! their contents.

use std::path::Path;
use std::sync::Arc;

use biplane_function::tls::Certificates;
use rustls::ClientConfig;

pub use biplane_function::tls::CertificateError;

/// Returns the TLS configuration of a client: its own certificate, and trust in its CA only.
pub fn client(folder: &Path) -> Result<Arc<ClientConfig>, CertificateError> {
    of(Certificates::read(folder)?)
}

/// Returns the TLS configuration of a client from the contents of the three files.
pub fn client_of(
    chain: &[u8],
    key: &[u8],
    authority: &[u8],
) -> Result<Arc<ClientConfig>, CertificateError> {
    of(Certificates::parse(chain, key, authority)?)
}

fn of(files: Certificates) -> Result<Arc<ClientConfig>, CertificateError> {
    let pair = |e: rustls::Error| CertificateError::KeyPair(e.to_string());
    let mut config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .with_root_certificates(files.roots)
            .with_client_auth_cert(files.chain, files.key)
            .map_err(pair)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}
