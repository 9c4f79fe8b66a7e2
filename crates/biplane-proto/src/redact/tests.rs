//! Tests of redaction: what is redacted in each mode, and that messages and JSON agree.

use std::collections::BTreeMap;

use base64::Engine as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Struct;
use crate::function::v1::{
    CredentialData, Credentials, RequestMeta, Resource, Resources, ResponseMeta, Schema, State,
    credentials::Source,
};
use crate::json::{from_value, to_value};

fn redactor(mode: Mode) -> Redactor {
    Redactor::new(mode, TagKey::new([7; 32]))
}

fn request(value: Value) -> RunFunctionRequest {
    from_value(value).unwrap()
}

/// The redacted request as JSON, and the paths.
fn redacted(mode: Mode, value: Value) -> (Value, Vec<String>) {
    let message = redactor(mode).request(request(value.clone()));
    let json = redactor(mode).json(Half::Request, value, false);
    assert_eq!(to_value(message.get()).unwrap(), *json.get());
    assert_eq!(message.paths(), json.paths());
    (json.get().clone(), json.paths().to_vec())
}

fn secret(values: &Value) -> Value {
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    secret.as_object_mut().unwrap().extend(values.as_object().unwrap().clone());
    secret
}

/// A request with a secret in every place that the contract has for one.
fn everywhere() -> Value {
    let of = |name: &str| {
        json!({
            "connectionDetails": {"k": base64::prelude::BASE64_STANDARD.encode(format!("PLANTED-detail-{name}"))},
            "resource": secret(&json!({
                "type": "Opaque",
                "metadata": {"annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": format!("PLANTED-applied-{name}"),
                    "crossplane.io/external-name": "kept",
                }},
                "data": {"a": "UExBTlRFRA=="},
                "stringData": {"b": format!("PLANTED-string-{name}")},
            })),
        })
    };
    json!({
        "meta": {"tag": "PLANTED-tag"},
        "observed": {"composite": of("1"), "resources": {"x": of("2")}},
        "desired": {"composite": of("3"), "resources": {"x": of("4")}},
        "input": {"secret": "passes"},
        "context": {"password": "passes"},
        "requiredResources": {"r": {"items": [of("5")]}},
        "extraResources": {"e": {"items": [of("6")]}},
        "credentials": {"c": {"credentialData": {"data": {"password": "UExBTlRFRA=="}}}},
    })
}

#[test]
fn credentials_keep_their_names_and_keys() {
    // INS-Z1, INS-Z4
    let credentials =
        json!({"credentials": {"c": {"credentialData": {"data": {"password": "c2VjcmV0MTIz"}}}}});
    let (shipped, paths) = redacted(Mode::Shipped, credentials.clone());
    assert_eq!(
        shipped,
        json!({"credentials": {"c": {"credentialData": {"data": {"password": "KipSRURBQ1RFRCoq"}}}}})
    );
    assert_eq!(paths, ["credentials.c.credentialData.data.password"]);
    assert_eq!(
        redacted(Mode::Clear, credentials.clone()),
        (json!({}), vec!["credentials".to_owned()])
    );
    assert_eq!(redacted(Mode::None, credentials.clone()), (credentials, vec![]));
}

#[test]
fn every_place_for_secrets_is_redacted_in_every_mode() {
    // INS-Z1, INS-Z6, INS-Z7
    for mode in [Mode::Shipped, Mode::Deep, Mode::Clear] {
        let (value, paths) = redacted(mode, everywhere());
        let text = value.to_string();
        assert!(!text.contains("PLANTED"), "{mode}: {text}");
        assert!(!text.contains("UExBTlRFR"), "{mode}: {text}");
        assert_eq!(text.matches("passes").count(), 2, "{mode}");
        assert_eq!(text.matches("\"Opaque\"").count(), 6, "{mode}");
        assert_eq!(text.matches("external-name").count(), 6, "{mode}");
        // Of each resource: details, data, stringData, annotation. And the credentials.
        assert_eq!(paths.len(), 6 * 4 + 1, "{mode}: {paths:?}");

        let desired = json!({"meta": {"tag": "PLANTED"}, "desired": everywhere()["desired"]});
        let message: RunFunctionResponse = from_value(desired.clone()).unwrap();
        let message = redactor(mode).response(message, false);
        let json = redactor(mode).json(Half::Response, desired, false);
        assert_eq!(to_value(message.get()).unwrap(), *json.get());
        assert_eq!(message.paths().len(), 2 * 4);
        assert!(!json.get().to_string().contains("PLANTED"));
    }
}

