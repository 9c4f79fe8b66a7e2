//! One module per command.

pub mod function;
pub mod internal;
pub mod render;
