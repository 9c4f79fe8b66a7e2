//! Functions over the wire: our client, and servers that misbehave.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop where it is

mod client;
mod faults;
mod world;
