//! Tests that generated CRDs are those of Crossplane, and that bad definitions are refused in its
//! words.
#![allow(clippy::needless_pass_by_value)] // literals read better

use biplane_model::yaml::parse_documents;
use biplane_testkit::Recording;

use super::*;
use crate::crd;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn documents(text: &str) -> Vec<Object> {
    let documents = parse_documents("recorded", text).unwrap();
    documents.into_iter().filter_map(|document| Object::from_value(document.value)).collect()
}

/// A definition with one version, with this schema, and more fields of its spec.
fn definition(schema: &Value, more: Value) -> Object {
    let mut definition = object(json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "xqueues.example.org", "uid": "u"},
        "spec": {
            "group": "example.org",
            "names": {"kind": "XQueue", "plural": "xqueues"},
            "versions": [{
                "name": "v1", "served": true, "referenceable": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }));
    for (key, value) in more.as_object().unwrap() {
        definition.set_at_or_ignore(&["spec", key], value.clone());
    }
    definition
}

fn schema_in(crd: &Object) -> &Value {
    crd.at(&["spec", "versions"]).and_then(|v| v.pointer("/0/schema/openAPIV3Schema")).unwrap()
}

/// Removes the field that Crossplane forgot, which must be there.
fn without_handled_request(crd: &mut Object) {
    let mut versions = crd.at(&["spec", "versions"]).cloned().unwrap();
    for version in versions.as_array_mut().unwrap() {
        let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status/properties");
        let handled = status.unwrap().as_object_mut().unwrap().remove("lastHandledReconcileAt");
        assert_eq!(handled, Some(json!({"type": "string"})));
    }
    crd.set_at_or_ignore(&["spec", "versions"], versions);
}

/// CRD-1 to CRD-17, CRD-19.
#[test]
fn every_recorded_crd_is_generated() {
    let (mut composites, mut claims) = (0, 0);
    for case in Recording::load_area("definitions") {
        for (file, text) in &case.files {
            let Some(stage) = file.strip_suffix("/crd.yaml") else { continue };
            let definition = documents(case.text(&format!("{stage}/xrd.yaml")).unwrap()).remove(0);
            for mut recorded in documents(text) {
                let of_claims = recorded.name() != definition.name();
                let generated = if of_claims { claim(&definition) } else { composite(&definition) };
                let mut generated = generated.unwrap();
                crd::default(&mut generated);
                without_handled_request(&mut generated);
                recorded.make_mut().remove("status");
                for field in
                    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"]
                {
                    recorded.remove_at(&["metadata", field]);
                }
                assert_eq!(generated, recorded, "{} {file}", case.name);
                *(if of_claims { &mut claims } else { &mut composites }) += 1;
            }
        }
    }
    assert!(composites >= 14 && claims >= 2, "{composites} {claims}");
}

/// CRD-3, CRD-13, CRD-14
#[test]
fn a_definition_without_a_scope_is_legacy() {
    for (scope, crd_scope, layout) in [
        (Value::Null, "Cluster", Layout::Legacy),
        (json!("LegacyCluster"), "Cluster", Layout::Legacy),
        (json!("Cluster"), "Cluster", Layout::Modern),
        (json!("Namespaced"), "Namespaced", Layout::Modern),
    ] {
        let definition = definition(&json!({}), json!({"scope": scope}));
        let crd = composite(&definition).unwrap();
        assert_eq!(crd.str_at(&["spec", "scope"]), crd_scope);
        assert_eq!(Scope::of(&definition).layout(), layout);
        let machinery = schema_in(&crd).pointer("/properties/spec/properties/crossplane");
        assert_eq!(machinery.is_some(), layout == Layout::Modern);
        let namespace = machinery
            .and_then(|m| m.pointer("/properties/resourceRefs/items/properties/namespace"));
        assert_eq!(namespace.is_some(), scope == "Cluster");
    }
}

/// CRD-8
#[test]
fn names_have_at_most_63_characters() {
    for (given, longest) in [(Value::Null, 63), (json!(100), 63), (json!(30), 30)] {
        let schema =
            json!({"properties": {"metadata": {"properties": {"name": {"maxLength": given}}}}});
        let crd = composite(&definition(&schema, json!({}))).unwrap();
        let name = schema_in(&crd).pointer("/properties/metadata/properties/name").unwrap();
        assert_eq!(name, &json!({"type": "string", "maxLength": longest}));
    }
}

