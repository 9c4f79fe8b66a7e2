//! Data in the middle: JSON objects as Kubernetes means them, and what can be said about them
//! without a clock, a network or a file.
//!
//! Everything here is a pure function of its arguments.

pub mod claim;
pub mod condition;
pub mod fieldpath;
pub mod labels;
pub mod layout;
pub mod names;
pub mod object;
pub mod owner;
pub mod pipeline;
pub mod typed;
pub mod yaml;

pub use object::{Gvk, Object, ObjectId};
/// The JSON types that everything here is made of. Maps are ordered by key.
pub use serde_json::{Map, Number, Value};
