//! Puts wrappers around runners. Only this module decides which wrapper goes around which.
//!
//! A command calls a function through, from the outside in:
//!
//! ```text
//! Inspected ─ Fetching ─ Timed ─ Named ┬ Reported ─ Supervised | GrpcRunner | Direct
//!                                      └ ContextHelper
//! ```
//!
//! A control plane has `StepLimit` and `Cached` between `Inspected` and `Fetching`. If each iteration
//! is inspected, another `Inspected` is directly below `Fetching`, and the outermost one only sees
//! what the cache answers.

use std::sync::Arc;
use std::time::Duration;

use crate::inspected::{Granularity, When};
use crate::runner::{Call, FunctionRunner, Requirements};
use crate::{Cached, Fetching, Inspected, Inspection, Named, Reported, StepLimit, Timed, Timings};

/// The cache of answers of a control plane.
pub type AnswerCache = Arc<Cached<Arc<dyn FunctionRunner>>>;

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

/// The functions as a reconciler without a cache calls them, inspected if it is wanted.
pub fn of_inspected_reconciler(
    functions: Arc<dyn FunctionRunner>,
    requirements: impl Requirements + 'static,
    inspection: Option<&Inspection>,
) -> Arc<dyn FunctionRunner> {
    inspected(of_reconciler(inspected_calls(functions, inspection), requirements), inspection)
}

/// The functions as the reconcilers of a control plane call them, and their cache if `cache` makes
/// one.
pub fn of_control_plane(
    functions: Arc<dyn FunctionRunner>,
    requirements: impl Requirements + 'static,
    cache: impl FnOnce(Arc<dyn FunctionRunner>) -> Option<AnswerCache>,
    step_limit: Option<Duration>,
    inspection: Option<&Inspection>,
) -> (Arc<dyn FunctionRunner>, Option<AnswerCache>) {
    let fetching = of_reconciler(inspected_calls(functions, inspection), requirements);
    let cache = cache(Arc::clone(&fetching));
    let answers = cache.clone().map_or(fetching, |cache| cache as Arc<dyn FunctionRunner>);
    let limited = match step_limit {
        Some(limit) => Arc::new(StepLimit::new(answers, limit)),
        None => answers,
    };
    (inspected(limited, inspection), cache)
}

/// Inspects the steps of pipelines, around everything else. If each iteration is inspected, only
/// what a cache answers is left to inspect here.
pub fn inspected(
    functions: Arc<dyn FunctionRunner>,
    inspection: Option<&Inspection>,
) -> Arc<dyn FunctionRunner> {
    let Some(inspection) = inspection else { return functions };
    let when = match inspection.granularity() {
        Granularity::Step => When::Always,
        Granularity::Iteration => When::Cached,
    };
    Arc::new(Inspected::new(functions, inspection.clone(), when))
}

/// Inspects the calls that a step consists of, directly below [`Fetching`], if each is inspected.
pub fn inspected_calls(
    functions: Arc<dyn FunctionRunner>,
    inspection: Option<&Inspection>,
) -> Arc<dyn FunctionRunner> {
    match inspection {
        Some(inspection) if inspection.granularity() == Granularity::Iteration => {
            Arc::new(Inspected::new(functions, inspection.clone(), When::Always))
        }
        _ => functions,
    }
}
