//! Tests of functions over the wire: the client, and servers that misbehave.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod client;
mod faults;
mod inspector;
mod world;
