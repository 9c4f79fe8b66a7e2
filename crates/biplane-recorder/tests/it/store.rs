//! Tests of the store, each on a file and on a server.

mod altered;
mod chain;
mod content;
mod keys;
pub(crate) mod raw;
mod retention;
mod runs;
mod secrets;
mod sizes;
mod together;
mod told;
pub(crate) mod world;
