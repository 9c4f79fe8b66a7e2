//! Tests of the SDK: the helpers, the server, functions of other SDKs.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod budget;
mod helpers;
mod linked;
mod serve;
mod world;
