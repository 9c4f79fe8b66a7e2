//! A recorder beside a control plane on this machine, with its pages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use biplane_function::metrics::Metrics;
use biplane_pages::serve::Server;
use biplane_recorder::recorder::Recorder;
use biplane_recorder::serve::{self, Bound};
use clap::Parser;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::pages::{self, Listening};
use super::{Printing, Serve};

/// Where pages are if nothing else is said, and what is tried if that is taken.
const ADDRESSES: [&str; 2] = ["127.0.0.1:7654", "127.0.0.1:0"];
/// How long the recorder may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let usual = Serve { print: Printing::None, ..Serve::usual(&store)? };
        let mut options = usual.options()?;
        "dev".clone_into(&mut options.ledger.source);
        let counters = metrics.clone();
        // The store must not be opened where something asynchronous runs.
        let started = tokio::task::spawn_blocking(move || Recorder::start(options, &counters));
        let recorder = started.await.context("the thread that opens the store has ended")??;
        let bound = serve::Options {
            socket: socket.clone(),
            max_message: usual.max_message(),
            shutdown: PATIENCE,
        };
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

/// A command line, to read flags that nobody typed.
#[derive(Debug, Parser)]
struct Untyped {
    #[command(flatten)]
    serve: Serve,
}

impl Serve {
    /// What the flags are unless told otherwise.
    fn usual(store: &Path) -> Result<Self> {
        let flags = [OsStr::new("serve"), OsStr::new("--store"), store.as_os_str()];
        Ok(Untyped::try_parse_from(flags)?.serve)
    }
}