/// CRD-9, CRD-10
#[test]
fn users_decide_some_keys_of_spec_and_status() {
    let all = json!({
        "type": "object", "description": "d", "required": ["a"], "default": {}, "minProperties": 1,
        "anyOf": [{"required": ["a"]}], "oneOf": [{"required": ["a"]}],
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {"a": {"type": "string"}, "compositionRef": {"type": "string"}, "conditions": {"type": "string"}},
    });
    let schema = json!({"properties": {"spec": all, "status": all, "other": {"type": "string"}}});
    let crd = composite(&definition(&schema, json!({}))).unwrap();
    let properties = schema_in(&crd)["properties"].as_object().unwrap();
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata", "spec", "status"]
    );
    let keys =
        |part: &str| properties[part].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let decided = ["description", "oneOf", "properties", "required", "type"];
    let mut of_spec =
        [&decided[..], &["x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"]]
            .concat();
    of_spec.sort_unstable();
    assert_eq!(keys("spec"), of_spec);
    assert_eq!(keys("status"), [&decided[..], &["x-kubernetes-validations"]].concat());
    assert_eq!(properties["spec"]["properties"]["compositionRef"]["type"], "object");
    assert_eq!(properties["spec"]["properties"]["a"], json!({"type": "string"}));
    assert_eq!(properties["status"]["properties"]["conditions"]["type"], "array");
}

/// CRD-2
#[test]
fn metadata_is_what_the_definition_has_for_its_crds() {
    let mut given = definition(
        &json!({}),
        json!({
            "metadata": {"labels": {"a": "2", "b": "3"}, "annotations": {"y": "y"}},
            "claimNames": {"kind": "Queue", "plural": "queues"},
        }),
    );
    given.set_at_or_ignore(&["metadata", "labels"], json!({"a": "1", "c": "4"}));
    given.set_at_or_ignore(&["metadata", "annotations"], json!({"x": "x"}));
    for crd in [composite(&given).unwrap(), claim(&given).unwrap()] {
        let want = json!({"a": "2", "b": "3", "c": "4"});
        assert_eq!(crd.at(&["metadata", "labels"]), Some(&want));
        assert_eq!(crd.at(&["metadata", "annotations"]), Some(&json!({"y": "y"})));
        assert_eq!(
            crd.at(&["metadata", "ownerReferences"]),
            Some(&json!([{
                "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
                "name": "xqueues.example.org", "uid": "u", "controller": true, "blockOwnerDeletion": true,
            }]))
        );
    }
    assert_eq!(claim(&given).unwrap().name(), "queues.example.org");
}

#[test]
fn a_crd_leads_back_to_its_definition() {
    let mut crd = composite(&definition(&json!({}), json!({}))).unwrap();
    crd.make_mut().remove("spec");
    assert_eq!(definition_of(&crd).as_deref(), Some("xqueues.example.org"));
    for (field, other) in [("kind", "ConfigMap"), ("apiVersion", "example.org/v1")] {
        let mut foreign = crd.clone();
        let mut owners = foreign.at(&["metadata", "ownerReferences"]).cloned().unwrap();
        owners[0][field] = other.into();
        foreign.set_at_or_ignore(&["metadata", "ownerReferences"], owners);
        assert_eq!(definition_of(&foreign), None);
    }
    crd.remove_at(&["metadata", "ownerReferences"]);
    assert_eq!(definition_of(&crd), None);
}

/// CRD-4
#[test]
fn the_conversion_is_copied() {
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "n", "namespace": "s"}, "caBundle": "AAAA"},
    }});
    let given = definition(&json!({}), json!({"conversion": conversion}));
    let mut crd = composite(&given).unwrap();
    assert_eq!(crd.at(&["spec", "conversion"]), Some(&conversion));
    crd::default(&mut crd);
    let port = ["spec", "conversion", "webhook", "clientConfig", "service", "port"];
    assert_eq!(crd.at(&port), Some(&json!(443)));
}

