//! A cache of prepared plans.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_proto::Struct;

use super::plan::Plan;

/// The number of cached plans: more than the Compositions of one control plane have steps. Large
/// plans are not cached.
const CAPACITY: usize = 128;

type Made = Result<Arc<Plan>, String>;

/// The latest plans by input, newest last.
#[derive(Default)]
pub(super) struct Plans(Mutex<Vec<(Struct, Made)>>);

impl Plans {
    /// Returns the plan for an input, or the error.
    pub(super) fn get(&self, input: &Struct) -> Made {
        if let Some(plan) = self.find(input) {
            return plan;
        }
        // Built without the lock, because compiling patterns takes time.
        let plan = Plan::new(input).map(Arc::new);
        if plan.as_ref().is_ok_and(|plan| plan.is_large()) {
            return plan;
        }
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if plans.len() >= CAPACITY {
            drop(plans.remove(0));
        }
        plans.push((input.clone(), plan.clone()));
        plan
    }

    fn find(&self, input: &Struct) -> Option<Made> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Inputs from the same process are often the same allocation. Over the wire they are only
        // equal.
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

#[cfg(test)]
mod tests {
    use biplane_model::Object;
    use serde_json::json;

    use super::*;

    fn input(pattern: &str) -> Struct {
        let transform =
            json!({"type": "string", "string": {"type": "Regexp", "regexp": {"match": pattern}}});
        let patch = json!({
            "type": "FromCompositeFieldPath", "fromFieldPath": "spec.a", "toFieldPath": "spec.b",
            "transforms": [transform],
        });
        Object::from_value(json!({"resources": [{"name": "a", "patches": [patch]}]}))
            .unwrap()
            .into()
    }

    #[test]
    fn a_plan_is_made_once_unless_it_is_large() {
        for (pattern, kept) in [("[a-z]+", true), (r"\pL{400}", false)] {
            let plans = Plans::default();
            let first = plans.get(&input(pattern)).unwrap();
            let second = plans.get(&input(pattern)).unwrap();
            assert_eq!(Arc::ptr_eq(&first, &second), kept, "{pattern}");
        }
    }
}
