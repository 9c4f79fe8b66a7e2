//! Tests that defaults are applied as in the API server.
#![allow(clippy::needless_pass_by_value)] // literals read better

use biplane_model::Value;
use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn definition(api_version: &str, spec: Value) -> Object {
    object(json!({
        "apiVersion": api_version,
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xqueues.example.org"},
        "spec": {
            "group": "example.org",
            "defaultCompositionUpdatePolicy": "Manual",
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                "properties": {"spec": spec, "other": {"default": "never"}},
            }}}],
        },
    }))
}

fn check(spec: Value, schema: Value, want: Value) {
    let mut composite = object(json!({"apiVersion": "example.org/v1", "kind": "X", "spec": spec}));
    let mut definition = definition("apiextensions.crossplane.io/v2", schema);
    definition.set_at_or_ignore(&["spec", "scope"], "Namespaced");
    apply(&mut composite, &definition).unwrap();
    assert_eq!(composite.get("spec"), Some(&want));
    assert_eq!(composite.get("other"), None);
}

/// T-32
#[test]
fn fills_in_what_is_left_out() {
    let region = json!({"properties": {"region": {"type": "string", "default": "eu"}}});
    check(json!({}), region.clone(), json!({"region": "eu"}));
    check(json!({"region": "us"}), region.clone(), json!({"region": "us"}));
    check(json!({"region": null}), region, json!({"region": "eu"}));
    let nullable = json!({"properties": {"a": {"nullable": true, "default": 1}}});
    check(json!({"a": null}), nullable, json!({"a": null}));
}

#[test]
fn fills_in_below_defaults_lists_and_maps() {
    let inner = json!({"properties": {"hours": {"default": 72}}});
    let with_default = json!({"default": {}, "properties": {"hours": {"default": 72}}});
    check(json!({}), json!({"properties": {"r": with_default}}), json!({"r": {"hours": 72}}));
    check(json!({}), json!({"properties": {"r": inner}}), json!({}));
    check(
        json!({"l": [{}, {"hours": 1}]}),
        json!({"properties": {"l": {"items": inner}}}),
        json!({"l": [{"hours": 72}, {"hours": 1}]}),
    );
    check(
        json!({"m": {"a": {}}}),
        json!({"properties": {"m": {"additionalProperties": inner}}}),
        json!({"m": {"a": {"hours": 72}}}),
    );
}

#[test]
fn the_update_policy_goes_where_the_definition_has_it() {
    let manual = json!({"compositionUpdatePolicy": "Manual"});
    let below = json!({"crossplane": {"compositionUpdatePolicy": "Manual"}});
    for (version, scope, given, want) in [
        ("v1", None, json!({}), &manual),
        ("v1", Some("LegacyCluster"), json!({}), &manual),
        ("v1", Some("Namespaced"), json!({"crossplane": {}}), &below),
        // Only explicit values count, not the default of the version.
        ("v2", None, json!({}), &manual),
        ("v2", Some("LegacyCluster"), json!({}), &manual),
        ("v2", Some("Namespaced"), json!({"crossplane": {}}), &below),
        ("v2", Some("Cluster"), json!({}), &json!({})),
    ] {
        let api_version = format!("apiextensions.crossplane.io/{version}");
        let mut definition = definition(&api_version, json!({}));
        definition.set_at_or_ignore(&["spec", "scope"], scope.map_or(Value::Null, Value::from));
        let mut composite =
            object(json!({"apiVersion": "example.org/v1", "kind": "X", "spec": given}));
        apply(&mut composite, &definition).unwrap();
        assert_eq!(composite.get("spec"), Some(want), "{version} {scope:?}");
    }
}

#[test]
fn fields_of_the_control_plane_have_no_defaults_of_users() {
    let field = |default: Value| json!({"type": "object", "default": default});
    let users = json!({"properties": {
        "claimRef": field(json!({"name": "x"})),
        "compositionRef": field(json!({"name": "x"})),
        "compositionUpdatePolicy": field(json!("Automatic")),
        "own": field(json!({"name": "x"})),
        "resourceRefs": field(json!([])),
    }});
    let mut legacy = definition("apiextensions.crossplane.io/v2", users);
    let given = json!({"apiVersion": "example.org/v1", "kind": "X", "spec": {}});
    let mut composite = object(given.clone());
    apply(&mut composite, &legacy).unwrap();
    assert_eq!(
        composite.get("spec"),
        Some(&json!({"compositionUpdatePolicy": "Manual", "own": {"name": "x"}}))
    );
    legacy.set_at_or_ignore(&["spec", "scope"], "Cluster");
    let mut composite = object(given);
    apply(&mut composite, &legacy).unwrap();
    let spec = composite.get("spec").and_then(Value::as_object).unwrap();
    assert_eq!(spec.len(), 5, "{spec:?}");
}

/// T-33
#[test]
fn a_version_that_is_not_defined_is_an_error() {
    let mut composite =
        object(json!({"apiVersion": "example.org/v2", "kind": "X", "metadata": {"name": "a"}}));
    let definition = definition("apiextensions.crossplane.io/v2", json!({}));
    assert_eq!(
        format!("{:#}", apply(&mut composite, &definition).unwrap_err()),
        "cannot apply XRD defaults to XR \"a\": the specified API version 'example.org/v2' does not exist in the XRD"
    );
}
