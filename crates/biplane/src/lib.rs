//! The command line: one module per command.

pub mod cli;
pub mod commands;
pub mod config;
pub mod logging;
pub mod progress;
pub mod signals;
pub mod streams;
mod terminal;
