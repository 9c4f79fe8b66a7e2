//! Compares the built-in functions with recordings of the real ones.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod auto_ready;
mod dummy;
mod environment_configs;
mod go_templating;
mod memory;
mod packages;
mod patch_and_transform;
mod peers;
mod recorded;
mod rows;
mod torture;
