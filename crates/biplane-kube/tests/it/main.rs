//! Tests of the cluster on a real API server, beside the in-memory one, and on one that misbehaves.
#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod fake;
mod live;
mod misbehaving;
mod suite;
mod world;

/// A deadline that no test reaches.
fn soon() -> tokio::time::Instant {
    tokio::time::Instant::now() + std::time::Duration::from_mins(2)
}
