//! The reconcilers, the pipeline that they run, and `render`, which runs them on an in-memory
//! cluster.
//!
//! The reconcilers do not know which cluster they use. Rendering differs only in the reconciler's
//! [`Context`] and in its behaviour, which is data: see [`render`].

pub mod composite;
pub mod context;
pub mod controllers;
mod defining;
pub mod definition;
pub mod failure;
pub mod in_process;
pub mod offered;
pub mod operation;
pub mod pipeline;
pub mod reconcile;
pub mod render;
pub mod requirements;
pub mod sources;

pub use context::Context;
pub use failure::{Failure, Fatal};
pub use reconcile::{ReconcileError, Requeue};
pub use sources::{Clock, FixedClock, Ids, SystemClock, SystemIds};
