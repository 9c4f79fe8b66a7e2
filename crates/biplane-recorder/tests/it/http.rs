//! Questions to a recorder over TLS with a token, and a store on a server that is reached with TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use biplane_recorder::api::client::ask_with;
use biplane_recorder::http::{Credentials, Server};
use biplane_recorder::query::ask::{self, Question};
use biplane_recorder::query::print;
use biplane_recorder::store::Location;
use biplane_testkit::certs::Certs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::postgres::TlsServer;
use crate::queries::{archive, named, now, runs};
use crate::store::world;

const TOKEN: &str = "open-sesame";

/// A recorder behind TLS that wants a token. It ends with the process.
fn recorder(folder: &Path) -> u16 {
    let certificates = CertificateDer::pem_file_iter(folder.join("tls.crt")).unwrap();
    let certificates: Vec<_> = certificates.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.unwrap().with_no_client_auth().with_single_cert(certificates, key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let archive = archive(&runs());
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                // A client that does not believe us is gone.
                if stream.read_exact(&mut byte).is_err() {
                    break;
                }
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let Some(target) = head.split(' ').nth(1) else { continue };
            let (status, body) = if head.contains(&format!("Authorization: Bearer {TOKEN}\r\n")) {
                let page = biplane_recorder::api::page(&archive, target, now()).unwrap();
                (page.status, page.body)
            } else {
                (401, "a token is needed\nand more".to_owned())
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
            stream.flush().unwrap();
        }
    });
    port
}

#[test]
fn a_recorder_is_asked_over_tls_with_a_token() {
    let certs = Certs::new(&["localhost"]);
    let port = recorder(&certs.server());
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
    let ca_file = certs.server().join("ca.crt");
    let question = Question::Run(named("Gauge.plain.insp.example.org/one"));
    let asked = |host: &str, token: bool, ca: bool| {
        let credentials = Credentials {
            token_file: token.then(|| token_file.clone()),
            ca_file: ca.then(|| ca_file.clone()),
        };
        let server = Server::new(&format!("https://{host}:{port}"), &credentials).unwrap();
        ask_with(&server, &question)
    };
    let here = ask::answer(&archive(&runs()), &question, now()).unwrap();
    let there = asked("localhost", true, true).unwrap();
    assert_eq!(print::value(&there), print::value(&here));
    let error = asked("localhost", false, true).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("https://localhost:{port} refuses to answer (401): a token is needed")
    );
    let error = asked("localhost", true, false).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    let error = asked("127.0.0.1", true, true).unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    std::fs::write(&token_file, "two words").unwrap();
    let error = asked("localhost", true, true).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the token from ") && !error.contains("two words"),
        "{error}"
    );
    let missing = Credentials { ca_file: Some("/nowhere/ca.crt".into()), ..Credentials::default() };
    let error = Server::new("https://localhost", &missing).unwrap_err().to_string();
    assert!(error.starts_with("cannot read certificates from /nowhere/ca.crt: "), "{error}");
}

#[test]
fn a_store_on_a_server_is_reached_with_tls() {
    let server = TlsServer::start();
    let (port, ca) = (server.port, server.ca.to_str().unwrap());
    let location = |host: &str, options: &str| {
        Location::Server(format!("postgres://biplane@{host}:{port}/postgres?{options}"))
    };
    let good = location("localhost", &format!("sslmode=require&sslrootcert={ca}"));
    let mut ledger = world::open(&good, world::options());
    let calls = [world::simple("a", "eu")];
    ledger.record(&world::halves(&calls), std::time::Instant::now()).unwrap();
    ledger.close_all().unwrap();
    drop(ledger);
    let store = biplane_recorder::store::Store::open_existing(&good).unwrap();
    assert!(matches!(store.run("a").unwrap(), biplane_recorder::store::rows::Found::One(_)));
    let refused = |location: &Location| {
        biplane_recorder::store::Store::open_existing(location).unwrap_err().to_string()
    };
    // The server wants TLS.
    let error = refused(&location("localhost", "sslmode=disable"));
    assert!(error.contains("no encryption") || error.contains("pg_hba"), "{error}");
    // A certificate that nobody vouches for, and one for another name.
    let error = refused(&location("localhost", "sslmode=require"));
    assert!(error.contains("certificate"), "{error}");
    let error = refused(&location("127.0.0.1", &format!("sslmode=require&sslrootcert={ca}")));
    assert!(error.contains("certificate"), "{error}");
}
