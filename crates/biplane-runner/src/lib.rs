//! Calls functions. A [`FunctionRunner`] calls a function in this process, at a gRPC target or in
//! an installed package. Wrappers are runners that add a feature to another runner.

pub mod cached;
pub mod connections;
pub mod context;
pub mod fetching;
pub mod grpc;
pub mod in_process;
pub mod inspected;
pub mod named;
pub mod notes;
pub mod packaged;
pub mod reported;
pub mod runner;
pub mod stack;
pub mod step_limit;
pub mod supervised;
pub mod timed;
pub mod tls;

pub use cached::Cached;
pub use connections::{ConnectError, Connections};
pub use context::ContextHelper;
pub use fetching::Fetching;
pub use grpc::GrpcRunner;
pub use in_process::{Direct, InProcess};
pub use inspected::{Inspected, Inspection};
pub use named::Named;
pub use packaged::Packaged;
pub use reported::Reported;
pub use runner::{Call, Cause, FetchError, FunctionRunner, Requirements, RunError, Subject};
pub use step_limit::StepLimit;
pub use supervised::Supervised;
pub use timed::{Timed, Timings};

pub use biplane_function::{Code, Status};

pub(crate) use biplane_function::{status, v1};
