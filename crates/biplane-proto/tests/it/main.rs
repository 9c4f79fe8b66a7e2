//! Integration tests of the wire formats.
#![allow(clippy::unwrap_used, clippy::format_collect)] // helpers of tests

mod damaged;
mod json;
mod recorded;
mod structs;
mod tags;
