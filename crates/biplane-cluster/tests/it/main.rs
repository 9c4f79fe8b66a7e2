//! Tests of the public API of the clusters.
#![allow(clippy::unwrap_used)] // helpers of tests may panic as tests may

mod garbage;
mod http;
mod sequences;
mod watching;
