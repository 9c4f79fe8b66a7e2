//! Rules for object metadata: the fields that the server owns, validation, and changes that it
//! ignores.

use biplane_model::{Map, Object, Value, names};
use biplane_schema::structural::{FieldError, Problem};

use super::given;
use crate::error::WriteError;

const KNOWN: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

const OWNERS: &str = "ownerReferences";
const TEXTS: [&str; 2] = ["annotations", "labels"];

/// Removes unknown and empty fields of the metadata. Nulls inside of it become what they are for a
/// type: a missing field of an owner, and an empty text.
pub(super) fn tidy(object: &mut Object) {
    let Some(Value::Object(meta)) = object.get("metadata") else { return };
    let untidy = |(name, value): (&String, &Value)| {
        !KNOWN.contains(&name.as_str()) || is_hollow(name, value)
    };
    if !meta.iter().any(untidy) && !TEXTS.iter().chain([&OWNERS]).any(|n| has_null(meta.get(*n))) {
        return;
    }
    if let Some(Value::Object(meta)) = object.make_mut().get_mut("metadata") {
        meta.retain(|name, value| !untidy((name, value)));
        let owners = meta.get_mut(OWNERS).and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
            owner.retain(|_, value| !value.is_null());
        }
        for name in TEXTS {
            let texts = meta.get_mut(name).and_then(Value::as_object_mut);
            for text in texts.into_iter().flat_map(Map::values_mut).filter(|text| text.is_null()) {
                *text = "".into();
            }
        }
    }
}

fn has_null(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Array(items)) => items.iter().any(|item| has_null(Some(item))),
        Some(Value::Object(fields)) => fields.values().any(Value::is_null),
        _ => false,
    }
}

fn is_hollow(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        // An empty list requests a reset of the managers. It is read before it is removed.
        Value::Array(items) => items.is_empty() && name != "managedFields",
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => name == "generation" && number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

pub(super) fn finalizers(object: &Object) -> Vec<String> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Checks that an object has a namespace exactly if its kind is namespaced.
pub(super) fn check_namespace(namespaced: bool, object: &Object) -> Result<(), WriteError> {
    if namespaced != object.namespace().is_empty() {
        return Ok(());
    }
    Err(WriteError::BadRequest(if namespaced {
        "an empty namespace may not be set during creation".into()
    } else {
        "the namespace of the provided object does not match the namespace sent on the request"
            .into()
    }))
}

/// Validates the metadata of a new object.
pub(super) fn validate(object: &Object) -> Vec<FieldError> {
    let name = object.name();
    if name.is_empty() {
        let detail = "name or generateName is required";
        return vec![FieldError::new(Problem::Required, "metadata.name", "", detail)];
    }
    // Built-in kinds have their own naming rules. Names with colons are common.
    let lenient = object.gvk().group.ends_with(".k8s.io") || object.gvk().group.is_empty();
    let mut errors = validate_owners(object);
    if lenient || names::is_subdomain(name) {
        return errors;
    }
    let detail = if name.len() > 253 {
        "must be no more than 253 characters"
    } else {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
         or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
         regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    };
    errors.push(FieldError::new(Problem::Invalid, "metadata.name", name, detail));
    errors
}

/// Checks that an object has at most one controller.
fn validate_owners(object: &Object) -> Vec<FieldError> {
    let Some(owners) = object.at(&["metadata", OWNERS]).and_then(Value::as_array) else {
        return Vec::new();
    };
    let text = |owner: &Value, name| owner.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut controllers = owners
        .iter()
        .filter(|owner| owner.get("controller") == Some(&Value::Bool(true)))
        .map(|owner| ["kind", "name"].map(|name| text(owner, name).unwrap_or_default()).join("/"));
    let Some(first) = controllers.next() else { return Vec::new() };
    let error = |second| {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        FieldError::new(Problem::Invalid, format!("metadata.{OWNERS}"), owners.clone(), detail)
    };
    controllers.map(error).collect()
}

/// Validates changes to the metadata.
pub(super) fn validate_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = validate_owners(new);
    if old.is_being_deleted() {
        let before = finalizers(old);
        let mut added: Vec<String> =
            finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        added.sort();
        if !added.is_empty() {
            let added: Vec<String> = added.iter().map(|f| biplane_go::fmt::quote(f)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::new(Problem::Forbidden, "metadata.finalizers", "", detail));
        }
    }
    if new.uid() != old.uid() {
        let (field, detail) = ("metadata.uid", "field is immutable");
        errors.push(FieldError::new(Problem::Invalid, field, new.uid(), detail));
    }
    errors
}

/// Restores the fields that clients cannot change.
pub(super) fn keep_system_fields(new: &mut Object, old: &Object) {
    for field in ["creationTimestamp", "deletionTimestamp", "generation"] {
        match given(old.at(&["metadata", field])).cloned() {
            Some(value) => new.set_at_or_ignore(&["metadata", field], value),
            None if field == "generation" => {
                new.remove_at(&["metadata", field]);
            }
            None => {}
        }
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        if given(new.at(&["metadata", field])).is_none()
            && let Some(value) = old.at(&["metadata", field]).cloned()
        {
            new.set_at_or_ignore(&["metadata", field], value);
        }
    }
}

/// Whether anything but the metadata differs.
pub(super) fn differs_outside(a: &Object, b: &Object) -> bool {
    fn rest(object: &Object) -> impl Iterator<Item = (&String, &Value)> {
        object.iter().filter(|(name, _)| *name != "metadata")
    }
    rest(a).count() != rest(b).count()
        || !rest(a)
            .zip(rest(b))
            .all(|((an, av), (bn, bv))| an == bn && biplane_schema::value::equal(av, bv))
}

/// Restores the managers' timestamps if nothing else changed, so that the write changes nothing.
pub(super) fn keep_times_if_nothing_else_changed(new: &mut Object, old: &Object) {
    let path = ["metadata", "managedFields"];
    if without_times(new) != without_times(old) {
        return;
    }
    if let Some(managers) = old.at(&path).cloned() {
        new.set_at_or_ignore(&path, managers);
    }
}

fn without_times(object: &Object) -> Object {
    let mut out = object.clone();
    let metadata = out.make_mut().get_mut("metadata").and_then(Value::as_object_mut);
    let entries = metadata.and_then(|m: &mut Map<String, Value>| m.get_mut("managedFields"));
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(entry) = entry {
            entry.remove("time");
        }
    }
    out
}
