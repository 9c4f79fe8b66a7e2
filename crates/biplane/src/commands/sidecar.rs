//! What the commands that receive reports share: flags, log, runtime and signals.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use biplane_console::logging::{Format, Log};
use biplane_console::signals;
use biplane_proto::redact::{Mode, Redactor};
use biplane_recorder::Output;
use biplane_recorder::serve::{Bound, ServeError};
use tracing_subscriber::filter::LevelFilter;

use crate::inspection;

/// Reads the size of a message in bytes.
pub(super) fn size(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) | Err(_) => Err(format!("expected a number of bytes but got {text:?}")),
        Ok(size) => Ok(size),
    }
}

/// Debug logs are lines for people; otherwise lines are JSON. All of them go to stderr.
pub(super) fn log(debug: bool) -> Log {
    if debug {
        Log { level: LevelFilter::DEBUG, format: Format::Text }
    } else {
        Log { level: LevelFilter::INFO, format: Format::Json }
    }
}

/// Redacts with a key of this process.
pub(super) fn redactor(mode: Mode) -> Redactor {
    Redactor::new(mode, inspection::tag_key())
}

/// Standard output of the process, for whole lines.
pub(super) fn output() -> Result<Output> {
    Output::new(std::io::stdout()).context("cannot write to standard output")
}

/// Serves on one thread until the process is told to stop.
pub(super) fn serve<T: 'static, F>(
    take: T,
    bind: impl FnOnce(Arc<T>) -> F,
    bound: impl FnOnce(),
    failed: impl Fn(ServeError) -> anyhow::Error,
) -> Result<()>
where
    F: Future<Output = Result<Bound, ServeError>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let served = runtime.block_on(async {
        let attempted = "cannot listen for signals";
        let stop = signals::first_of(signals::of_servers()).context(attempted)?;
        let at_once = signals::nth_of(2, signals::of_servers()).context(attempted)?;
        let server = bind(Arc::new(take)).await.map_err(&failed)?;
        bound();
        server.run(stop, at_once).await.map_err(failed)
    });
    // A reader of standard output that hangs must not keep the process alive.
    runtime.shutdown_background();
    served
}

/// The path of a socket as a flag has it.
pub(super) fn socket(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("the path of the socket is empty".to_owned())
    } else {
        Ok(text.into())
    }
}
