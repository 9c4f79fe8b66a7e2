//! Creates the Operation of a WatchOperation when a watched object changes.

use biplane_model::names::sha256;
use biplane_model::owner::{OwnerReference, set_controller};
use biplane_model::{Object, Value};
use serde_json::json;

use super::API_VERSION;
use super::template::{self, TemplateError};

/// The label with the name of the WatchOperation.
pub const LABEL: &str = "ops.crossplane.io/watchoperation";
/// The requirement name under which every step gets the watched object.
pub const REQUIREMENT: &str = "ops.crossplane.io/watched-resource";

/// Returns the name of the Operation for one state of an object.
pub fn name(watch: &Object, watched: &Object) -> String {
    let mut state = format!(
        "{}/{}/{}/{}/{}",
        watched.gvk(),
        watched.namespace(),
        watched.name(),
        watched.uid(),
        watched.resource_version()
    );
    let deleted = watched.str_at(&["metadata", "deletionTimestamp"]);
    if let Ok(time) = deleted.parse() {
        state.push('/');
        state.push_str(&biplane_model::condition::seconds(time));
    }
    let hash = sha256([state.as_bytes()]);
    format!("{}-{}", watch.name(), &hash[..7])
}

/// Makes every step of an Operation require the watched object.
pub fn require_watched(operation: &mut Object, watched: &Object) {
    let mut required = json!({
        "requirementName": REQUIREMENT,
        "apiVersion": watched.api_version(),
        "kind": watched.kind(),
        "name": watched.name(),
    });
    if !watched.namespace().is_empty() {
        required["namespace"] = watched.namespace().into();
    }
    if let Some(Value::Array(steps)) = operation.at(&["spec", "pipeline"]) {
        let mut steps = steps.clone();
        for step in &mut steps {
            template::push(step, "requirements", "requiredResources", required.clone());
        }
        operation.set_at_or_ignore(&["spec", "pipeline"], steps);
    }
}

/// Returns the Operation for one state of an object.
pub fn operation(watch: &Object, watched: &Object) -> Result<Object, TemplateError> {
    let mut operation = template::from(watch)?;
    require_watched(&mut operation, watched);
    operation.set_meta("name", &name(watch, watched));
    operation.set_at_or_ignore(&["metadata", "labels", LABEL], watch.name());
    for (what, value) in [
        ("apiversion", watched.api_version()),
        ("kind", watched.kind()),
        ("name", watched.name()),
        ("namespace", watched.namespace()),
        ("resourceversion", watched.resource_version()),
    ] {
        if what != "namespace" || !value.is_empty() {
            let key = format!("{REQUIREMENT}-{what}");
            operation.set_at_or_ignore(&["metadata", "annotations", &key], value);
        }
    }
    let owner = OwnerReference {
        api_version: API_VERSION.into(),
        kind: "WatchOperation".into(),
        ..OwnerReference::controller(watch)
    };
    set_controller(&mut operation, owner).map_err(|e| TemplateError(e.to_string()))?;
    Ok(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_state_of_the_object() {
        // WO-5, T-97
        let watch = Object::from_value(json!({"metadata": {"name": "test-watch"}})).unwrap();
        let check = |metadata: Value, want: &str| {
            let mut pod = Object::from_value(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}),
            )
            .unwrap();
            pod.set_meta("name", "test-pod");
            pod.set_meta("namespace", "default");
            assert_eq!(name(&watch, &pod), want);
        };
        check(json!({"uid": "test-uid", "resourceVersion": "123"}), "test-watch-2ae9bd3");
        check(json!({"uid": "test-uid", "resourceVersion": "124"}), "test-watch-a1051fc");
        check(
            json!({
                "resourceVersion": "ops.crossplane.io/synthetic-deleted",
                "deletionTimestamp": "2023-01-01T00:00:00Z",
            }),
            "test-watch-ef68891",
        );
    }
    /// RO-2, T-40
    #[test]
    fn every_step_requires_the_watched_object() {
        let object = |value: Value| Object::from_value(value).unwrap();
        let operation = json!({"spec": {"pipeline": [
            {"step": "a", "requirements": {"requiredResources": [{"requirementName": "x"}]}},
            {"step": "b"},
        ]}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "n"}});
        let mut with_namespace = object(operation.clone());
        require_watched(&mut with_namespace, &object(secret));
        let selector = json!({"requirementName": REQUIREMENT, "apiVersion": "v1", "kind": "Secret",
            "name": "s", "namespace": "n"});
        assert_eq!(
            with_namespace.at(&["spec", "pipeline"]).unwrap(),
            &json!([
                {"step": "a", "requirements": {"requiredResources": [{"requirementName": "x"}, selector]}},
                {"step": "b", "requirements": {"requiredResources": [selector]}},
            ])
        );

        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "s"}});
        let mut without = object(operation);
        require_watched(&mut without, &object(node));
        let steps = without.at(&["spec", "pipeline"]).unwrap();
        let selector = steps.pointer("/1/requirements/requiredResources/0").unwrap();
        assert_eq!(selector.get("namespace"), None);
    }
}
