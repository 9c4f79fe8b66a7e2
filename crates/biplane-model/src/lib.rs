//! Kubernetes objects as JSON values, and everything that can be derived from them without a clock,
//! a network or a file.
//!
//! Everything here is a pure function of its arguments.

pub mod claim;
pub mod composition;
pub mod condition;
pub mod environment;
pub mod fieldpath;
pub mod integrity;
pub mod labels;
pub mod layout;
pub mod names;
pub mod object;
pub mod owner;
pub mod pipeline;
pub mod selection;
pub mod typed;
pub mod yaml;

pub use object::{Gvk, Object, ObjectId};
/// The JSON types that all modules use. Maps are ordered by key.
pub use serde_json::{Map, Number, Value};