#[test]
fn shipped_keeps_keys_and_clear_does_not() {
    let observed = json!({"observed": {"resources": {"x": everywhere()["observed"]["composite"]}}});
    let (shipped, _) = redacted(Mode::Shipped, observed.clone());
    assert_eq!(
        shipped["observed"]["resources"]["x"],
        json!({
            "connectionDetails": {"k": MARKER_BASE64},
            "resource": {
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                "metadata": {"annotations": {"crossplane.io/external-name": "kept"}},
                "data": {"a": MARKER}, "stringData": {"b": MARKER},
            },
        })
    );
    let (clear, paths) = redacted(Mode::Clear, observed);
    assert_eq!(
        clear["observed"]["resources"]["x"],
        json!({"resource": {
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"annotations": {"crossplane.io/external-name": "kept"}},
        }})
    );
    assert_eq!(
        paths,
        [
            "observed.resources.x.connectionDetails",
            "observed.resources.x.resource.data",
            "observed.resources.x.resource.metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
            "observed.resources.x.resource.stringData",
        ]
    );
}

#[test]
fn only_the_secret_of_the_core_group_is_one() {
    // INS-Z2, INS-Z3
    for (api_version, kind, data) in [
        ("v1", "ConfigMap", json!({"a": "x"})),
        ("v1beta1", "Secret", json!({"a": "x"})),
        ("secretsmanager.aws.upbound.io/v1", "Secret", json!({"a": "x"})),
        ("v1", "Secret", json!(null)),
        ("v1", "Secret", json!(["x"])),
        ("v1", "Secret", json!({})),
    ] {
        let value = json!({"desired": {"resources": {"r": {"resource": {
            "apiVersion": api_version, "kind": kind, "data": data,
        }}}}});
        assert_eq!(redacted(Mode::Shipped, value.clone()), (value, vec![]));
    }
    let odd = json!({"desired": {"resources": {"r": {"resource": secret(&json!({
        "data": {"null": null, "number": 1, "object": {"x": "y"}},
    }))}}}});
    let (odd, _) = redacted(Mode::Shipped, odd);
    let data = &odd["desired"]["resources"]["r"]["resource"]["data"];
    assert_eq!(*data, json!({"null": MARKER, "number": MARKER, "object": MARKER}));
}

#[test]
fn nested_secrets_are_found_in_deep_mode_alone() {
    let nested = secret(&json!({"data": {"k": "PLANTED"}, "stringData": {"l": "PLANTED"}}));
    let applied = json!({"spec": {"manifest": nested}}).to_string();
    let value = json!({
        "observed": {
            "composite": {"resource": {"spec": {"template": nested}}},
            "resources": {"o": {"resource": {
                "metadata": {"annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": applied,
                    "other.example.org/last-applied-configuration": "PLANTED, and not JSON",
                }},
                "spec": {"manifest": nested},
            }}},
        },
        "input": {"objects": [nested]},
        "context": {"list": {"apiVersion": "v1", "kind": "SecretList", "items": [{"data": {"k": "PLANTED"}}]}},
    });
    let (shipped, paths) = redacted(Mode::Shipped, value.clone());
    assert_eq!((shipped, paths), (value.clone(), vec![]));
    let (deep, paths) = redacted(Mode::Deep, value);
    assert!(!deep.to_string().contains("PLANTED"), "{deep}");
    assert_eq!(
        paths,
        [
            "context.list.items[0].data.k",
            "input.objects[0].data.k",
            "input.objects[0].stringData.l",
            "observed.composite.resource.spec.template.data.k",
            "observed.composite.resource.spec.template.stringData.l",
            "observed.resources.o.resource.metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]",
            "observed.resources.o.resource.metadata.annotations[other.example.org/last-applied-configuration]",
            "observed.resources.o.resource.spec.manifest.data.k",
            "observed.resources.o.resource.spec.manifest.stringData.l",
        ]
    );
}

