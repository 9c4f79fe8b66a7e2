//! The launcher against the real programs.

#![allow(clippy::unwrap_used)] // clippy.toml reaches test functions only, not their helpers

mod apiserver;
mod kubectl;
