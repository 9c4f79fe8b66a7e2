//! Tests of the reconcilers.
#![allow(clippy::unwrap_used)]

mod at_once;
mod bad_input;
mod composing;
mod crashing;
mod emissions;
mod operations;
mod reconciling;
mod refusals;
mod rendering;
mod selecting;
mod world;
