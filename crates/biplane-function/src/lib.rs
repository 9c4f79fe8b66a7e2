//! Functions are values: something that turns a request into a response. Where it runs (in
//! process, over gRPC, in a container) is a runner behind one port.

pub mod cached;
pub mod fetching;
pub mod function;
pub mod grpc;
pub mod in_process;
pub mod linked;
pub mod metrics;
pub mod named;
pub mod packaged;
pub mod request;
pub mod resource;
pub mod response;
pub mod runner;
pub mod serve;
pub mod status;
pub mod tls;

pub use cached::Cached;
pub use fetching::Fetching;
pub use function::{Function, PureFunction, Registry};
pub use grpc::GrpcRunner;
pub use in_process::InProcess;
pub use linked::Linked;
pub use named::Named;
pub use packaged::Packaged;
pub use runner::{Call, FetchError, FunctionRunner, Requirements, RunError};

pub use biplane_proto::function::v1;
