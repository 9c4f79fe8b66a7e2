//! Go's `text/template`: the same language, the same output, and the same error texts.
//!
//! A [`Template`] is parsed once and can be run by many threads. A run takes its time, its random
//! numbers and its limits from the caller. It never reads a clock, a file or a socket.

pub mod budget;
mod builtin;
mod error;
mod exec;
pub mod func;
mod lex;
mod literal;
mod parse;
mod program;
mod slot;
pub mod sprig;
mod template;
pub mod types;
pub mod value;

pub use error::{ParseError, Place, RunError};
pub use exec::MissingKey;
pub use lex::Delimiters;
pub use template::{Functions, Template};
pub use value::print;
