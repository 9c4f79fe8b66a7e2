//! A blocking HTTP client for readiness, set-up and tests. Each call is exactly one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;

use crate::EnvError;

/// Time limit for a connection, and for an answer that says whether a server is ready.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// Time limit for answers, and for each event of a watch. A busy machine may take long.
const PATIENCE: Duration = Duration::from_mins(2);

/// A client of one server on the loopback address.
#[derive(Clone)]
pub struct Client {
    port: u16,
    tls: Option<Arc<rustls::ClientConfig>>,
    token: String,
}

// A token does not belong into a log.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("port", &self.port).finish_non_exhaustive()
    }
}

/// An answer of the server.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: u16,
    pub body: String,
}

impl Answer {
    /// The body, or null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The status code and, from a list of checks, those that failed.
    fn verdict(&self) -> String {
        let status = format!("answered {}", self.code);
        let failed = self.body.lines().filter(|line| line.starts_with("[-]"));
        failed.fold(status, |said, line| said + ", " + line)
    }
}

impl Client {
    /// A client that does not encrypt, for servers without TLS.
    pub(crate) fn plain(port: u16) -> Self {
        Self { port, tls: None, token: String::new() }
    }

    /// A client that trusts the given CA only, and presents a token.
    pub(crate) fn tls(port: u16, ca_pem: &str, token: &str) -> Result<Self, EnvError> {
        let config = tls_config(ca_pem)?;
        Ok(Self { port, tls: Some(Arc::new(config)), token: token.into() })
    }

    pub fn get(&self, path: &str) -> Result<Answer, EnvError> {
        self.send("GET", path, "application/json", "")
    }

    pub fn post(&self, path: &str, object: &Value) -> Result<Answer, EnvError> {
        self.send("POST", path, "application/json", &object.to_string())
    }

    pub fn put(&self, path: &str, object: &Value) -> Result<Answer, EnvError> {
        self.send("PUT", path, "application/json", &object.to_string())
    }

    pub fn merge_patch(&self, path: &str, patch: &Value) -> Result<Answer, EnvError> {
        self.send("PATCH", path, "application/merge-patch+json", &patch.to_string())
    }

    pub fn delete(&self, path: &str) -> Result<Answer, EnvError> {
        self.send("DELETE", path, "application/json", "")
    }

    /// Sends a request and waits for the whole answer.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Result<Answer, EnvError> {
        self.exchange(method, path, content_type, body, PATIENCE)
            .map_err(EnvError::io(format!("{method} {path}")))
    }

    /// Opens a watch. `path` contains `watch=true`.
    pub fn watch(&self, path: &str) -> Result<Watch, EnvError> {
        let open = || {
            let mut stream = self.request("GET", path, "application/json", "", PATIENCE)?;
            let code = read_head(&mut stream)?;
            if code == 200 {
                return Ok(Ok(Watch(Some(stream))));
            }
            Ok(Err(Answer { code, body: read_rest(stream)? }))
        };
        match open().map_err(EnvError::io(format!("GET {path}")))? {
            Ok(watch) => Ok(watch),
            Err(Answer { code, body }) => {
                Err(EnvError::Refused { action: format!("watch {path}"), code, body })
            }
        }
    }

    /// Returns `Ok` if the server responds with 200, or else its response or the connection error.
    pub(crate) fn probe(&self, path: &str) -> Result<(), String> {
        match self.exchange("GET", path, "application/json", "", PROBE_PATIENCE) {
            Ok(Answer { code: 200, .. }) => Ok(()),
            Ok(answer) => Err(answer.verdict()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
        patience: Duration,
    ) -> std::io::Result<Answer> {
        let mut stream = self.request(method, path, content_type, body, patience)?;
        let code = read_head(&mut stream)?;
        Ok(Answer { code, body: read_rest(stream)? })
    }

    /// Uses HTTP/1.0, so that the answer is everything up to the end of the connection.
    fn request(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &str,
        patience: Duration,
    ) -> std::io::Result<Stream> {
        let address = (Ipv4Addr::LOCALHOST, self.port).into();
        let tcp = TcpStream::connect_timeout(&address, PROBE_PATIENCE)?;
        tcp.set_read_timeout(Some(patience))?;
        tcp.set_write_timeout(Some(patience))?;
        let mut stream: Box<dyn ReadWrite> = match &self.tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
                let session = rustls::ClientConnection::new(config.clone(), name)
                    .map_err(std::io::Error::other)?;
                Box::new(rustls::StreamOwned::new(session, tcp))
            }
        };
        let authorization = match self.token.as_str() {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nUser-Agent: biplane-devenv\r\n\
             Accept: application/json\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n{authorization}\r\n{body}",
            self.port,
            body.len()
        )?;
        stream.flush()?;
        Ok(BufReader::new(stream))
    }
}

/// A configuration that trusts the given CA only.
pub(crate) fn tls_config(ca_pem: &str) -> Result<rustls::ClientConfig, EnvError> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.map_err(|error| rustls::Error::General(error.to_string()))?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

trait ReadWrite: Read + Write + Send {}

impl<T: Read + Write + Send> ReadWrite for T {}

type Stream = BufReader<Box<dyn ReadWrite>>;

/// Reads up to the body and returns the status code.
fn read_head(stream: &mut Stream) -> std::io::Result<u16> {
    let mut first = String::new();
    stream.read_line(&mut first)?;
    if first.is_empty() {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "no answer"));
    }
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
    }
    let code = first.split(' ').nth(1).and_then(|code| code.trim().parse().ok());
    code.ok_or_else(|| std::io::Error::other(format!("not HTTP: {first:?}")))
}

fn read_rest(mut stream: Stream) -> std::io::Result<String> {
    let mut body = Vec::new();
    match stream.read_to_end(&mut body) {
        // Some servers close the connection without a TLS close_notify. Their response still
        // counts.
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => Err(e),
        _ => Ok(String::from_utf8_lossy(&body).into_owned()),
    }
}

/// The events of a watch. It ends when the server ends the watch in order, and yields an error
/// before that if the connection is cut.
pub struct Watch(Option<Stream>);

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Iterator for Watch {
    type Item = std::io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        let read = self.0.as_mut()?.read_line(&mut line);
        match read {
            Ok(0) => {
                self.0 = None;
                None
            }
            Ok(_) => Some(serde_json::from_str(&line).map_err(std::io::Error::other)),
            Err(error) => {
                self.0 = None;
                Some(Err(error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves one fixed response and returns the result of the probe.
    fn check(answer: &'static str) -> Result<(), String> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            request.read_line(&mut line).unwrap();
            assert_eq!(line, "GET /readyz HTTP/1.0\r\n");
            // The request may arrive in parts.
            while line != "\r\n" {
                line.clear();
                request.read_line(&mut line).unwrap();
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let said = Client::plain(port).probe("/readyz");
        server.join().unwrap();
        said
    }

    #[test]
    fn only_status_200_means_ready() {
        assert_eq!(check("HTTP/1.0 200 OK\r\n\r\nok"), Ok(()));
        assert_eq!(check("HTTP/1.0 401 Unauthorized\r\n\r\n"), Err("answered 401".into()));
        assert_eq!(check(""), Err("no answer".into()));
        assert_eq!(check("hello"), Err("not HTTP: \"hello\"".into()));
    }

    #[test]
    fn a_refusal_names_the_checks_that_failed() {
        let answer = "HTTP/1.0 500 Internal Server Error\r\n\r\n[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed";
        assert_eq!(check(answer), Err("answered 500, [-]etcd failed: reason withheld".into()));
    }
}
