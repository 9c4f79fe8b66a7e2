//! The pages as readers get them, from a store with recorded runs.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod live;
mod network;
mod pages;
mod safety;
mod sizes;
mod world;
