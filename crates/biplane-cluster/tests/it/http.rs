//! A minimal HTTP client for requests to an API server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use biplane_devenv::ApiServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;

type Connection = BufReader<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>;

/// A client of one API server. It keeps its connections open for the next requests, because a
/// handshake takes longer than most answers.
pub(crate) struct Client {
    config: Arc<rustls::ClientConfig>,
    address: String,
    token: String,
    /// The connections that no thread is using now.
    idle: Mutex<Vec<Connection>>,
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
            idle: Mutex::default(),
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
        let Self { address, token, .. } = self;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let idle = self.idle.lock().unwrap().pop();
        // A server may close an idle connection. It has not seen the request then.
        let (answer, connection) = idle
            .and_then(|connection| exchange(connection, &request))
            .or_else(|| exchange(self.connect(), &request))
            .unwrap();
        self.idle.lock().unwrap().extend(connection);
        let body = String::from_utf8(answer.body).unwrap();
        let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
        (answer.status, body)
    }

    fn connect(&self) -> Connection {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let session = rustls::ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let tcp = TcpStream::connect(&self.address).unwrap();
        tcp.set_nodelay(true).unwrap();
        BufReader::new(rustls::StreamOwned::new(session, tcp))
    }
}

struct Response {
    status: u16,
    body: Vec<u8>,
}

/// Sends a request and reads the response. Returns the connection too if it can be used again, and
/// nothing if the server had closed it before.
fn exchange(mut connection: Connection, request: &str) -> Option<(Response, Option<Connection>)> {
    let stream = connection.get_mut();
    stream.write_all(request.as_bytes()).and_then(|()| stream.flush()).ok()?;
    let first = line(&mut connection)?;
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    let (mut length, mut chunked, mut reusable) = (None, false, true);
    loop {
        let header = line(&mut connection).unwrap().to_ascii_lowercase();
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            Some(("content-length", value)) => length = Some(value.parse().unwrap()),
            Some(("transfer-encoding", value)) => chunked = value == "chunked",
            Some(("connection", value)) => reusable = value != "close",
            Some(_) => {}
            None => break,
        }
    }
    let body = match length {
        _ if chunked => chunks(&mut connection),
        Some(length) => block(&mut connection, length),
        None => panic!("an answer without a length: {first}"),
    };
    Some((Response { status, body }, reusable.then_some(connection)))
}

/// The next line, without its end. Nothing if there is none.
fn line(connection: &mut Connection) -> Option<String> {
    let mut line = String::new();
    let read = connection.read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

fn block(connection: &mut Connection, length: usize) -> Vec<u8> {
    let mut block = vec![0; length];
    connection.read_exact(&mut block).unwrap();
    block
}

/// A body that is sent in pieces, each after its length.
fn chunks(connection: &mut Connection) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let size = line(connection).unwrap();
        let chunk = block(connection, usize::from_str_radix(&size, 16).unwrap());
        assert_eq!(line(connection).as_deref(), Some(""));
        if chunk.is_empty() {
            return body;
        }
        body.extend(chunk);
    }
}
