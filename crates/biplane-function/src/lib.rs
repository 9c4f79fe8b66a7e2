//! The SDK of function authors: what a function is, helpers to read its request and to write its response,
//! and a server for it.
//!
//! The crate re-exports what its signatures name, so that a function depends on no other crate of ours and
//! uses the same version of tonic.

pub mod function;
pub mod linked;
pub mod metrics;
pub mod request;
pub mod resource;
pub mod response;
pub mod serve;
pub mod status;
pub mod tls;

pub use function::{Function, PureFunction, Registry};
pub use linked::Linked;

pub use async_trait::async_trait;
pub use biplane_model::{Map, Object, Value};
pub use biplane_proto::function::v1;
pub use biplane_proto::{Struct, json};
pub use tonic::{self, Code, Status};
