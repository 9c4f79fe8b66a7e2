//! Tests of the SDK: the helpers, the server, functions of other SDKs.

#![allow(clippy::unwrap_used)] // a test that cannot go on should stop where it is

mod helpers;
mod linked;
mod serve;
mod world;
