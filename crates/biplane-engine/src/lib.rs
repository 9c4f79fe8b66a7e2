//! The reconcilers, the pipeline that they run, and render, which runs them on an in-memory cluster.
//!
//! Nothing here asks which cluster it runs on. What differs in render differs because a value in
//! the reconciler's dependencies differs: see [`render`].

pub mod composite;
pub mod failure;
pub mod operation;
pub mod pipeline;
pub mod render;
pub mod requirements;
pub mod sources;

pub use failure::Failure;
pub use sources::{Clock, FixedClock, Ids, SystemClock, SystemIds};
