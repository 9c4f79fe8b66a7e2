//! Tests of functions over the wire: the client, and servers that misbehave.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop where it is

mod client;
mod faults;
mod world;
