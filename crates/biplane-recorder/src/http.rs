//! A small HTTP client: one request on one connection, with or without TLS. It blocks.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::trust;

/// How long connecting, each write and each read may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer.
const LARGEST: u64 = 64 * 1024 * 1024;
/// The longest line of a head, and how many there may be.
const LONGEST_LINE: u64 = 64 * 1024;
const MOST_LINES: usize = 200;

/// How a server is believed, and how it believes us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// A file with the bearer token, read for every request because such files are renewed.
    pub token_file: Option<PathBuf>,
    /// A file with the certificates that vouch for the server, instead of those of the system.
    pub ca_file: Option<PathBuf>,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The address of the server is none.
    #[error("expected a server such as http://127.0.0.1:7654 but got {0:?}")]
    Url(String),
    /// Certificates or the token cannot be read.
    #[error("{0}")]
    Credentials(String),
    /// The server cannot be reached, or does not answer in HTTP.
    #[error("cannot ask {server}: {reason}")]
    Failed {
        /// The server.
        server: String,
        /// Why.
        reason: io::Error,
    },
}

/// A server.
#[derive(Clone)]
pub struct Server {
    /// The address without its path, as it was given.
    name: String,
    host: String,
    address: String,
    path: String,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    token_file: Option<PathBuf>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// How many seconds to wait, if the server says so.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: Vec<u8>,
}

impl Server {
    /// Reads an address such as `https://recorder.example.org:7654/path`.
    pub fn new(url: &str, credentials: &Credentials) -> Result<Self, HttpError> {
        let wrong = || HttpError::Url(url.to_owned());
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(wrong()),
        };
        let (host, path) = match rest.split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (rest, String::new()),
        };
        let is_odd = |c: char| c.is_whitespace() || c.is_control() || "@?#".contains(c);
        if host.is_empty() || rest.contains(is_odd) {
            return Err(wrong());
        }
        let port = |text: &str| text.parse::<u16>().is_ok();
        let bare = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(wrong)?.0,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let has_port = after.rsplit_once(':').is_some_and(|(_, text)| port(text));
        if !has_port && after.contains(':') {
            return Err(wrong());
        }
        let usual = if is_tls { 443 } else { 80 };
        let address = if has_port { host.to_owned() } else { format!("{host}:{usual}") };
        let tls = if is_tls {
            let config = trust::client(credentials.ca_file.as_deref());
            let config = config.map_err(|error| HttpError::Credentials(error.to_string()))?;
            let name = ServerName::try_from(bare.to_owned()).map_err(|_| wrong())?;
            Some((Arc::new(config), name))
        } else {
            None
        };
        let name = url.trim_end_matches('/').to_owned();
        let path = path.trim_end_matches('/').to_owned();
        let (host, token_file) = (host.to_owned(), credentials.token_file.clone());
        Ok(Self { name, host, address, path, tls, token_file })
    }

    /// The address as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the address.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Gets a page below the path of the address.
    pub fn get(&self, target: &str) -> Result<Answered, HttpError> {
        self.send(
            &format!("GET {}{target} HTTP/1.1\r\nAccept: application/json\r\n", self.path),
            &[],
        )
    }

    /// Posts to exactly this path.
    pub fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Result<Answered, HttpError> {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n"
        );
        self.send(&head, body)
    }

    fn token(&self) -> Result<String, HttpError> {
        let Some(file) = &self.token_file else { return Ok(String::new()) };
        let wrong = |reason: &dyn fmt::Display| {
            HttpError::Credentials(format!(
                "cannot read the token from {}: {reason}",
                file.display()
            ))
        };
        let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        let token = text.trim();
        if token.is_empty() || token.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err(wrong(&"it is not one word"));
        }
        Ok(format!("Authorization: Bearer {token}\r\n"))
    }

    fn send(&self, head: &str, body: &[u8]) -> Result<Answered, HttpError> {
        let head =
            format!("{head}Host: {}\r\n{}Connection: close\r\n\r\n", self.host, self.token()?);
        let failed = |reason| HttpError::Failed { server: self.name.clone(), reason };
        let stream = self.connect().map_err(failed)?;
        let done = match &self.tls {
            None => exchange(stream, &head, body),
            Some((config, name)) => ClientConnection::new(Arc::clone(config), name.clone())
                .map_err(io::Error::other)
                .and_then(|tls| exchange(StreamOwned::new(tls, stream), &head, body)),
        };
        done.map_err(failed)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn exchange(mut stream: impl Read + Write, head: &str, body: &[u8]) -> io::Result<Answered> {
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()?;
    answer(BufReader::new(stream.take(LARGEST)))
}

fn no_http() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it does not answer in HTTP")
}

