//! A sidecar with its socket, and a client.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_proto::redact::{Mode, Redactor, TagKey};
use biplane_recorder::serve::{self, Bound, Options, ServeError};
use biplane_recorder::{ChangePrinter, EmissionPrinter, Format, Output};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// Standard output that a test can read.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Everything that was printed since the last call.
    pub(crate) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Printed {
    /// Takes little at a time, so that lines that are not whole would show.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(1024);
        self.0.lock().unwrap().extend_from_slice(&bytes[..taken]);
        std::thread::yield_now();
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) struct Sidecar {
    pub(crate) printed: Printed,
    pub(crate) socket: PathBuf,
    pub(crate) channel: Channel,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) running: JoinHandle<Result<(), ServeError>>,
    _folder: tempfile::TempDir,
}

pub(crate) fn options(socket: &Path) -> Options {
    Options {
        socket: socket.to_owned(),
        max_message: serve::MAX_MESSAGE,
        shutdown: Duration::from_millis(50),
    }
}

pub(crate) fn redactor(mode: Mode) -> Redactor {
    Redactor::new(mode, TagKey::new([3; 32]))
}

pub(crate) async fn channel(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    let connect = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connect).await.unwrap()
}

pub(crate) async fn bind_inspector(
    format: Format,
    mode: Mode,
    printed: &Printed,
    options: Options,
) -> Result<Bound, ServeError> {
    let output = Output::new(printed.clone()).unwrap();
    let printer = EmissionPrinter::new(format, redactor(mode), output);
    serve::inspector(Arc::new(printer), options).await
}

impl Sidecar {
    pub(crate) async fn inspector(format: Format, mode: Mode) -> Self {
        let (folder, printed) = (tempfile::tempdir().unwrap(), Printed::default());
        let options = options(&folder.path().join("socket"));
        let bound = bind_inspector(format, mode, &printed, options).await.unwrap();
        Self::run(folder, printed, bound).await
    }

    pub(crate) async fn change_logs(mode: Mode) -> Self {
        let (folder, printed) = (tempfile::tempdir().unwrap(), Printed::default());
        let output = Output::new(printed.clone()).unwrap();
        let printer = ChangePrinter::new(redactor(mode), output);
        let options = options(&folder.path().join("socket"));
        let bound = serve::change_logs(Arc::new(printer), options).await.unwrap();
        Self::run(folder, printed, bound).await
    }

    async fn run(folder: tempfile::TempDir, printed: Printed, bound: Bound) -> Self {
        let socket = folder.path().join("socket");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let running = tokio::spawn(bound.run(stopped, std::future::pending()));
        let channel = channel(&socket).await;
        Self { printed, socket, channel, stop, running, _folder: folder }
    }
}
