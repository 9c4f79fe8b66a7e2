//! Functions are values: something that turns a request into a response. Where it runs (in
//! process, over gRPC, in a container) is a runner behind one port.

pub mod function;
pub mod runner;

pub use function::{Function, PureFunction, Registry};
pub use runner::{Call, FunctionRunner, Requirements, RunError};

pub use biplane_proto::function::v1;
