//! The `Cluster` port through which reconcilers see a control plane's API server, and
//! `MemoryCluster`, the API server that lives in memory.
//!
//! Nothing above this crate knows which cluster it runs on.

pub mod cluster;
pub mod memory;

pub use cluster::{
    Apply, Cluster, Delete, Event, EventType, ListQuery, Patch, Propagation, ReadError, Source,
    WatchEvent, WriteError,
};
pub use memory::{MemoryCluster, WritePolicy};
