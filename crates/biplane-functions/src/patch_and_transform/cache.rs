//! Plans that have been made before.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_proto::Struct;

use super::plan::Plan;

/// How many plans are kept: more than one control plane's compositions have steps.
const CAPACITY: usize = 128;

type Made = Result<Arc<Plan>, String>;

/// The latest plans by their inputs, newest last.
#[derive(Default)]
pub(super) struct Plans(Mutex<Vec<(Struct, Made)>>);

impl Plans {
    /// The plan for an input, or why there is none.
    pub(super) fn get(&self, input: &Struct) -> Made {
        if let Some(plan) = self.find(input) {
            return plan;
        }
        // Made outside the lock, because patterns take their time.
        let plan = Plan::new(input).map(Arc::new);
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= CAPACITY {
            drop(plans.remove(0));
        }
        plans.push((input.clone(), plan.clone()));
        plan
    }

    fn find(&self, input: &Struct) -> Option<Made> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Inputs of one process are often the very same object; over the wire they are only equal.
        let same = plans.iter().rposition(|(known, _)| known.same(input));
        let found = same.or_else(|| plans.iter().rposition(|(known, _)| known == input))?;
        let entry = plans.remove(found);
        let plan = entry.1.clone();
        plans.push(entry);
        Some(plan)
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plans").finish_non_exhaustive()
    }
}
