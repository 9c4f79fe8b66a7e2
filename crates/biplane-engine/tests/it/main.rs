//! Tests of the reconcilers.
#![allow(clippy::unwrap_used)]

mod at_once;
mod bad_input;
mod claim_crashing;
mod claim_recordings;
mod claim_world;
mod claiming;
mod composing;
mod crashing;
mod defining;
mod defining_crashes;
mod defining_recorded;
mod disturbed;
mod emissions;
mod indexing;
mod operations;
mod plane;
mod reconciling;
mod refusals;
mod rendering;
mod revisions;
mod selecting;
mod templates;
mod v1_recordings;
mod world;
