//! Starts functions where they run: in process, at an address, as programs, in containers, from projects.
//!
//! [`start`] is the way in: it takes the [`function::Function`]s of the input and returns
//! [`runners::Runners`] that can be called. What was started ends when the runners do.

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
