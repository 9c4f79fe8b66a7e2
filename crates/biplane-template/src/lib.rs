//! Go's `text/template`: the same language, the same output, and the same error texts.
//!
//! A [`Template`] is parsed once and can be run by many threads. A run takes its time, its random
//! numbers and its limits from the caller. It never reads a clock, a file or a socket.

pub mod budget;
mod builtin;
pub mod func;
mod order;
mod print;
pub mod types;
pub mod value;
