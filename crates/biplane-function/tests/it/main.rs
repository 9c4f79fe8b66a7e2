//! Functions over the wire: our client, our server, and servers that misbehave.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop where it is

mod certs;
mod client;
mod faults;
mod helpers;
mod linked;
mod serve;
mod world;
