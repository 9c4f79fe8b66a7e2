//! Defaulting as the API server does it.
#![allow(clippy::needless_pass_by_value)] // literals read better

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
    apply(&mut composite, &definition("apiextensions.crossplane.io/v2", schema)).unwrap();
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
fn the_update_policy_goes_where_the_layout_has_it() {
    check(
        json!({"crossplane": {}}),
        json!({}),
        json!({"crossplane": {"compositionUpdatePolicy": "Manual"}}),
    );
    check(json!({}), json!({}), json!({}));
    let mut legacy = object(json!({"apiVersion": "example.org/v1", "kind": "X", "spec": {}}));
    apply(&mut legacy, &definition("apiextensions.crossplane.io/v1", json!({}))).unwrap();
    assert_eq!(legacy.get("spec"), Some(&json!({"compositionUpdatePolicy": "Manual"})));
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
