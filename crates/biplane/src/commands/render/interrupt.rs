//! Notices that someone wants the command to stop, so that it can clean up first.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Someone asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Becomes true when someone asks this process to stop, which it then does not do by itself.
pub(super) fn listen() -> Result<watch::Receiver<bool>> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let (send, receive) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        send.send_replace(true);
    });
    Ok(receive)
}

/// Returns once someone asked to stop.
pub(super) async fn requested(interrupted: Option<&watch::Receiver<bool>>) {
    if let Some(interrupted) = interrupted
        && interrupted.clone().wait_for(|interrupted| *interrupted).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
