//! What is shown of an object of the API server: what the user and the pipelines decide, and not what
//! a server and a control plane add for themselves.
//!
//! So the output of a render until stable has the same form as that of a single reconcile, and can be
//! given to a render again. What was given is shown as it was given.

use biplane_model::{Object, Value};
use biplane_schema::merge::BEFORE_FIRST_APPLY;

use crate::print;

/// Metadata that a server sets.
const METADATA: [&str; 5] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];
/// The finalizers that a control plane and a garbage collector work with.
const FINALIZERS: [&str; 3] = [
    "composite.apiextensions.crossplane.io",
    "finalizer.apiextensions.crossplane.io",
    "foregroundDeletion",
];
/// Fields of composite resources and claims that say which revision of a Composition is used. The revisions of a
/// render are its own.
const REVISION: [&str; 2] = ["compositionRevisionRef", "compositionUpdatePolicy"];
/// The field manager of what a control plane decides about composite resources.
const CONTROL_PLANE: &str = "crossplane";

/// An object as it is shown. `given` is the object as it was given, and `machinery` the path of the
/// control plane's fields if it is a composite resource or a claim.
pub(super) fn shown(
    mut object: Object,
    given: Option<&Object>,
    machinery: Option<&[&str]>,
) -> Object {
    let was_given = |path: &[&str]| given.and_then(|given| given.at(path)).cloned();
    if let Some(machinery) = machinery {
        for field in REVISION {
            let path = [machinery, &[field]].concat();
            if was_given(&path).is_none() && !is_of_others(&object, &path) {
                object.remove_at(&path);
            }
        }
        let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
        if object.at(machinery).is_some_and(is_empty) && was_given(machinery).is_none() {
            object.remove_at(machinery);
        }
        if was_given(&["metadata", "generation"]).is_none() {
            forget_generations(&mut object);
        }
    }
    for field in METADATA {
        let path = ["metadata", field];
        match was_given(&path) {
            Some(value) => object.set_at_or_ignore(&path, value),
            None => {
                object.remove_at(&path);
            }
        }
    }
    hide_finalizers(&mut object, was_given(&["metadata", "finalizers"]).as_ref());
    print::fix_times(&mut object);
    object
}

/// Whether somebody else than the control plane has set a field.
fn is_of_others(object: &Object, path: &[&str]) -> bool {
    let pointer: String = path.iter().flat_map(|field| ["/f:", field]).collect();
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    managers.into_iter().flatten().any(|entry| {
        let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
        ![CONTROL_PLANE, BEFORE_FIRST_APPLY].contains(&manager)
            && entry.pointer(&format!("/fieldsV1{pointer}")).is_some()
    })
}

/// Removes the generation from conditions. It counts the writes of the control plane, too.
fn forget_generations(object: &mut Object) {
    let path = ["status", "conditions"];
    let Some(Value::Array(conditions)) = object.at(&path) else { return };
    let mut conditions = conditions.clone();
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.remove("observedGeneration");
    }
    object.set_at_or_ignore(&path, conditions);
}

fn hide_finalizers(object: &mut Object, given: Option<&Value>) {
    let path = ["metadata", "finalizers"];
    let Some(Value::Array(all)) = object.at(&path) else { return };
    let was_given = |finalizer: &Value| {
        given.and_then(Value::as_array).is_some_and(|given| given.contains(finalizer))
    };
    let is_shown = |finalizer: &&Value| {
        was_given(finalizer) || !FINALIZERS.iter().any(|hidden| *finalizer == hidden)
    };
    let shown: Vec<_> = all.iter().filter(is_shown).cloned().collect();
    if shown.is_empty() && given.is_none() {
        object.remove_at(&path);
    } else {
        object.set_at_or_ignore(&path, shown);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value)] // literals are easier to read

    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn what_a_server_adds_is_not_shown_unless_it_was_given() {
        let stored = object(json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7",
            "generation": 3, "creationTimestamp": "now", "managedFields": [{}],
            "finalizers": ["mine", FINALIZERS[0]]}}));
        let finalizers = json!({"name": "a", "finalizers": ["mine"]});
        assert_eq!(shown(stored.clone(), None, None), object(json!({"metadata": finalizers})));
        let given = object(json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}}));
        let after = shown(stored, Some(&given), None);
        assert_eq!((after.uid(), after.resource_version()), ("u", "1"));
    }

    #[test]
    fn of_a_composite_resource_the_revision_is_not_shown_unless_somebody_chose_it() {
        let machinery: &[&str] = &["spec", "crossplane"];
        let chosen = json!({"compositionRevisionRef": {"name": "a-1"},
            "compositionUpdatePolicy": "Manual"});
        let managed = |manager: &str| {
            object(json!({"metadata": {"managedFields": [{"manager": manager, "fieldsV1": {
                    "f:spec": {"f:crossplane": {"f:compositionUpdatePolicy": {}}}}}]},
                "spec": {"crossplane": chosen}}))
        };
        let spec = |object: Object| object.get("spec").cloned();
        assert_eq!(spec(shown(managed("crossplane"), None, Some(machinery))), Some(json!({})));
        let by_others = json!({"crossplane": {"compositionUpdatePolicy": "Manual"}});
        assert_eq!(spec(shown(managed("composed"), None, Some(machinery))), Some(by_others));
        let given = object(json!({"spec": {"crossplane": chosen}}));
        let all = json!({"crossplane": chosen});
        assert_eq!(spec(shown(managed("crossplane"), Some(&given), Some(machinery))), Some(all));
        // Other kinds may have fields of these names.
        let all = json!({"crossplane": chosen});
        assert_eq!(spec(shown(managed("crossplane"), None, None)), Some(all));
    }
}
