//! Compositions and their revisions: the hash that tells whether a revision is current, and the
//! revision that a Composition gets.

use serde_json::Value;

use crate::owner::{OwnerReference, controller_of, set_controller};
use crate::typed::{normal, tables};
use crate::{Map, Object, labels, names, yaml};

/// Patches that need an environment.
const WITH_ENVIRONMENT: [&str; 4] = [
    "FromEnvironmentFieldPath",
    "ToEnvironmentFieldPath",
    "CombineFromEnvironment",
    "CombineToEnvironment",
];

/// Whether a Composition is of mode Resources, with templates or not.
pub fn is_of_resources_mode(composition: &Object) -> bool {
    composition.str_at(&["spec", "mode"]) == "Resources" || has_templates(composition)
}

/// Whether a Composition composes resources from templates (mode Resources). That was the default.
pub fn has_templates(composition: &Object) -> bool {
    let mode = composition.str_at(&["spec", "mode"]);
    matches!(mode, "" | "Resources") && !items(composition.at(&["spec", "resources"])).is_empty()
}

/// Whether a Composition has an environment, or patches that need one.
pub fn uses_environment(composition: &Object) -> bool {
    if composition.at(&["spec", "environment"]).is_some_and(Value::is_object) {
        return true;
    }
    let templates = [["spec", "resources"], ["spec", "patchSets"]];
    let mut patches = templates
        .iter()
        .flat_map(|path| items(composition.at(path)))
        .flat_map(|template| items(template.get("patches")));
    patches.any(|patch| {
        let kind = patch.get("type").and_then(Value::as_str).unwrap_or_default();
        WITH_ENVIRONMENT.contains(&kind)
    })
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The group and version of Compositions, their revisions and definitions.
pub const API_VERSION: &str = "apiextensions.crossplane.io/v1";
/// The length of a label's value at most.
const LONGEST_LABEL: usize = 63;
/// The number of hexadecimal digits at the end of a revision's name.
const DIGITS: usize = 7;

/// The hash of a Composition's labels, annotations and spec, in hexadecimal digits.
///
/// It is the same as Crossplane's, so that a control plane that takes over finds its revisions.
pub fn hash(composition: &Object) -> String {
    let metadata = |key| composition.at(&["metadata", key]).unwrap_or(&Value::Null);
    let parts = [metadata("labels"), metadata("annotations"), &Value::Object(spec(composition))]
        .map(yaml::to_string);
    names::sha256(parts.iter().map(String::as_bytes))
}

/// The value of a revision's label [`labels::COMPOSITION_HASH`]: the hash as far as a label can
/// hold it.
pub fn label_of(hash: &str) -> &str {
    hash.get(..LONGEST_LABEL).unwrap_or(hash)
}

/// The spec as Crossplane's types have it. What only the types of the v1 line have is kept, if it is
/// there.
fn spec(composition: &Object) -> Map<String, Value> {
    const OF_V1: [&str; 3] = ["environment", "patchSets", "resources"];
    let of_type = |fields| match normal(composition, fields).remove("spec") {
        Some(Value::Object(spec)) => spec,
        _ => Map::new(),
    };
    let mut spec = of_type(tables::COMPOSITION);
    if OF_V1.iter().any(|field| composition.at(&["spec", field]).is_some()) {
        let mut older = of_type(tables::v1::COMPOSITION);
        spec.extend(OF_V1.into_iter().filter_map(|field| older.remove_entry(field)));
    }
    spec
}

/// The revision that a Composition gets, with this number.
pub fn revision(composition: &Object, hash: &str, number: i64) -> Object {
    let mut revision = Object::new();
    revision.set_at_or_ignore(&["apiVersion"], API_VERSION);
    revision.set_at_or_ignore(&["kind"], "CompositionRevision");
    let digits = hash.get(..DIGITS).unwrap_or(hash);
    revision.set_meta("name", &format!("{}-{digits}", composition.name()));
    let mut all = Map::new();
    all.insert(labels::COMPOSITION_NAME.to_owned(), composition.name().into());
    all.insert(labels::COMPOSITION_HASH.to_owned(), label_of(hash).into());
    all.extend(composition.texts("labels").unwrap_or_default());
    revision.set_at_or_ignore(&["metadata", "labels"], all);
    let annotations = composition.texts("annotations").unwrap_or_default();
    if !annotations.is_empty() {
        revision.set_at_or_ignore(&["metadata", "annotations"], annotations);
    }
    // A new object has no other controller.
    let _ = set_controller(&mut revision, owner(composition));
    let mut spec = spec(composition);
    spec.insert("revision".to_owned(), number.into());
    revision.set_at_or_ignore(&["spec"], spec);
    revision
}

/// The reference to the Composition that its revisions have.
pub fn owner(composition: &Object) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "Composition".to_owned(),
        ..OwnerReference::controller(composition)
    }
}

/// The number of a revision. Numbers begin at one; zero means that it has none.
pub fn number(revision: &Object) -> i64 {
    let number = revision.at(&["spec", "revision"]);
    number.and_then(crate::object::integer).unwrap_or_default()
}

