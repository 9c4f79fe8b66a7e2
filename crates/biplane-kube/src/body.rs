//! The bodies of requests.

use std::fmt::Write as _;

use biplane_cluster::{Delete, Patch, Precondition, Propagation};
use biplane_model::{Object, Value};
use serde_json::json;

/// The content type of a server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// An object as JSON.
pub(crate) fn json(object: &Object) -> Vec<u8> {
    // A map whose keys are strings can always be written.
    serde_json::to_vec(object).unwrap_or_default()
}

/// An intent as JSON that a reader of YAML understands in the same way.
///
/// The server reads an apply as YAML. YAML does not allow some characters that JSON does, and takes
/// others for line breaks. They can only be inside strings, and are escaped there.
pub(crate) fn apply(intent: &Object) -> Vec<u8> {
    let text = serde_json::to_string(intent).unwrap_or_default();
    let is_usual = text.is_ascii() && !text.contains('\u{7f}');
    if is_usual || !text.chars().any(is_special) {
        return text.into_bytes();
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if is_special(character) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped.into_bytes()
}

fn is_special(character: char) -> bool {
    matches!(
        character,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Puts a precondition into an object, where the server looks for it.
pub(crate) fn require(object: &mut Object, only_if: &Precondition) {
    for (field, value) in conditions(only_if) {
        object.set_meta(field, value);
    }
}

fn conditions(only_if: &Precondition) -> impl Iterator<Item = (&'static str, &str)> {
    let all = [("uid", &only_if.uid), ("resourceVersion", &only_if.resource_version)];
    all.into_iter().filter(|(_, value)| !value.is_empty()).map(|(field, value)| (field, &**value))
}

/// A patch with its content type. A precondition becomes part of it: the server compares the patched
/// object with the stored one.
pub(crate) fn patch(patch: &Patch, only_if: &Precondition) -> (&'static str, Vec<u8>) {
    match patch {
        Patch::Merge(changes) => {
            let mut changes = changes.clone();
            for (field, value) in conditions(only_if) {
                set_metadata(&mut changes, field, value);
            }
            (MERGE, changes.to_string().into_bytes())
        }
        Patch::Json(operations) => {
            let fences = conditions(only_if).map(|(field, value)| {
                json!({"op": "add", "path": format!("/metadata/{field}"), "value": value})
            });
            let all: Vec<Value> = operations.iter().cloned().chain(fences).collect();
            (JSON_PATCH, Value::Array(all).to_string().into_bytes())
        }
    }
}

/// Sets a field of the metadata in a merge patch that is an object. The server refuses others.
fn set_metadata(changes: &mut Value, field: &str, value: &str) {
    let Some(changes) = changes.as_object_mut() else { return };
    let metadata = changes.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert(field.into(), value.into());
    }
}

/// The options of a delete.
pub(crate) fn delete(how: &Delete) -> Vec<u8> {
    let policy = match how.propagation {
        Propagation::Background => "Background",
        Propagation::Foreground => "Foreground",
        Propagation::Orphan => "Orphan",
    };
    let mut options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
    if how.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    for (field, value) in conditions(&how.only_if) {
        options["preconditions"][field] = value.into();
    }
    options.to_string().into_bytes()
}

/// An object without its version and the times of its managers, which a dry run changes or keeps at
/// will.
pub(crate) fn without_versions(object: &Object) -> Object {
    let mut object = object.clone();
    object.remove_at(&["metadata", "resourceVersion"]);
    object.remove_at(&["metadata", "generation"]);
    if let Some(Value::Array(mut entries)) = object.remove_at(&["metadata", "managedFields"]) {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        object.set_at_or_ignore(&["metadata", "managedFields"], entries);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_is_the_same_in_yaml() {
        let intent = json!({"data": {"a": "x\u{7f}\u{85}\u{2028}\u{feff}ä😀\n"}});
        let sent = apply(&Object::from_value(intent.clone()).unwrap());
        let text = String::from_utf8(sent).unwrap();
        assert_eq!(text, "{\"data\":{\"a\":\"x\\u007f\\u0085\\u2028\\ufeffä😀\\n\"}}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), intent);
    }

    #[test]
    fn preconditions_are_part_of_patches_and_deletes() {
        let only_if = Precondition { uid: "u".into(), resource_version: "7".into() };
        let text = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).unwrap();
        let merge = Patch::Merge(json!({"metadata": {"labels": {"a": null}}}));
        assert_eq!(
            text(patch(&merge, &only_if).1),
            json!({"metadata": {"labels": {"a": null}, "uid": "u", "resourceVersion": "7"}})
        );
        let operations = Patch::Json(vec![json!({"op": "remove", "path": "/spec"})]);
        assert_eq!(
            text(patch(&operations, &only_if).1),
            json!([
                {"op": "remove", "path": "/spec"},
                {"op": "add", "path": "/metadata/uid", "value": "u"},
                {"op": "add", "path": "/metadata/resourceVersion", "value": "7"},
            ])
        );
        let how = Delete { only_if, dry_run: true, propagation: Propagation::Foreground };
        assert_eq!(
            text(delete(&how)),
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
                "dryRun": ["All"], "preconditions": {"uid": "u", "resourceVersion": "7"}})
        );
    }
}
