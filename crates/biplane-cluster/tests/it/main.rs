//! Tests of the public API of the clusters.
#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod garbage;
mod http;
mod sequences;
mod skips;
mod watching;
