//! Tests of the reconcilers.
#![allow(clippy::unwrap_used)]

mod at_once;
mod bad_input;
mod composing;
mod crashing;
mod defining;
mod defining_crashes;
mod defining_recorded;
mod operations;
mod plane;
mod reconciling;
mod refusals;
mod rendering;
mod selecting;
mod world;
