//! HTTP as far as pages need it: one request for each connection, forms, and streams of events.
//!
//! A connection ends with its answer, so what follows a request can never be taken for another one.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// How long a request may take to arrive, and how large its head and its form may be.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_HEAD: usize = 16 * 1024;
const LARGEST_FORM: usize = 16 * 1024;
const MOST_HEADERS: usize = 64;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `HEAD`, `POST` or another word.
    pub method: String,
    /// The path, with the query if there is one.
    pub target: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body of a form.
    pub body: String,
}

impl Request {
    /// A request for a page.
    pub fn get(target: &str) -> Self {
        Self { method: "GET".to_owned(), target: target.to_owned(), ..Self::default() }
    }

    /// A form that is sent.
    pub fn post(target: &str, body: &str) -> Self {
        Self { method: "POST".to_owned(), body: body.to_owned(), ..Self::get(target) }
    }

    /// The same request with another header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The first header of a name, which is in lower case. Empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The path without the query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A parameter of the query. Addresses have ids only, so nothing is escaped in them.
    pub fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// A field of the form.
    pub fn field(&self, name: &str) -> String {
        let mut pairs = self.body.split('&').filter_map(|pair| pair.split_once('='));
        let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
        let text = value.unwrap_or_default().replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().trim().to_owned()
    }

    /// A cookie.
    pub fn cookie(&self, name: &str) -> &str {
        let cookies = self.headers.iter().filter(|(header, _)| header == "cookie");
        let pairs = cookies.flat_map(|(_, value)| value.split(';'));
        let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All of it.
    Text(String),
    /// Texts, until the sender ends.
    Stream(mpsc::Receiver<String>),
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, without the length and without those that every answer has.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Body,
}

impl Response {
    /// An answer of a type.
    pub fn of(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        let headers = vec![("Content-Type", content_type.to_owned())];
        Self { status, headers, body: Body::Text(body.into()) }
    }

    /// A page.
    pub fn html(status: u16, body: impl Into<String>) -> Self {
        Self::of(status, "text/html; charset=utf-8", body)
    }

    /// Plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self::of(status, "text/plain; charset=utf-8", body)
    }

    /// Leads to another page.
    pub fn redirect(target: &str) -> Self {
        Self::text(303, "").with("Location", target)
    }

    /// The same answer with another header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// A header.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    }

    /// The text of the body. Empty if it is a stream.
    pub fn body_text(&self) -> &str {
        match &self.body {
            Body::Text(text) => text,
            Body::Stream(_) => "",
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// Reads a request. `None` if nobody asked, and an answer if it cannot be understood.
pub async fn read(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<Option<Request>, Response>> {
    match tokio::time::timeout(PATIENCE, read_now(stream)).await {
        Ok(read) => read,
        Err(_) => Ok(Ok(None)),
    }
}

async fn read_now(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Result<Option<Request>, Response>> {
    let mut bytes = Vec::new();
    let (mut request, length, end) = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(Ok(None));
        }
        match head(&bytes) {
            Ok(Some(head)) => break head,
            Ok(None) if bytes.len() > LARGEST_HEAD => {
                return Ok(Err(Response::text(431, "the head of the request is too large\n")));
            }
            Ok(None) => {}
            Err(response) => return Ok(Err(response)),
        }
    };
    if length > LARGEST_FORM {
        return Ok(Err(Response::text(413, "the form is too large\n")));
    }
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(Ok(None));
        }
    }
    let body = bytes.get(end..end + length).unwrap_or_default();
    request.body = String::from_utf8_lossy(body).into_owned();
    Ok(Ok(Some(request)))
}

/// Reads the head of a request: the request, the length of its body, and where the body begins.
fn head(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Response> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let end = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(Response::text(400, format!("not a request: {error}\n"))),
    };
    let header = |header: &httparse::Header<'_>| {
        (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).trim().to_owned())
    };
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: parsed.headers.iter().map(header).collect(),
        body: String::new(),
    };
    if !request.header("transfer-encoding").is_empty() {
        return Err(Response::text(501, "send the length of the form\n"));
    }
    let length = match request.header("content-length") {
        "" => 0,
        text => text.parse().map_err(|_| Response::text(400, "the length is no number\n"))?,
    };
    Ok(Some((request, length, end)))
}

/// Writes an answer. A stream goes on until its sender or its reader ends.
pub async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    response: Response,
    with_body: bool,
) -> io::Result<()> {
    let Response { status, headers, body } = response;
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // A value from outside cannot begin another header.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if let Body::Text(text) = &body {
        let _ = write!(head, "Content-Length: {}\r\n", text.len());
    }
    head.push_str("Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    match body {
        _ if !with_body => {}
        Body::Text(text) => stream.write_all(text.as_bytes()).await?,
        Body::Stream(mut texts) => {
            stream.flush().await?;
            while let Some(text) = texts.recv().await {
                stream.write_all(text.as_bytes()).await?;
                stream.flush().await?;
            }
        }
    }
    stream.flush().await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reading(bytes: &str) -> Result<Option<Request>, u16> {
        let mut stream = bytes.as_bytes();
        read(&mut stream).await.unwrap().map_err(|response| response.status)
    }

    #[tokio::test]
    async fn a_request_is_read_with_its_form() {
        let text = "POST /filter?a=1&b=2 HTTP/1.1\r\nHost: localhost\r\nCookie: x=1; y=2\r\n\
            Content-Length: 22\r\n\r\nname=a+b%26c&other=%C3%A4 and more";
        let request = reading(text).await.unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.path()), ("POST", "/filter"));
        assert_eq!((request.query("b"), request.query("c")), (Some("2"), None));
        assert_eq!(
            (request.field("name").as_str(), request.header("host")),
            ("a b&c", "localhost")
        );
        assert_eq!((request.cookie("y"), request.cookie("z")), ("2", ""));
    }

    #[tokio::test]
    async fn what_is_too_large_or_unclear_is_refused() {
        let long = "x".repeat(2 * LARGEST_HEAD);
        for (text, want) in [
            (format!("GET / HTTP/1.1\r\nX: {long}"), 431),
            ("GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".to_owned(), 413),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n".to_owned(), 400),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), 501),
            ("\u{1}\u{2}\r\n\r\n".to_owned(), 400),
        ] {
            assert_eq!(reading(&text).await, Err(want), "{text:.40}");
        }
        assert_eq!(reading("GET / HT").await, Ok(None), "the caller hung up");
    }

    #[tokio::test]
    async fn a_value_cannot_begin_another_header() {
        let mut bytes = Vec::new();
        let response = Response::redirect("/x\r\nSet-Cookie: a=b");
        write(&mut bytes, response, true).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("Location: /xSet-Cookie: a=b\r\n"), "{text}");
    }
}
