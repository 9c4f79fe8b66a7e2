//! The command line of Biplane, one module per command.

pub mod cli;
pub mod commands;
pub mod config;
pub mod environment;
pub mod exit;
mod inspection;
pub mod values;
