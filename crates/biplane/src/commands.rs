//! One module per command.

pub mod render;
