//! A minimal HTTP client for requests to an API server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use biplane_devenv::ApiServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;

/// A client of one API server. Each request uses its own connection.
pub(crate) struct Client {
    config: Arc<rustls::ClientConfig>,
    address: String,
    token: String,
}

impl Client {
    pub(crate) fn new(server: &ApiServer) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(server.ca_pem.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            config: Arc::new(config),
            address: server.url.strip_prefix("https://").unwrap().to_owned(),
            token: server.token.clone(),
        }
    }

    /// Sends a request and returns the status code and the body.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> (u16, Value) {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let session = rustls::ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let tcp = TcpStream::connect(&self.address).unwrap();
        let mut stream = rustls::StreamOwned::new(session, tcp);
        let Self { address, token, .. } = self;
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A server may close the connection without the close message of TLS.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
        (status, body)
    }
}
