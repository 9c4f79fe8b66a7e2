//! Tests of templates through the interface of the crate.

mod differential;
mod engine;
mod limits;
mod mutations;
mod places;
mod spec;
