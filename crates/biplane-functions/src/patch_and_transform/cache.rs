//! A cache of prepared plans.

use std::sync::Arc;

use biplane_model::object::memory_of_map;
use biplane_proto::Struct;

use super::plan::Plan;
use crate::kept::{self, Kept};

/// The bytes of all plans and their inputs.
const MAX_BYTES: usize = 32 << 20;

/// The number of cached plans: more than the Compositions of one control plane have steps.
const MAX_PLANS: usize = 256;

/// A plan has about as many bytes as its input, once for its texts and once for everything else.
const PER_INPUT: usize = 3;

/// The latest plans, by input.
#[derive(Debug)]
pub(super) struct Plans(Kept<Struct, Plan>);

impl Default for Plans {
    fn default() -> Self {
        Self(Kept::new(MAX_BYTES, MAX_PLANS))
    }
}

impl Plans {
    /// Returns the plan for an input, or the error.
    pub(super) fn get(&self, input: &Struct) -> Result<Arc<Plan>, String> {
        // Inputs from the same process are often the same allocation. Over the wire they are only
        // equal.
        if let Some(plan) = self.0.find(|known| known.same(input)) {
            return Ok(plan);
        }
        let hash = kept::hash(&**input.object());
        if let Some((known, plan)) = self.0.find_hash(hash)
            && known == *input
        {
            return Ok(plan);
        }
        let plan = Arc::new(Plan::new(input)?);
        let bytes = PER_INPUT * memory_of_map(input) + plan.patterns_size;
        self.0.keep(hash, input.clone(), Arc::clone(&plan), bytes);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use biplane_model::Object;
    use serde_json::{Value, json};

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

    #[test]
    fn an_input_that_fails_is_not_kept() {
        let plans = Plans::default();
        let mut wrong = input("[a-z]+");
        wrong.make_mut().insert("resources".into(), Value::from(1));
        plans.get(&wrong).unwrap_err();
        assert!(plans.0.find(|_| true).is_none());
    }

    #[test]
    fn inputs_of_a_megabyte_do_not_add_up() {
        let plans = Plans::default();
        for number in 0..40 {
            let mut large = input("[a-z]+");
            let text = format!("{number}{}", "x".repeat(1 << 20));
            large.make_mut().insert("metadata".into(), json!({"name": text}));
            let plan = plans.get(&large).unwrap();
            assert!(Arc::ptr_eq(&plan, &plans.get(&large).unwrap()), "it fits");
        }
        let left = std::cell::Cell::new(0);
        let _ = plans.0.find(|_| {
            left.set(left.get() + 1);
            false
        });
        assert!((5..=10).contains(&left.get()), "{} are left", left.get());
    }
}
