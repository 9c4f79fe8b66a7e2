//! The `Cluster` trait, through which reconcilers use the API server of a control plane, and
//! `MemoryCluster`, an in-memory API server.
//!
//! Code above this crate does not know which kind of cluster it uses.

pub mod cluster;
pub mod memory;

pub use cluster::{
    Apply, Cluster, Delete, Event, EventType, ListQuery, Patch, Propagation, ReadError, Source,
    WatchEvent, WriteError,
};
pub use memory::{MemoryCluster, WritePolicy};
