//! The SDK for function authors: the function traits, helpers to read the request and to write the
//! response, and a gRPC server.
//!
//! The crate re-exports the types in its signatures. A function therefore needs no other Biplane
//! crate and uses the same version of tonic.

pub mod budget;
pub mod function;
pub mod linked;
pub mod metrics;
pub mod request;
pub mod resource;
pub mod response;
pub mod serve;
pub mod server;
pub mod status;
mod threads;
pub mod tls;

pub use budget::{Budget, Exceeded};
pub use function::{Explanation, Function, PureFunction, Registry};
pub use linked::Linked;

pub use async_trait::async_trait;
pub use biplane_model::{Map, Object, Value};
pub use biplane_proto::function::v1;
pub use biplane_proto::{Struct, json};
pub use tonic::{self, Code, Status};
