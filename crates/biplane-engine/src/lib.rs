//! The reconcilers, the pipeline that they run, and `render`, which runs them on an in-memory
//! cluster.
//!
//! The reconcilers do not know which cluster they use. Rendering differs only in the reconciler's
//! [`Context`] and in its behaviour, which is data: see [`render`].

pub mod claim;
pub mod composite;
mod connection_secret;
pub mod context;
pub mod controllers;
mod defining;
pub mod definition;
mod draft;
pub mod failure;
pub mod in_process;
mod managed_fields;
pub mod offered;
pub mod operation;
pub mod pipeline;
pub mod pipeline_check;
pub mod reconcile;
pub mod render;
pub mod requirements;
pub mod revision;
pub mod sources;

pub use context::Context;
pub use failure::{Failure, Fatal};
pub use reconcile::{ReconcileError, Requeue};
pub use sources::{Clock, FixedClock, Ids, SystemClock, SystemIds};
