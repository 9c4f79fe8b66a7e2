//! Shared test helpers: ways to call a function, and a connection that can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use biplane_function::Status;
use biplane_function::v1::RunFunctionResponse;
use biplane_runner::grpc::{Client, Security};
use serde_json::Value;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub(crate) use biplane_testkit::echo::{Echo, config, request, serve};

/// A timeout for operations that will complete.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// A timeout for operations that never complete, long enough for an attempt.
pub(crate) const BRIEF: Duration = Duration::from_secs(1);

pub(crate) fn client(target: &str) -> Client {
    Client::new(target, Security::Plaintext).unwrap()
}

pub(crate) async fn call(target: &str) -> Result<RunFunctionResponse, Status> {
    client(target).call(request("t", &Value::Null), Some(PATIENCE)).await
}

/// Returns the error message of a call.
pub(crate) async fn error(target: &str, patience: Duration) -> String {
    let answer = client(target).call(request("t", &Value::Null), Some(patience)).await;
    biplane_function::status::text(&answer.unwrap_err())
}

/// A proxy that counts connections and can cut them.
pub(crate) struct Wire {
    pub(crate) address: String,
    pub(crate) connections: Arc<AtomicUsize>,
    cut: watch::Sender<usize>,
}

impl Wire {
    pub(crate) async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let (cut, is_cut) = watch::channel(0);
        let (count, target) = (Arc::clone(&connections), target.to_owned());
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let (target, mut is_cut) = (target.clone(), is_cut.clone());
                tokio::spawn(async move {
                    is_cut.mark_unchanged();
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        _ = is_cut.changed() => {}
                    }
                });
            }
        });
        Self { address, connections, cut }
    }

    /// Breaks all connections. New ones are possible.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}
