//! Tests of the whole control plane on an in-memory API server, in paused time.
#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod breaker;
mod controllers;
mod init;
mod leader;
mod living;
mod packages;
mod stable;
mod v1_modes;
mod whole;
mod world;
