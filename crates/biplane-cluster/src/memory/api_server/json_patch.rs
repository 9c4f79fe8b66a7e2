//! Patches: JSON patch (RFC 6902) and JSON merge patch (RFC 7386).
//!
//! A real server also accepts negative list positions (`/args/-1`), which are not in the standard.
//! They are refused here.

use biplane_model::Value;
use json_patch::PatchOperation;

use crate::error::WriteError;

/// Applies a merge patch to a document. Null removes a field.
pub(super) fn merge(document: &Value, patch: &Value) -> Value {
    let mut out = document.clone();
    json_patch::merge(&mut out, patch);
    out
}

/// Applies a list of operations to a document: all of them or none.
pub(super) fn json(document: &Value, operations: &[Value]) -> Result<Value, WriteError> {
    patched(document, operations).ok_or_else(|| {
        let text = "the server rejected our request due to an error in our request";
        WriteError::Invalid(text.into())
    })
}

fn patched(document: &Value, operations: &[Value]) -> Option<Value> {
    let operations: Option<Vec<PatchOperation>> =
        operations.iter().map(|operation| serde_json::from_value(operation.clone()).ok()).collect();
    let mut out = document.clone();
    json_patch::patch(&mut out, &operations?).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_lays_objects_over_each_other_and_null_removes() {
        for (document, patch, merged) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        ] {
            assert_eq!(merge(&document, &patch), merged);
        }
    }

    #[test]
    fn a_json_patch_goes_through_whole_or_not_at_all() {
        let document = json!({"a": {"b/c": [1, 2]}, "d": "x"});
        let patched = json(
            &document,
            &[
                json!({"op": "test", "path": "/d", "value": "x"}),
                json!({"op": "add", "path": "/a/b~1c/1", "value": 9}),
                json!({"op": "add", "path": "/a/b~1c/-", "value": 10}),
                json!({"op": "remove", "path": "/a/b~1c/0"}),
                json!({"op": "replace", "path": "/d", "value": "y"}),
                json!({"op": "copy", "from": "/d", "path": "/e"}),
                json!({"op": "move", "from": "/d", "path": "/f"}),
            ],
        );
        assert_eq!(patched, Ok(json!({"a": {"b/c": [9, 2, 10]}, "e": "y", "f": "y"})));
        for bad in [
            json!({"op": "remove", "path": "/nothing"}),
            json!({"op": "replace", "path": "/nothing", "value": 1}),
            json!({"op": "add", "path": "/a/b~1c/7", "value": 1}),
            json!({"op": "test", "path": "/d", "value": "z"}),
            json!({"op": "odd", "path": "/d"}),
            json!({"op": "add", "path": "d", "value": 1}),
        ] {
            assert!(matches!(json(&document, &[bad]), Err(WriteError::Invalid(_))));
        }
    }
}