/// CRD-11
#[test]
fn a_version_needs_a_schema_that_can_be_read() {
    let prefix = "cannot generate CRD for \"Composite Resource\" \"xqueues.example.org\": ";
    let parse = "cannot parse validation schema: cannot parse validation schema: ";
    for (schema, want) in [
        (json!(null), "custom resource validation cannot be nil".to_owned()),
        (json!({}), format!("{parse}unexpected end of JSON input")),
        (
            json!({"openAPIV3Schema": []}),
            format!("{parse}json: cannot unmarshal array into Go value of type v1.JSONSchemaProps"),
        ),
        (
            json!({"openAPIV3Schema": {"properties": {"spec": {"type": 1}}}}),
            format!(
                "{parse}json: cannot unmarshal number into Go struct field JSONSchemaProps.properties.type of type string"
            ),
        ),
    ] {
        let mut given = definition(&json!({}), json!({}));
        let mut versions = given.at(&["spec", "versions"]).cloned().unwrap();
        versions[0]["schema"] = schema;
        given.set_at_or_ignore(&["spec", "versions"], versions);
        assert_eq!(composite(&given).unwrap_err().to_string(), format!("{prefix}{want}"));
        given.set_at_or_ignore(&["spec", "claimNames"], json!({"kind": "Q", "plural": "qs"}));
        let error = claim(&given).unwrap_err().to_string();
        assert_eq!(error, format!("{prefix}{want}").replace("Resource\"", "Resource Claim\""));
    }
    assert!(composite(&definition(&json!({}), json!({}))).is_ok());
}

/// CRD-12
#[test]
fn names_of_claims_are_their_own() {
    let names =
        json!({"kind": "XQueue", "plural": "xqueues", "singular": "xqueue", "listKind": "XQueues"});
    let taken = |name: &str| {
        format!("invalid resource claim names: \"{name}\" conflicts with composite resource name")
    };
    for (claim_names, want) in [
        (json!(null), Some("invalid resource claim names: missing names".to_owned())),
        (json!({"kind": "XQueue", "plural": "xqueues"}), Some(taken("XQueue"))),
        (json!({"kind": "Queue", "plural": "xqueues"}), Some(taken("xqueues"))),
        (json!({"kind": "Queue", "plural": "queues", "singular": "xqueue"}), Some(taken("xqueue"))),
        (
            json!({"kind": "Queue", "plural": "queues", "listKind": "XQueues"}),
            Some(taken("XQueues")),
        ),
        (json!({"kind": "Queue", "plural": "queues"}), None),
    ] {
        let given = definition(&json!({}), json!({"names": names, "claimNames": claim_names}));
        assert_eq!(claim(&given).err().map(|error| error.to_string()), want);
    }
}

/// CRD-15
#[test]
fn defaults_of_policies_go_where_they_apply() {
    let given = definition(
        &json!({}),
        json!({
            "claimNames": {"kind": "Queue", "plural": "queues"},
            "defaultCompositionUpdatePolicy": "Manual",
            "defaultCompositeDeletePolicy": "Foreground",
        }),
    );
    let default = |crd: &Object, field: &str| {
        let path = format!("/properties/spec/properties/{field}/default");
        schema_in(crd).pointer(&path).cloned()
    };
    let (composite, claim) = (composite(&given).unwrap(), claim(&given).unwrap());
    assert_eq!(default(&composite, "compositionUpdatePolicy"), Some(json!("Manual")));
    assert_eq!(default(&claim, "compositionUpdatePolicy"), None);
    assert_eq!(default(&claim, "compositeDeletePolicy"), Some(json!("Foreground")));
}

/// XRD-6
#[test]
fn the_last_referenceable_version_is_reconciled() {
    let version =
        |name: &str, referenceable: bool| json!({"name": name, "referenceable": referenceable});
    let versions = json!([version("v1", true), version("v2", true), version("v3", false)]);
    let given = definition(
        &json!({}),
        json!({
            "versions": versions, "claimNames": {"kind": "Queue", "plural": "queues"},
        }),
    );
    assert_eq!(composite_gvk(&given), Gvk::new("example.org/v2", "XQueue"));
    assert_eq!(claim_gvk(&given), Gvk::new("example.org/v2", "Queue"));
}

#[test]
fn keys_that_a_server_would_drop_are_dropped() {
    let schema = json!({"properties": {"spec": {"required": [], "properties": {"a": {
        "type": "object", "unknown": 1, "nullable": false, "title": "", "maxLength": 3.0,
        "x-kubernetes-preserve-unknown-fields": false, "default": null, "enum": [],
        "additionalProperties": false, "items": {"type": "string", "x": 1},
        "x-kubernetes-validations": [{"rule": "true", "message": "", "extra": 1}],
    }}}}});
    let crd = composite(&definition(&schema, json!({}))).unwrap();
    let spec = &schema_in(&crd)["properties"]["spec"];
    assert_eq!(spec.get("required"), None);
    assert_eq!(
        spec["properties"]["a"],
        json!({
            "type": "object", "maxLength": 3, "x-kubernetes-preserve-unknown-fields": false,
            "additionalProperties": false, "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "true"}],
        })
    );
}
