//! Migrates composed resources from client-side to server-side apply, so that fields which are no
//! longer desired are removed.

use biplane_cluster::{Optional, Part, Patch, Write};
use biplane_model::{Object, Value};
use biplane_schema::merge::BEFORE_FIRST_APPLY;
use serde_json::json;

use super::pass::Pass;
use super::persist::MANAGER;
use super::write::COMPOSED_MANAGER;
use crate::failure::{Attempted, Failure};

/// Migrates an object to server-side apply. Does nothing if it is already migrated.
pub(super) async fn upgrade(pass: &Pass<'_>, object: &Object) -> Result<(), Failure> {
    let Some((patch, what)) = patch(object) else { return Ok(()) };
    let (how, patch) = (Write::by(MANAGER), Patch::Json(patch));
    let patched = pass.cluster().patch(&object.id(), Part::Main, &patch, &how, pass.by).await;
    patched.optional().attempted(what)?;
    Ok(())
}

/// Returns the required patch and its description, if one is required.
fn patch(object: &Object) -> Option<(Vec<Value>, &'static str)> {
    object.at(&["metadata", "creationTimestamp"]).filter(|v| !v.is_null())?;
    // Without any managers, it is not known whether the object was migrated.
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let managers: Vec<&str> = managers
        .filter(|managers| !managers.is_empty())?
        .iter()
        .map(|entry| entry.get("manager").and_then(Value::as_str).unwrap_or_default())
        .collect();
    let ours = managers.iter().any(|manager| manager.starts_with(COMPOSED_MANAGER));
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
