//! A small HTTP server for scrapes, probes and questions: it reads the head of a request, answers
//! and hangs up.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::accept::each_connection;
use super::listen::{ListenError, bind_tcp};

/// Limits of the time and size of a request, and of the number of concurrent ones.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_REQUEST: usize = 16 * 1024;
const AT_ONCE: usize = 16;

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl Page {
    /// A page of plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// What an answer may depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The path, with the query if there is one.
    pub target: String,
    /// The `Host` header. Empty if there is none.
    pub host: String,
}

/// A server that runs until it is dropped.
pub struct PlainHttp {
    address: String,
    serving: AbortHandle,
}

impl fmt::Debug for PlainHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainHttp").field("address", &self.address).finish_non_exhaustive()
    }
}

impl PlainHttp {
    /// Serves pages at an address in Go's format: `:8080` is every address of the machine. `page`
    /// gets the path of each request, without its query.
    pub async fn start(
        address: &str,
        page: impl Fn(&str) -> Page + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        Self::start_asking(address, move |asked: Asked| {
            let path = asked.target.split('?').next().unwrap_or_default();
            std::future::ready(page(path))
        })
        .await
    }

    /// The same for pages that take a while, or that depend on more than the path.
    pub async fn start_asking<F: Future<Output = Page> + Send>(
        address: &str,
        page: impl Fn(Asked) -> F + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let listener = bind_tcp(address).await?;
        let address = listener.local_addr()?.to_string();
        let page = Arc::new(page);
        let serving = tokio::spawn(async move {
            let slots = Arc::new(Semaphore::new(AT_ONCE));
            each_connection(&listener, &slots, |stream, slot| {
                let page = Arc::clone(&page);
                let answered =
                    tokio::time::timeout(PATIENCE, async move { answer(stream, &*page).await });
                tokio::spawn(async move {
                    let _ = answered.await;
                    drop(slot);
                });
            })
            .await;
        });
        Ok(Self { address, serving: serving.abort_handle() })
    }

    /// The address that it is bound to.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for PlainHttp {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer<F: Future<Output = Page> + Send>(
    mut stream: TcpStream,
    page: &(impl Fn(Asked) -> F + Send + Sync),
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LARGEST_REQUEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&request);
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    });
    let asked = Asked { target: target.to_owned(), host: host.unwrap_or_default() };
    let Page { status, content_type, body } = match method {
        "GET" | "HEAD" => page(asked).await,
        _ => Page::text(405, "method not allowed\n"),
    };
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Internal Server Error",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}