#[test]
fn the_tag_is_replaced_only_if_something_was_redacted() {
    let plain = json!({"meta": {"tag": "t"}, "desired": {}});
    assert_eq!(redacted(Mode::Deep, plain.clone()).0, plain);
    let mut with = everywhere();
    let (value, _) = redacted(Mode::Shipped, with.clone());
    let tag = value["meta"]["tag"].as_str().unwrap().to_owned();
    assert_eq!(tag.len(), 64);
    assert_ne!(tag, "PLANTED-tag");
    let other = Redactor::new(Mode::Shipped, TagKey::new([8; 32]));
    assert_ne!(other.json(Half::Request, with.clone(), false).get()["meta"]["tag"], tag.as_str());
    // A request without a tag does not get one.
    with["meta"] = json!({});
    assert_eq!(redacted(Mode::Shipped, with).0["meta"], json!({}));

    // A response repeats the tag of its request.
    let response = RunFunctionResponse {
        meta: Some(ResponseMeta { tag: "PLANTED-tag".into(), ttl: None }),
        ..RunFunctionResponse::default()
    };
    let kept = redactor(Mode::Shipped).response(response.clone(), false).into_inner();
    assert_eq!(kept, response);
    let replaced = redactor(Mode::Shipped).response(response, true).into_inner();
    assert_eq!(replaced.meta.unwrap().tag, tag);
}

#[test]
fn what_other_programs_redacted_counts_as_redacted() {
    let value = json!({
        "meta": {"tag": "t"},
        "credentials": {"c": {"credentialData": {"data": {"p": MARKER_BASE64}}}},
    });
    let (value, paths) = redacted(Mode::Shipped, value);
    assert_eq!(paths.len(), 1);
    assert_ne!(value["meta"]["tag"], "t");
}

#[test]
fn json_of_another_shape_is_redacted_as_a_whole() {
    for (value, expected) in [
        (json!({"credentials": ["PLANTED"]}), json!({"credentials": MARKER_BASE64})),
        (json!({"credentials": {"c": "PLANTED"}}), json!({"credentials": {"c": MARKER_BASE64}})),
        (
            json!({"credentials": {"c": {"credential_data": {"data": {"p": {"q": "PLANTED"}}}}}}),
            json!({"credentials": {"c": {"credential_data": {"data": {"p": MARKER_BASE64}}}}}),
        ),
        (
            json!({"observed": {"composite": {"connection_details": "PLANTED"}}}),
            json!({"observed": {"composite": {"connection_details": MARKER_BASE64}}}),
        ),
        (
            json!({"required_resources": {"r": {"items": [{"resource": secret(&json!({"data": {"k": "PLANTED"}}))}]}}}),
            json!({"required_resources": {"r": {"items": [{"resource": secret(&json!({"data": {"k": MARKER}}))}]}}}),
        ),
        (json!("text"), json!("text")),
        (
            json!({"observed": 1, "desired": null}),
            json!({"observed": MARKER_BASE64, "desired": null}),
        ),
    ] {
        assert_eq!(*redactor(Mode::Shipped).json(Half::Request, value, false).get(), expected);
    }
}

#[test]
fn payloads_are_read_as_the_reference_reads_them() {
    // INS-R3
    let read = |payload: &[u8]| {
        redactor(Mode::Deep).line_payload(Half::Request, payload, false).into_inner()
    };
    assert_eq!(read(b""), Value::Null);
    assert_eq!(read(b"{\"a\":1}"), json!({"a": 1.0}));
    assert_eq!(read(b"{not valid"), json!("{not valid"));
    assert_eq!(read(b"{}{}"), json!("{}{}"));
    assert_eq!(read(b"\xff"), json!("\u{fffd}"));
}

