//! Readiness by the `Ready` condition.

use std::sync::LazyLock;

use biplane_model::{Object, Value};

use biplane_go::types::{Decoder, Types};

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&["status conditions:[]condition
condition type:string status:string lastTransitionTime:meta.Time reason:string message:string \
observedGeneration:int64"])
});

/// Whether the first `Ready` condition is `True`. A malformed condition makes all of them invalid.
pub(super) fn is_ready(object: &Object) -> bool {
    let Some(Value::Object(status)) = object.get("status") else { return false };
    if TYPES.check(status, "status", Decoder::Lenient).is_err() {
        return false;
    }
    let mut conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let text = |condition: &Value, key| condition.get(key).and_then(Value::as_str) == Some("Ready");
    conditions
        .find(|condition| text(condition, "type"))
        .is_some_and(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
}

#[cfg(test)]
mod tests {
    use super::is_ready;
    use biplane_model::Object;
    use serde_json::{Value, json};

    fn check(status: &Value) -> bool {
        is_ready(&Object::from_value(json!({"status": status})).unwrap())
    }

    /// AR-17.
    #[test]
    fn the_first_ready_condition_decides() {
        assert!(check(
            &json!({"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]})
        ));
        assert!(!check(
            &json!({"conditions": [{"type": "Ready", "status": "False"}, {"type": "Ready", "status": "True"}]})
        ));
        assert!(!check(&json!({"conditions": [{"type": "Ready", "status": "true"}]})));
        assert!(!check(&json!({"conditions": []})));
    }

    /// AR-16.
    #[test]
    fn one_undecodable_condition_spoils_the_list() {
        let ready = json!({"type": "Ready", "status": "True"});
        for other in [
            json!("text"),
            json!({"type": 1}),
            json!({"lastTransitionTime": "yesterday"}),
            json!({"observedGeneration": 1.5}),
            json!({"observedGeneration": 1e19}),
        ] {
            assert!(!check(&json!({"conditions": [ready, other]})), "{other}");
        }
        let fine = json!({"lastTransitionTime": null, "observedGeneration": 3, "extra": []});
        assert!(check(&json!({"conditions": [ready, fine, null], "atProvider": 1})));
    }

    #[test]
    fn without_a_status_nothing_is_ready() {
        assert!(!is_ready(&Object::new()));
        assert!(!check(&json!(null)));
        assert!(!check(&json!("Ready")));
        assert!(!check(&json!({"conditions": {"type": "Ready", "status": "True"}})));
    }
}
