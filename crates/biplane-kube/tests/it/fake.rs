//! A server that answers as a test tells it to, over plain HTTP/1.1.

use std::sync::{Arc, Mutex};

use biplane_kube::{Endpoint, KubeCluster, Options};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// An answer.
pub(crate) enum Reply {
    /// A status code and a body.
    Json(u16, Value),
    /// The same, with a header `Retry-After`.
    Later(u16, u64, Value),
    /// Lines, until the sender is dropped.
    Lines(mpsc::UnboundedReceiver<Value>),
    /// The connection is closed without an answer.
    Cut,
}

/// Everything that was asked, as `METHOD path`, without discovery.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// A cluster on a server that answers with `reply`, and the log of the server. It serves the kinds
/// `Thing` and `Other` of `example.org/v1`.
pub(crate) async fn cluster(
    options: &Options,
    reply: impl FnMut(&str) -> Reply + Send + 'static,
) -> (KubeCluster, Log) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let (seen, reply) = (Arc::clone(&log), Arc::new(Mutex::new(reply)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, reply) = (Arc::clone(&seen), Arc::clone(&reply));
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                while let Some(request) = read(&mut stream).await {
                    let answer = if let Some(known) = discovery(&request) {
                        Reply::Json(200, known)
                    } else {
                        seen.lock().unwrap().push(request.clone());
                        reply.lock().unwrap()(&request)
                    };
                    if !write(&mut stream, answer).await {
                        return;
                    }
                }
            });
        }
    });
    let endpoint = Endpoint { url, ca_pem: String::new(), token: "t".into() };
    (KubeCluster::at(&endpoint, options).unwrap(), log)
}

fn discovery(request: &str) -> Option<Value> {
    match request {
        "GET /api" => Some(json!({"items": []})),
        "GET /apis" => Some(json!({"items": [{"metadata": {"name": "example.org"}, "versions": [
            {"version": "v1", "resources": [
                {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced"},
                {"resource": "others", "responseKind": {"kind": "Other"}, "scope": "Namespaced"},
            ]},
        ]}]})),
        _ => None,
    }
}

/// Reads a request. Its body is ignored.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header).await.ok()?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let mut words = first.split(' ');
    Some(format!("{} {}", words.next()?, words.next()?))
}

/// Writes an answer. Returns whether the connection can be used again.
async fn write(stream: &mut BufReader<TcpStream>, reply: Reply) -> bool {
    let (code, after, body) = match reply {
        Reply::Cut => return false,
        Reply::Json(code, body) => (code, String::new(), body),
        Reply::Later(code, seconds, body) => (code, format!("Retry-After: {seconds}\r\n"), body),
        Reply::Lines(mut lines) => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            if stream.write_all(head.as_bytes()).await.is_err() {
                return false;
            }
            loop {
                // A client says nothing more before it leaves.
                let line = tokio::select! {
                    line = lines.recv() => line,
                    _ = stream.fill_buf() => return false,
                };
                let Some(line) = line else { break };
                let line = format!("{line}\n");
                let chunk = format!("{:x}\r\n{line}\r\n", line.len());
                if stream.write_all(chunk.as_bytes()).await.is_err() {
                    return false;
                }
            }
            return stream.write_all(b"0\r\n\r\n").await.is_ok();
        }
    };
    let body = body.to_string();
    let answer = format!(
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\n{after}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await.is_ok()
}

/// A refusal.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message, "details": {"kind": "things"}})
}

/// A thing at a version.
pub(crate) fn thing(name: &str, version: u64) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"namespace": "ns",
        "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()}})
}