#[test]
fn snapshots_of_change_logs_are_redacted_at_any_depth() {
    // CL-51, CL-52
    let manifest = secret(&json!({"data": {"k": "PLANTED"}}));
    let snapshot = json!({
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration":
            json!({"spec": {"forProvider": {"manifest": manifest}}}).to_string()}},
        "spec": {"forProvider": {"manifest": manifest}},
        "status": {"atProvider": {"manifest": manifest}},
    });
    let entry = json!({"kind": "Object", "snapshot": snapshot});
    let message: ChangeLogEntry = from_value(entry.clone()).unwrap();
    let kept = redactor(Mode::None).entry(message.clone());
    assert_eq!(*kept.get(), message);
    let message = redactor(Mode::Deep).entry(message);
    let json = redactor(Mode::Deep).entry_json(entry);
    assert_eq!(to_value(message.get()).unwrap(), *json.get());
    assert_eq!(message.paths(), json.paths());
    assert_eq!(message.paths().len(), 3);
    assert!(!json.get().to_string().contains("PLANTED"), "{}", json.get());
}

#[test]
fn the_original_is_not_changed() {
    let original = request(everywhere());
    let before = original.clone();
    for mode in Mode::ALL {
        let observed = EncodedObserved::default();
        redactor(mode).request(original.clone());
        redactor(mode).request_payload(&original, &observed).unwrap();
    }
    assert_eq!(original, before);
    assert_eq!(to_value(&original).unwrap(), everywhere());
}

#[test]
fn modes_are_read_by_their_names() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert!("Deep".parse::<Mode>().is_err());
}

#[test]
fn an_observed_state_that_is_shared_is_encoded_once() {
    let mut request = request(everywhere());
    let observed = EncodedObserved::default();
    let redactor = redactor(Mode::Shipped);
    let encode = |request: &RunFunctionRequest| {
        let payload = redactor.request_payload(request, &observed).unwrap();
        let encoded = observed.get(request.observed.as_ref().unwrap(), &redactor).unwrap();
        (serde_json::from_slice::<Value>(payload.get()).unwrap(), encoded)
    };
    let (first, encoded) = encode(&request);
    request.input = None;
    let (second, again) = encode(&request);
    assert!(std::sync::Arc::ptr_eq(&encoded, &again));
    assert_eq!(first["observed"], second["observed"]);
    assert_eq!(second["input"], Value::Null);
    let composite = request.observed.as_mut().unwrap().composite.as_mut().unwrap();
    composite.resource.as_mut().unwrap().make_mut().insert("new".into(), true.into());
    let (third, other) = encode(&request);
    assert!(!std::sync::Arc::ptr_eq(&encoded, &other));
    assert_eq!(third["observed"]["composite"]["resource"]["new"], true);
}

fn texts() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "v1",
        "Secret",
        "SecretList",
        "ConfigMap",
        "x",
        "",
        "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":{\"k\":\"v\"}}",
    ])
    .prop_map(str::to_owned)
}

fn keys() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "apiVersion",
        "kind",
        "data",
        "stringData",
        "metadata",
        "annotations",
        "items",
        "a.b",
        "kubectl.kubernetes.io/last-applied-configuration",
        "my/last-applied-configuration",
        "resource",
        "connectionDetails",
        "composite",
        "resources",
        "credentials",
        "observed",
    ])
    .prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        texts().prop_map(Value::from),
        Just(Value::Null),
        (-3..3_i64).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys(), inner.clone(), 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            prop::collection::btree_map(keys(), inner, 0..4).prop_map(|map| {
                let mut map: serde_json::Map<_, _> = map.into_iter().collect();
                map.insert("apiVersion".into(), "v1".into());
                map.insert("kind".into(), "Secret".into());
                Value::Object(map)
            }),
        ]
    })
}

fn structs() -> impl Strategy<Value = Option<Struct>> {
    values().prop_map(|value| match value {
        Value::Object(map) => Some(Struct::from(map)),
        _ => None,
    })
}

fn bytes() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    prop::collection::btree_map(keys(), prop::collection::vec(any::<u8>(), 0..4), 0..3)
}

fn resources() -> impl Strategy<Value = Resource> {
    (structs(), bytes(), 0..4_i32).prop_map(|(resource, connection_details, ready)| Resource {
        resource,
        connection_details,
        ready,
    })
}

fn states() -> impl Strategy<Value = Option<State>> {
    let state =
        (prop::option::of(resources()), prop::collection::btree_map(keys(), resources(), 0..3))
            .prop_map(|(composite, resources)| State { composite, resources });
    prop::option::of(state)
}

