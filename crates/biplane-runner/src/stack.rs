//! Puts wrappers around runners. Only this module decides which wrapper goes around which.
//!
//! A command calls a function through, from the outside in:
//!
//! ```text
//! Fetching ─ Timed ─ Named ┬ Reported ─ Supervised | GrpcRunner | Direct
//!                          └ ContextHelper
//! ```

use std::sync::Arc;

use crate::runner::{Call, FunctionRunner, Requirements};
use crate::{Fetching, Named, Reported, Timed, Timings};

/// A function whose calls are reported while they last.
pub fn reported<G: Send + 'static>(
    function: Arc<dyn FunctionRunner>,
    report: impl Fn(&Call) -> G + Send + Sync + 'static,
) -> Arc<dyn FunctionRunner> {
    Arc::new(Reported::new(function, report))
}

/// The functions of a command, with the duration of each call if it is wanted.
pub fn of_command(functions: Named, timings: Option<&Timings>) -> Arc<dyn FunctionRunner> {
    match timings {
        Some(timings) => Arc::new(Timed::new(functions, timings.clone())),
        None => Arc::new(functions),
    }
}

/// The functions as a reconciler calls them: until their requirements are met.
pub fn of_reconciler(
    functions: Arc<dyn FunctionRunner>,
    requirements: impl Requirements + 'static,
) -> Arc<dyn FunctionRunner> {
    Arc::new(Fetching::new(functions, requirements))
}
