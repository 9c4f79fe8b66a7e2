//! The command line, run as users run it.

#![allow(clippy::unwrap_used)] // clippy.toml reaches test functions only, not their helpers

mod conformance;
mod documented;
mod engines;
mod guide;
mod mistakes;
mod program;
mod progress;
mod project;
mod support;
mod tree;
mod usage;
mod write_a_function;
