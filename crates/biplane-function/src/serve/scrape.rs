//! Serves metrics over plain HTTP. Every path returns all of them.

use std::sync::Weak;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ServerMetrics;
use super::listen::bind_tcp;
use crate::metrics::{CONTENT_TYPE, Metrics};

/// Limits of the time and size of a scrape request.
const PATIENCE: Duration = Duration::from_secs(10);
const LARGEST_REQUEST: usize = 16 * 1024;

/// Serves the metrics until the server stops. Returns the address, or `None` if binding fails.
pub(super) async fn serve(
    address: &str,
    metrics: Metrics,
    server: Weak<ServerMetrics>,
) -> Option<String> {
    let listener = match bind_tcp(address).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::info!(address, %error, "cannot serve metrics");
            return None;
        }
    };
    let bound = listener.local_addr().ok()?.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if server.strong_count() == 0 {
                return;
            }
            tokio::spawn(tokio::time::timeout(PATIENCE, answer(stream, metrics.clone())));
        }
    });
    Some(bound)
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
