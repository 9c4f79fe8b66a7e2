//! The site over sockets, plain and encrypted.

use std::sync::Arc;

use biplane_pages::serve::{self, Server};
use biplane_pages::tls::Certificate;
use biplane_testkit::certs::Certs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::World;

async fn exchange(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A peer that ends without a closing message has still said everything.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn plain(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    exchange(&mut stream, request).await
}

#[tokio::test]
async fn pages_are_served_and_connections_end() {
    let world = World::example();
    let server = serve::serve(world.site(), "127.0.0.1:0", None).await.unwrap();
    let answer = plain(&server, "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:.200}");
    assert!(answer.contains("Connection: close") && answer.ends_with("</html>"));
    let head = plain(&server, "HEAD /runs HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let form = "POST /theme HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\ntheme=dark";
    assert!(plain(&server, form).await.starts_with("HTTP/1.1 303 See Other\r\n"));
    let foreign = plain(&server, "GET /runs HTTP/1.1\r\nHost: evil.example.com\r\n\r\n").await;
    assert!(foreign.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{foreign}");
    let garbage = plain(&server, "\u{1}\r\n\r\n").await;
    assert!(garbage.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{garbage}");
    // What follows a request is not another one.
    let two =
        "GET /help HTTP/1.1\r\nHost: localhost\r\n\r\nGET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(plain(&server, two).await.matches("HTTP/1.1 200").count(), 1);
}

#[tokio::test]
async fn pages_are_served_over_tls() {
    let world = World::example();
    let certs = Certs::new(&["localhost"]);
    let file = |name: &str| certs.server().join(name);
    let certificate = Certificate::read(&file("tls.crt"), &file("tls.key")).unwrap();
    let server =
        serve::serve(world.site(), "127.0.0.1:0", Some(Arc::new(certificate))).await.unwrap();
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(certs.client().join("ca.crt")).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    let answer = exchange(&mut stream, "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:.200}");
    // Who speaks plainly gets no page.
    let refused = plain(&server, "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(!refused.contains("HTTP/1.1 200"), "{refused:.200}");
}
