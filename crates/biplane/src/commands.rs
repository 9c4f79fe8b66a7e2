//! The commands, one module each.

pub mod completions;
pub mod config;
pub mod core;
pub mod function;
pub mod internal;
pub mod man;
pub mod render;
pub mod version;
