//! Tests of the public API of the clusters.
#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod definitions;
mod events;
mod garbage;
mod http;
mod own_kinds;
mod port;
mod quiet;
mod sequences;
mod skips;
mod verdicts;
mod watching;

/// A deadline that no test reaches.
fn soon() -> tokio::time::Instant {
    tokio::time::Instant::now() + std::time::Duration::from_hours(1)
}
