//! Checks whether a server on the loopback address is ready, with one blocking HTTP request.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::EnvError;
use crate::certificates::Identity;

/// Time limit of one request. The caller repeats requests until its own deadline.
const PATIENCE: Duration = Duration::from_secs(5);

/// How to reach one server.
pub(crate) enum Probe {
    Plain { port: u16, path: &'static str },
    Tls { port: u16, path: &'static str, token: String, config: Arc<rustls::ClientConfig> },
}

impl Probe {
    /// A probe that trusts only the CA of this server.
    pub(crate) fn tls(
        port: u16,
        path: &'static str,
        token: &str,
        identity: &Identity,
    ) -> Result<Self, EnvError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity.ca_der.clone())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::Tls { port, path, token: token.into(), config: Arc::new(config) })
    }

    /// Returns `Ok` if the server responds with 200, or else its response or the connection error.
    pub(crate) fn ask(&self) -> Result<(), String> {
        self.answer().map_err(|e| e.to_string()).and_then(|answer| {
            let status = answer.lines().next().unwrap_or_default();
            if status.split(' ').nth(1) == Some("200") { Ok(()) } else { Err(verdict(&answer)) }
        })
    }

    fn answer(&self) -> std::io::Result<String> {
        match self {
            Self::Plain { port, path } => exchange(connect(*port)?, path, ""),
            Self::Tls { port, path, token, config } => {
                let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from(
                    Ipv4Addr::LOCALHOST,
                ));
                let session = rustls::ClientConnection::new(config.clone(), name)
                    .map_err(std::io::Error::other)?;
                let stream = rustls::StreamOwned::new(session, connect(*port)?);
                exchange(stream, path, &format!("Authorization: Bearer {token}\r\n"))
            }
        }
    }
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Uses HTTP/1.0, so that the response is everything up to the end of the connection.
fn exchange(mut stream: impl Read + Write, path: &str, headers: &str) -> std::io::Result<String> {
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n{headers}\r\n")?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Some servers close the connection without a TLS close_notify. Their response still
        // counts.
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => Err(e),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// The status line and, from a list of checks, those that failed.
fn verdict(answer: &str) -> String {
    let mut lines = answer.lines();
    let status = lines.next().unwrap_or("no answer").to_owned();
    lines.filter(|line| line.starts_with("[-]")).fold(status, |said, line| said + ", " + line)
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
            let mut request = [0u8; 1024];
            let read = stream.read(&mut request).unwrap();
            assert!(request[..read].starts_with(b"GET /readyz HTTP/1.0\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let said = Probe::Plain { port, path: "/readyz" }.ask();
        server.join().unwrap();
        said
    }

    #[test]
    fn only_status_200_means_ready() {
        assert_eq!(check("HTTP/1.0 200 OK\r\n\r\nok"), Ok(()));
        assert!(check("HTTP/1.0 401 Unauthorized\r\n\r\n").is_err());
        assert_eq!(check(""), Err("no answer".into()));
    }

    #[test]
    fn a_refusal_names_the_checks_that_failed() {
        let answer = "HTTP/1.0 500 Internal Server Error\r\n\r\n[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed";
        assert_eq!(
            check(answer),
            Err("HTTP/1.0 500 Internal Server Error, [-]etcd failed: reason withheld".into())
        );
    }
}
