//! A recorder beside a control plane on this machine, with its pages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_function::metrics::Metrics;
use biplane_pages::serve::Server;
use biplane_proto::redact::Mode;
use biplane_recorder::recorder::{Options, Recorder};
use biplane_recorder::serve::{self, Bound};
use biplane_recorder::store::{LedgerOptions, Location, Retention};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::pages::{self, Listening};
use super::{RESERVE, micros, now};
use crate::commands::sidecar;

/// Where pages are if nothing else is said, and what is tried if that is taken.
const ADDRESSES: [&str; 2] = ["127.0.0.1:7654", "127.0.0.1:0"];
/// How long the recorder may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
const MESSAGE: usize = 32 * 1024 * 1024;
const DAY: Duration = Duration::from_hours(24);

/// A recorder that runs.
pub(in crate::commands) struct Local {
    recorder: Arc<Recorder>,
    pages: Option<Server>,
    receiving: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    /// Where a control plane emits to.
    pub(in crate::commands) socket: PathBuf,
}

impl Local {
    /// Starts a recorder that keeps everything in a folder. `listen` is the address of its pages;
    /// empty is none.
    pub(in crate::commands) async fn start(folder: &Path, listen: Option<&str>) -> Result<Self> {
        let store = folder.join("recorder.db");
        let socket = folder.join("inspector.sock");
        let metrics = Metrics::default();
        let (options, counters) = (options(&store), metrics.clone());
        // The store must not be opened where something asynchronous runs.
        let started = tokio::task::spawn_blocking(move || Recorder::start(options, &counters));
        let recorder = started.await.context("the thread that opens the store has ended")??;
        let bound =
            serve::Options { socket: socket.clone(), max_message: MESSAGE, shutdown: PATIENCE };
        let bound: Bound = serve::inspector(Arc::clone(&recorder), bound).await?;
        let (stop, stopped) = oneshot::channel::<()>();
        let receiving = tokio::spawn(async move {
            let first = async { drop(stopped.await) };
            if let Err(error) = bound.run(first, std::future::pending()).await {
                tracing::warn!(%error, "the recorder no longer receives");
            }
        });
        let store = store.display().to_string();
        let pages = serve_pages(listen, &store, &recorder, &metrics).await?;
        Ok(Self { recorder, pages, receiving, stop, socket })
    }

    /// The address of the pages, if there are some.
    pub(in crate::commands) fn address(&self) -> Option<String> {
        self.pages.as_ref().map(|pages| format!("http://{}", pages.address()))
    }

    /// Stores what was received, and ends.
    pub(in crate::commands) async fn stop(self) {
        drop(self.pages);
        let _ = self.stop.send(());
        let _ = self.receiving.await;
        let recorder = self.recorder;
        let _ = tokio::task::spawn_blocking(move || recorder.stop(PATIENCE)).await;
    }
}

async fn serve_pages(
    listen: Option<&str>,
    store: &str,
    recorder: &Arc<Recorder>,
    metrics: &Metrics,
) -> Result<Option<Server>> {
    let serve = async |listen: &str| {
        Listening::local(listen).serve(store, pages::of(recorder, metrics)).await
    };
    match listen {
        Some(listen) => serve(listen).await,
        None => match serve(ADDRESSES[0]).await {
            // Another control plane has it.
            Err(_) => serve(ADDRESSES[1]).await,
            served => served,
        },
    }
}

/// The options that `recorder serve` has unless told otherwise.
fn options(store: &Path) -> Options {
    #[allow(clippy::disallowed_methods)] // this is where random numbers come in
    let id = *uuid::Uuid::new_v4().as_bytes();
    Options {
        location: Location::File(store.to_owned()),
        id,
        ledger: LedgerOptions {
            cluster: String::new(),
            source: "dev".to_owned(),
            failures_only: false,
        },
        retention: Retention {
            runs_for: micros(7 * DAY),
            changes_for: micros(90 * DAY),
            size: 2 * 1024 * 1024 * 1024,
            per_owner: 50,
        },
        queue: 32 * 1024 * 1024,
        min_free: 64 * 1024 * 1024,
        reserve: RESERVE,
        probe: None,
        redactor: sidecar::redactor(Mode::Deep),
        print: None,
        only: Vec::new(),
        now: Arc::new(now),
    }
}
