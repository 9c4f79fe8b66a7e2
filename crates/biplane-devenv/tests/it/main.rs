//! Tests of the launcher with the real programs.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions, not their helpers

mod apiserver;
mod kubectl;
