//! Tests of the whole control plane on real API servers: recorded scenarios, and how many requests
//! are sent.

#![allow(clippy::unwrap_used)]

mod faults;
mod peer;
mod player;
mod printed;
mod quiet;
mod scenarios;
mod side;
mod variants;
mod world;
