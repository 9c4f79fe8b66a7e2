//! The commands, one module each.

pub mod changelogs;
pub mod completions;
pub mod config;
pub mod convert;
pub mod core;
pub mod dev;
pub mod function;
pub mod inspector;
pub mod internal;
pub mod man;
pub mod recorder;
mod records;
pub mod render;
mod sidecar;
pub mod validate;
pub mod version;
pub mod why;
