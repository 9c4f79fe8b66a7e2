//! The reconcilers, the pipeline that they run, and `render`, which runs them on an in-memory
//! cluster.
//!
//! The reconcilers do not know which cluster they use. Rendering differs only in the values of the
//! reconciler's dependencies: see [`render`].

pub mod composite;
pub mod failure;
pub mod operation;
pub mod pipeline;
pub mod render;
pub mod requirements;
pub mod sources;

pub use failure::Failure;
pub use sources::{Clock, FixedClock, Ids, SystemClock, SystemIds};
