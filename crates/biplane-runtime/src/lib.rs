//! Starts functions where they run: in process, at an address, as local processes, in containers,
//! or from a project.
//!
//! [`start`] is the entry point: it takes the [`function::Function`]s of the input and returns
//! [`runners::Runners`] that can be called. Everything that was started ends when the runners are
//! dropped.

mod archive;
mod build_spec;
pub mod docker;
pub mod engine;
pub mod function;
pub mod options;
mod placement;
mod process;
pub mod process_group;
pub mod project;
pub mod runners;
pub mod running;
pub mod start;
mod start_limiter;

pub use engine::{Engine, EngineOptions, Subject};
pub use function::Function;
pub use options::Options;
pub use runners::Runners;
pub use running::Running;
pub use start::start;
