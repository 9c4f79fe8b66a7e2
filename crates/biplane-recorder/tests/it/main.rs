//! Tests of the sidecars over their sockets.

#![allow(clippy::unwrap_used)] // a failed unwrap fails the test

mod histories;
mod http;
mod life_cycle;
mod logs;
mod otlp;
mod peers;
mod planted;
mod postgres;
mod queries;
mod recording;
mod recordings;
mod replays;
mod store;
mod story;
mod travel;
mod warnings;
mod why;
mod world;
