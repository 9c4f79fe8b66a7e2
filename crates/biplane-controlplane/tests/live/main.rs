//! Tests of the whole control plane on real API servers: recorded scenarios, and how many requests
//! are sent.

#![allow(clippy::unwrap_used)]

mod breaker;
mod faults;
mod function_faults;
mod hooks;
mod others;
mod peer;
mod player;
mod printed;
mod quiet;
mod rendered;
mod scenarios;
mod side;
mod stale;
mod v1_modes;
mod variants;
mod webhook;
mod world;
