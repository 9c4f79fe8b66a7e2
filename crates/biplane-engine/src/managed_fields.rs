//! Migrates objects from client-side to server-side apply, so that fields which are no longer
//! desired are removed.
//!
//! It takes two steps: first all managers are removed, so that the next apply leaves everything
//! that it does not mention to a manager of its own; then that manager is removed.

use biplane_cluster::{Cluster, Optional, Part, Patch, Write};
use biplane_model::{Object, Value};
use biplane_schema::merge::BEFORE_FIRST_APPLY;
use serde_json::json;
use tokio::time::Instant;

use crate::draft::MANAGER;
use crate::failure::{Attempted, Failure};

/// Migrates an object to server-side apply by the managers that `is_ours` knows. Returns the object
/// as it is then if that took a write.
pub(crate) async fn upgrade(
    cluster: &dyn Cluster,
    object: &Object,
    is_ours: fn(&str) -> bool,
    by: Instant,
) -> Result<Option<Object>, Failure> {
    let Some((patch, what)) = patch(object, is_ours) else { return Ok(None) };
    let (how, patch) = (Write::by(MANAGER), Patch::Json(patch));
    let patched = cluster.patch(&object.id(), Part::Main, &patch, &how, by).await;
    patched.optional().attempted(what)
}

/// Returns the required patch and its description, if one is required.
fn patch(object: &Object, is_ours: fn(&str) -> bool) -> Option<(Vec<Value>, &'static str)> {
    object.at(&["metadata", "creationTimestamp"]).filter(|v| !v.is_null())?;
    // Without any managers, it is not known whether the object was migrated.
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let managers: Vec<&str> = managers
        .filter(|managers| !managers.is_empty())?
        .iter()
        .map(|entry| entry.get("manager").and_then(Value::as_str).unwrap_or_default())
        .collect();
    let ours = managers.iter().any(|manager| is_ours(manager));
    let before = managers.iter().rposition(|manager| *manager == BEFORE_FIRST_APPLY);
    let version = || {
        let version = object.resource_version();
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})
    };
    match (ours, before) {
        (true, None) => None,
        (true, Some(index)) => {
            let remove =
                json!({"op": "remove", "path": format!("/metadata/managedFields/{index}")});
            Some((vec![remove, version()], "cannot remove before-first-apply from field managers"))
        }
        (false, _) => {
            let clear = json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]});
            Some((vec![clear, version()], "cannot clear field managers"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mk(managers: &[&str], created: bool) -> Object {
        let fields: Vec<_> = managers.iter().map(|m| json!({"manager": m})).collect();
        let mut object = Object::new();
        object.set_at_or_ignore(&["metadata", "managedFields"], fields);
        object.set_meta("resourceVersion", "7");
        if created {
            object.set_meta("creationTimestamp", "2024-01-01T00:00:00Z");
        }
        object
    }

    fn patch(object: &Object) -> Option<(Vec<Value>, &'static str)> {
        super::patch(object, |manager| manager.starts_with("apiextensions.crossplane.io/composed"))
    }

    #[test]
    fn managers_are_cleared_or_trimmed_as_the_table_says() {
        // SSA-4, T-62
        let ours = "apiextensions.crossplane.io/composed/abc";
        assert_eq!(patch(&mk(&["crossplane"], false)), None);
        assert_eq!(patch(&mk(&[], true)), None, "unknown is not the same as none");
        assert_eq!(patch(&mk(&[ours, "kubectl"], true)), None);
        let (cleared, _) = patch(&mk(&["crossplane"], true)).unwrap();
        assert_eq!(cleared[0]["value"], json!([{}]));
        let (trimmed, _) = patch(&mk(&[ours, "x", "before-first-apply"], true)).unwrap();
        assert_eq!(trimmed[0]["path"], "/metadata/managedFields/2");
        assert_eq!(trimmed[1]["value"], "7");
    }
}