/// Whether a revision belongs to the Composition with this UID.
pub fn is_revision_of(revision: &Object, uid: &str) -> bool {
    controller_of(revision).is_some_and(|controller| controller.uid == uid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn a_revision_keeps_what_only_the_v1_line_has() {
        let spec = json!({
            "mode": "Resources",
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "X"},
            "environment": {"defaultData": {"a": 1}},
            "patchSets": [{"name": "s", "patches": [{"type": "FromCompositeFieldPath"}]}],
            "resources": [{"name": "r", "base": {"kind": "A"}}],
        });
        let composition = object(json!({"metadata": {"name": "c"}, "spec": spec}));
        let made = revision(&composition, &hash(&composition), 3);
        let mut wanted = spec;
        wanted["revision"] = json!(3);
        assert_eq!(made.get("spec"), Some(&wanted));
        let mut other = composition.clone();
        other.set_at(&["spec", "environment", "defaultData", "a"], 2).unwrap();
        assert_ne!(hash(&composition), hash(&other));
    }

    #[test]
    fn templates_and_environments_are_recognised() {
        let check = |spec: Value, templates: bool, environment: bool| {
            let composition = object(json!({"spec": spec}));
            assert_eq!(has_templates(&composition), templates, "{composition:?}");
            let says_so = composition.str_at(&["spec", "mode"]) == "Resources";
            assert_eq!(is_of_resources_mode(&composition), templates || says_so);
            assert_eq!(uses_environment(&composition), environment, "{composition:?}");
        };
        check(json!({}), false, false);
        check(json!({"mode": "Resources"}), false, false);
        check(json!({"resources": [{}]}), true, false);
        check(json!({"mode": "Resources", "resources": [{}], "environment": {}}), true, true);
        check(json!({"mode": "Pipeline", "resources": [{}], "environment": null}), false, false);
        let patch = json!([{"type": "CombineToEnvironment"}]);
        check(json!({"resources": [{"patches": patch}]}), true, true);
        check(json!({"mode": "Pipeline", "patchSets": [{"patches": patch}]}), false, true);
    }

    #[test]
    fn the_hash_of_nothing_is_the_recorded_one() {
        // REV-1
        let empty = "775265aaf20123c08e3eee3fc546e69c8f0bbff595a6030600dcf90fe9dd9ef1";
        assert_eq!(hash(&object(json!({"spec": {}}))), empty);
        assert_eq!(hash(&Object::new()), empty);
        assert_eq!(hash(&object(json!({"metadata": {"name": "x", "uid": "y"}}))), empty);
    }

    #[test]
    fn labels_annotations_and_spec_count_and_nothing_else() {
        // REV-1
        let base = json!({"metadata": {"name": "c"}, "spec": {"mode": "Pipeline", "pipeline": [
            {"step": "a", "functionRef": {"name": "f"}, "input": {"b": 1, "a": [true, 0.5]}},
        ]}});
        let change = |pointer: &str, value: Value| {
            let mut changed = object(base.clone());
            let path: Vec<_> = pointer.split('/').skip(1).collect();
            changed.set_at(&path, value).unwrap();
            hash(&changed)
        };
        let unchanged = hash(&object(base.clone()));
        for (pointer, value) in [
            ("/metadata/labels", json!({"a": "b"})),
            ("/metadata/annotations", json!({"a": "b"})),
            ("/spec/mode", json!("Other")),
            ("/spec/writeConnectionSecretsToNamespace", json!("ns")),
        ] {
            assert_ne!(change(pointer, value), unchanged, "{pointer}");
        }
        for (pointer, value) in [
            ("/metadata/generation", json!(7)),
            ("/metadata/managedFields", json!([{"manager": "x"}])),
            ("/status", json!({"conditions": []})),
            ("/spec/unknown", json!("field")),
        ] {
            assert_eq!(change(pointer, value), unchanged, "{pointer}");
        }
    }

    #[test]
    fn a_revision_is_named_labelled_and_owned_as_the_rule_says() {
        // REV-4: a label of the Composition wins.
        let composition = object(json!({
            "apiVersion": API_VERSION, "kind": "Composition",
            "metadata": {
                "name": "comp", "uid": "u", "resourceVersion": "9",
                "labels": {"channel": "dev", "crossplane.io/composition-name": "other"},
                "annotations": {"note": "n"},
            },
            "spec": {"compositeTypeRef": {"apiVersion": "e.org/v1", "kind": "K"}, "stray": 1},
        }));
        let hash = hash(&composition);
        let owner = json!([{"apiVersion": API_VERSION, "kind": "Composition", "name": "comp",
            "uid": "u", "controller": true, "blockOwnerDeletion": true}]);
        assert_eq!(
            revision(&composition, &hash, 4).into_value(),
            json!({
                "apiVersion": API_VERSION, "kind": "CompositionRevision",
                "metadata": {
                    "name": format!("comp-{}", &hash[..7]),
                    "labels": {"channel": "dev", "crossplane.io/composition-name": "other",
                        "crossplane.io/composition-hash": hash[..63]},
                    "annotations": {"note": "n"},
                    "ownerReferences": owner,
                },
                "spec": {"compositeTypeRef": {"apiVersion": "e.org/v1", "kind": "K"}, "revision": 4},
            })
        );
    }
}
