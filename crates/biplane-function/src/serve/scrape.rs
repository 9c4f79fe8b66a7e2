//! Serves metrics over plain HTTP. Every path returns all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::server::{bind_tcp, each_connection};

/// Limits of the time and size of a scrape request, and of the number of concurrent ones.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_REQUEST: usize = 16 * 1024;
const AT_ONCE: usize = 16;

/// Serves the metrics until it is aborted. Returns the address, or `None` if binding fails.
pub(super) async fn serve(address: &str, metrics: Metrics) -> Option<(String, AbortHandle)> {
    let listener = match bind_tcp(address).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::info!(address, %error, "cannot serve metrics");
            return None;
        }
    };
    let bound = listener.local_addr().ok()?.to_string();
    let serving = tokio::spawn(async move {
        let slots = Arc::new(Semaphore::new(AT_ONCE));
        each_connection(&listener, &slots, |stream, slot| {
            let answered = tokio::time::timeout(PATIENCE, answer(stream, metrics.clone()));
            tokio::spawn(async move {
                let _ = answered.await;
                drop(slot);
            });
        })
        .await;
    });
    Some((bound, serving.abort_handle()))
}

async fn answer(mut stream: TcpStream, metrics: Metrics) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > LARGEST_REQUEST || stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let body = metrics.text();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
