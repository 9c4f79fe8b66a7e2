//! The `Cluster` trait, through which reconcilers use the API server of a control plane, the
//! recorder of events, and in-memory clusters.
//!
//! Code above this crate does not know which kind of cluster it uses.

pub mod cluster;
pub mod error;
pub mod events;
mod form;
pub mod memory;
pub mod quiet;
pub mod watch;

pub use cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, Effect, Form, List, Page, Part, Patch,
    Precondition, Propagation, Query, Source, Subscribe, Write,
};
pub use error::{Optional, ReadError, WriteError};
pub use events::{Event, EventType, Events, Recorder, Regarding};
pub use quiet::{Quiet, Skipping};
pub use watch::{Change, Subscription};
