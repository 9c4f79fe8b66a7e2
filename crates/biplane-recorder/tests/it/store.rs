//! Tests of the store, each on a file and on a server.

mod chain;
mod content;
mod keys;
mod retention;
mod runs;
mod sizes;
mod together;
pub(crate) mod world;