/// Reads an answer.
fn answer(mut reader: impl BufRead) -> io::Result<Answered> {
    let first = line(&mut reader)?;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok()).ok_or_else(no_http)?;
    let (mut length, mut is_chunked, mut retry_after) = (None, false, None);
    for count in 0.. {
        let header = line(&mut reader)?;
        if header.is_empty() {
            break;
        }
        if count == MOST_LINES {
            return Err(no_http());
        }
        let (name, value) = header.split_once(':').ok_or_else(no_http)?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Some(value.parse::<u64>().map_err(|_| no_http())?),
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            "retry-after" => retry_after = value.parse().ok(),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        chunks(&mut reader, &mut body)?;
    } else if let Some(length) = length {
        reader.by_ref().take(length).read_to_end(&mut body)?;
        if (body.len() as u64) < length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer is cut off"));
        }
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok(Answered { status, retry_after, body })
}

/// A line without its end.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let text = bytes.strip_suffix(b"\n").ok_or_else(no_http)?;
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    String::from_utf8(text.to_vec()).map_err(|_| no_http())
}

fn chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| no_http())?;
        if size == 0 {
            return Ok(());
        }
        let before = body.len() as u64;
        reader.by_ref().take(size).read_to_end(body)?;
        if body.len() as u64 - before < size || !line(reader)?.is_empty() {
            return Err(no_http());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(url: &str) -> Result<Server, HttpError> {
        Server::new(url, &Credentials::default())
    }

    #[test]
    fn addresses_are_read() {
        for (url, address, path) in [
            ("http://127.0.0.1:7654", "127.0.0.1:7654", ""),
            ("http://localhost/", "localhost:80", ""),
            ("https://recorder.example.org", "recorder.example.org:443", ""),
            ("https://[::1]:7654/below/", "[::1]:7654", "/below"),
            ("http://[::1]", "[::1]:80", ""),
        ] {
            let server = server(url).unwrap();
            assert_eq!((server.address.as_str(), server.path.as_str()), (address, path), "{url}");
        }
        for url in [
            "",
            "ftp://x",
            "http://",
            "http:///x",
            "http://a b",
            "http://a@b",
            "http://a:x",
            "http://[::1",
            "http://a/?x",
            "https://a:99999",
            "http://a\r\nb",
        ] {
            assert!(matches!(server(url), Err(HttpError::Url(_))), "{url}");
        }
    }

    #[test]
    fn answers_of_a_length_in_chunks_and_to_the_end_are_read() {
        let read = |text: &str| answer(text.as_bytes());
        let body =
            |text: &str| read(text).map(|answered| String::from_utf8(answered.body).unwrap());
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc").unwrap(), "ab");
        assert_eq!(body("HTTP/1.0 200\r\n\r\nabc").unwrap(), "abc");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        assert_eq!(body(chunked).unwrap(), "abcd");
        let busy = read("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n").unwrap();
        assert_eq!((busy.status, busy.retry_after), (503, Some(7)));
        for text in [
            "",
            "SSH-2.0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn reading_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = answer(&bytes[..]);
            let head = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice(), &bytes].concat();
            let _ = answer(&head[..]);
        }
    }
}
