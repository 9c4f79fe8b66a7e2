//! Tests of converting claims, rule by rule.

#![allow(clippy::needless_pass_by_value)] // json literals are easier to read as values

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn definition(more: Value) -> Object {
    let mut spec = json!({
        "group": "example.org",
        "names": {"kind": "XDatabase"},
        "claimNames": {"kind": "Database"},
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object(json!({"apiVersion": "apiextensions.crossplane.io/v1", "spec": spec}))
}

fn claim(metadata: Value, spec: Value) -> Object {
    let mut all = json!({"name": "orders", "namespace": "shop"});
    all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    object(
        json!({"apiVersion": "example.org/v1", "kind": "Database", "metadata": all, "spec": spec}),
    )
}

fn of(metadata: Value, spec: Value) -> Object {
    composite(&claim(metadata, spec), &definition(json!({}))).unwrap()
}

/// XG-2, SYN-1, SYN-2, SYN-3, SC-11
#[test]
fn the_composite_resource_refers_to_its_claim_and_has_its_fields() {
    let xr = of(json!({"uid": "u", "finalizers": ["f"]}), json!({"size": 3, "tags": ["a"]}));
    let name = xr.name().to_owned();
    assert_eq!(
        xr,
        object(json!({
            "apiVersion": "example.org/v1",
            "kind": "XDatabase",
            "metadata": {
                "name": name,
                "labels": {CLAIM_NAME: "orders", CLAIM_NAMESPACE: "shop"},
            },
            "spec": {
                "size": 3,
                "tags": ["a"],
                "claimRef": {
                    "apiVersion": "example.org/v1",
                    "kind": "Database",
                    "namespace": "shop",
                    "name": "orders",
                },
            },
        }))
    );
}

/// SYN-1, NM-4
#[test]
fn the_name_follows_from_the_claim() {
    let xr = of(json!({}), json!({}));
    let (base, suffix) = xr.name().split_at("orders-".len());
    assert_eq!(base, "orders-");
    assert_eq!(suffix.len(), 5);
    assert!(suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{suffix}");
    assert_eq!(of(json!({}), json!({"size": 1})).name(), xr.name());
    assert_ne!(of(json!({"namespace": "other"}), json!({})).name(), xr.name());

    let long = of(json!({"name": "a".repeat(70)}), json!({}));
    assert_eq!(long.name().len(), 63);
    assert!(long.name().starts_with(&"a".repeat(58)));

    let bound = of(json!({}), json!({"resourceRef": {"name": "orders-x"}}));
    assert_eq!(bound.name(), "orders-x");
}

/// SYN-2
#[test]
fn labels_and_annotations_of_kubernetes_are_not_copied() {
    let metadata = json!({
        "labels": {"team": "a", "app.kubernetes.io/name": "x", "node.k8s.io/y": "z"},
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "a/b": "c",
            "crossplane.io/external-name": "kept",
        },
    });
    let xr = of(metadata, json!({}));
    let meta = |key| xr.at(&["metadata", key]).unwrap();
    assert_eq!(
        *meta("labels"),
        json!({"team": "a", CLAIM_NAME: "orders", CLAIM_NAMESPACE: "shop"})
    );
    assert_eq!(*meta("annotations"), json!({"a/b": "c", "crossplane.io/external-name": "kept"}));
}

/// SYN-3
#[test]
fn fields_of_the_machinery_are_not_copied() {
    let machinery = json!({
        "compositionRef": {"name": "c"},
        "compositionSelector": {"matchLabels": {"a": "b"}},
        "compositionUpdatePolicy": "Automatic",
        "compositionRevisionSelector": {"matchLabels": {"c": "d"}},
        "compositionRevisionRef": {"name": "r"},
        "resourceRefs": [{"name": "victim"}],
        "claimRef": {"name": "someone-else"},
        "writeConnectionSecretToRef": {"name": "s"},
        "compositeDeletePolicy": "Foreground",
    });
    let keys = |xr: &Object| -> Vec<String> {
        xr.get("spec").unwrap().as_object().unwrap().keys().cloned().collect()
    };
    let xr = of(json!({}), machinery.clone());
    let kept = [
        "claimRef",
        "compositionRef",
        "compositionRevisionSelector",
        "compositionSelector",
        "compositionUpdatePolicy",
    ];
    assert_eq!(keys(&xr), kept);
    assert_eq!(xr.str_at(&["spec", "claimRef", "name"]), "orders");

    let enforced = definition(json!({"enforcedCompositionRef": {"name": "only"}}));
    let xr = composite(&claim(json!({}), machinery), &enforced).unwrap();
    assert!(!keys(&xr).contains(&"compositionRef".to_owned()));
}

#[test]
fn a_claim_without_a_namespace_is_made_in_the_default_one() {
    let xr = of(json!({"namespace": ""}), json!({}));
    assert_eq!(xr.label(CLAIM_NAMESPACE), "default");
    assert_eq!(xr.str_at(&["spec", "claimRef", "namespace"]), "default");
}

/// SC-2, SYN-7
#[test]
fn only_a_legacy_definition_offers_claims_and_a_claim_has_a_spec() {
    let modern = definition(json!({"scope": "Namespaced"}));
    let error = composite(&claim(json!({}), json!({})), &modern).unwrap_err();
    assert_eq!(error.to_string(), "Only LegacyCluster composite resources can offer claims");
    let error = composite(&claim(json!({}), json!("x")), &definition(json!({}))).unwrap_err();
    assert_eq!(error.to_string(), "claim spec was not an object");
}

#[test]
fn a_claim_is_known_by_group_and_kind() {
    let offers = definition(json!({}));
    assert!(is_claim(&claim(json!({}), json!({})), &offers));
    for (api_version, kind) in [("other.org/v1", "Database"), ("example.org/v1", "XDatabase")] {
        let other = object(json!({"apiVersion": api_version, "kind": kind}));
        assert!(!is_claim(&other, &offers), "{kind}");
    }
    let without = definition(json!({"claimNames": {}}));
    assert!(!is_claim(&object(json!({"apiVersion": "example.org/v1"})), &without));
}

fn kind() -> Gvk {
    Gvk::new("example.org/v1", "XDatabase")
}

/// SYN-2, SYN-3
#[test]
fn an_existing_composite_resource_keeps_its_external_name_and_may_get_its_revision_from_the_claim()
{
    let claim = claim(
        json!({"annotations": {EXTERNAL_NAME: "wish"}}),
        json!({"compositionRevisionRef": {"name": "r"}}),
    );
    for (policy, annotations, name, revision) in [
        ("Automatic", json!({}), "wish", None),
        ("Automatic", json!({EXTERNAL_NAME: "truth"}), "truth", None),
        ("Manual", json!({}), "wish", Some(&json!({"name": "r"}))),
    ] {
        let xr = object(json!({"metadata": {"annotations": annotations},
            "spec": {"compositionUpdatePolicy": policy}}));
        let intent = intent(&claim, &kind(), "x", false, Some(&xr)).unwrap();
        assert_eq!(intent.annotation(EXTERNAL_NAME), name);
        assert_eq!(intent.at(&["spec", "compositionRevisionRef"]), revision, "{policy}");
    }
}

/// SYN-4
#[test]
fn a_claim_follows_its_composite_resource_where_that_decides() {
    let xr = |policy: &str| {
        object(json!({
            "metadata": {"annotations": {EXTERNAL_NAME: "e"}},
            "spec": {
                "compositionRef": {"name": "xr-c"}, "compositionRevisionRef": {"name": "xr-r"},
                "compositionRevisionSelector": {"matchLabels": {"xr": "s"}},
                "compositionUpdatePolicy": policy, "resourceRefs": [], "size": 9,
            },
        }))
    };
    let own = json!({"compositionRef": {"name": "c"}, "compositionRevisionRef": {"name": "r"},
        "compositionRevisionSelector": {"matchLabels": {}}});
    for (spec, policy, enforced, want) in [
        (json!({}), "Automatic", false, ["xr-c", "xr-r"]),
        (json!({}), "Manual", false, ["xr-c", ""]),
        (own.clone(), "Automatic", false, ["c", "xr-r"]),
        (own.clone(), "Manual", false, ["c", "r"]),
        (own.clone(), "Manual", true, ["xr-c", "r"]),
    ] {
        let had_selector = spec.get("compositionRevisionSelector").cloned();
        let mut claim = claim(json!({}), spec);
        follow(&mut claim, &xr(policy), enforced);
        let name = |field| claim.str_at(&["spec", field, "name"]);
        assert_eq!([name("compositionRef"), name("compositionRevisionRef")], want);
        let selector = had_selector.unwrap_or_else(|| json!({"matchLabels": {"xr": "s"}}));
        assert_eq!(claim.at(&["spec", "compositionRevisionSelector"]), Some(&selector));
        assert_eq!(claim.annotation(EXTERNAL_NAME), "e");
        for other in ["resourceRefs", "size", "compositionUpdatePolicy"] {
            assert_eq!(claim.at(&["spec", other]), None, "{other}");
        }
    }
}

/// SYN-6, SYN-7
#[test]
fn user_fields_of_the_status_are_replaced_and_the_claim_s_own_stay() {
    let mut claim = claim(json!({}), json!({}));
    claim.set_at_or_ignore(
        &["status"],
        json!({"old": 1, "conditions": ["mine"],
        "connectionDetails": {"lastPublishedTime": "t"}}),
    );
    let xr = object(json!({"status": {"new": 2, "conditions": [], "claimConditionTypes": ["T"],
        "connectionDetails": {"lastPublishedTime": "u"}, "lastHandledReconcileAt": "v"}}));
    let status = status_of(&xr).unwrap().unwrap();
    assert_eq!(Value::Object(status.clone()), json!({"new": 2}));
    replace_status(&mut claim, status);
    assert_eq!(
        claim.get("status"),
        Some(
            &json!({"new": 2, "conditions": ["mine"], "connectionDetails": {"lastPublishedTime": "t"}})
        )
    );
    assert_eq!(status_of(&object(json!({}))).unwrap(), None);
    let error = status_of(&object(json!({"status": "text"}))).unwrap_err();
    assert_eq!(error.to_string(), "composite resource status was not an object");
}

/// SYN-8
#[test]
fn with_patches_fields_are_filled_in_and_status_is_merged() {
    let mut claim = claim(json!({}), json!({"a": 1, "deep": {"b": "", "c": [1]}}));
    let xr = json!({"a": 2, "z": 3, "deep": {"b": "x", "c": [2], "d": true}, "resourceRefs": [1],
        "claimRef": {}, "nothing": null});
    fill_spec(&mut claim, xr.as_object().unwrap());
    assert_eq!(
        claim.get("spec"),
        Some(&json!({"a": 1, "z": 3, "deep": {"b": "x", "c": [1], "d": true}}))
    );
    claim.set_at_or_ignore(&["status"], json!({"kept": 1, "deep": {"x": 1, "y": 1}}));
    merge_status(&mut claim, json!({"deep": {"y": 0}}).as_object().unwrap());
    assert_eq!(claim.get("status"), Some(&json!({"kept": 1, "deep": {"x": 1, "y": 0}})));
}