fn lists() -> impl Strategy<Value = BTreeMap<String, Resources>> {
    let items = prop::collection::vec(resources(), 0..3).prop_map(|items| Resources { items });
    prop::collection::btree_map(keys(), items, 0..2)
}

fn all_credentials() -> impl Strategy<Value = BTreeMap<String, Credentials>> {
    let source = bytes().prop_map(|data| Source::CredentialData(CredentialData { data }));
    let one = prop::option::of(source).prop_map(|source| Credentials { source });
    prop::collection::btree_map(keys(), one, 0..2)
}

#[allow(deprecated)] // extra_resources: older functions use it
fn requests() -> impl Strategy<Value = RunFunctionRequest> {
    let schema = structs().prop_map(|openapi_v3| Schema { openapi_v3 });
    let parts = (
        (prop::option::of(texts()), states(), states(), structs(), structs()),
        (lists(), lists(), all_credentials(), prop::collection::btree_map(keys(), schema, 0..2)),
    );
    parts.prop_map(
        |((tag, observed, desired, input, context), (extra, required, credentials, schemas))| {
            RunFunctionRequest {
                meta: tag.map(|tag| RequestMeta { tag, capabilities: vec![] }),
                observed,
                desired,
                input,
                context,
                extra_resources: extra,
                required_resources: required,
                credentials,
                required_schemas: schemas,
            }
        },
    )
}

fn modes() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

proptest! {
    #[test]
    fn requests_and_their_json_are_redacted_alike(request in requests(), mode in modes()) {
        let redactor = redactor(mode);
        let json = redactor.json(Half::Request, to_value(&request).unwrap(), false);
        let payload = redactor.request_payload(&request, &EncodedObserved::default()).unwrap();
        let encoded: Value = serde_json::from_slice(payload.get()).unwrap();
        prop_assert_eq!(payload.paths(), json.paths());
        let message = redactor.request(request);
        prop_assert_eq!(&to_value(message.get()).unwrap(), json.get());
        prop_assert_eq!(message.paths(), json.paths());
        prop_assert_eq!(&encoded, json.get());
    }

    #[test]
    fn responses_and_their_json_are_redacted_alike(
        desired in states(),
        context in structs(),
        output in structs(),
        tag in texts(),
        mode in modes(),
        of_request in any::<bool>(),
    ) {
        let response = RunFunctionResponse {
            meta: Some(ResponseMeta { tag, ttl: None }),
            desired,
            context,
            output,
            ..RunFunctionResponse::default()
        };
        let redactor = redactor(mode);
        let json = redactor.json(Half::Response, to_value(&response).unwrap(), of_request);
        let payload = redactor.response_payload(&response, of_request).unwrap();
        prop_assert_eq!(&serde_json::from_slice::<Value>(payload.get()).unwrap(), json.get());
        prop_assert_eq!(payload.paths(), json.paths());
    }

    #[test]
    fn what_is_redacted_stays_as_it_is(value in values(), mode in modes()) {
        let redactor = redactor(mode);
        let once = redactor.entry_json(json!({"snapshot": value}));
        let twice = redactor.entry_json(once.get().clone());
        prop_assert_eq!(twice.get(), once.get());
    }
}

#[test]
fn what_has_another_shape_in_a_place_for_secrets_is_redacted_as_a_whole() {
    let planted = secret(&json!({"stringData": {"a": "PLANTED"}}));
    for payload in [
        json!({"observed": [planted]}),
        json!({"observed": "PLANTED"}),
        json!({"observed": {"composite": [planted]}}),
        json!({"desired": {"composite": {"resource": [planted]}}}),
        json!({"desired": {"resources": {"x": [planted]}}}),
        json!({"requiredResources": {"x": planted}}),
        json!({"requiredResources": {"x": [planted]}}),
        json!({"extraResources": {"x": {"items": planted}}}),
        json!({"extraResources": {"x": {"items": [[planted]]}}}),
    ] {
        for mode in [Mode::Shipped, Mode::Deep, Mode::Clear] {
            let redacted = redactor(mode).json(Half::Request, payload.clone(), false);
            let text = redacted.get().to_string();
            assert!(!text.contains("PLANTED"), "{mode:?}: {payload} -> {text}");
            assert!(!redacted.paths().is_empty(), "{mode:?}: {payload}");
        }
    }
}
