//! Tests of templates through the interface of the crate.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod differential;
mod engine;
mod limits;
mod mutations;
mod places;
mod spec;
