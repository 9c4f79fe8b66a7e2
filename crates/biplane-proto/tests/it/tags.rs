//! Tests of request tags against those of upstream's control plane.

use biplane_proto::function::v1::{
    CredentialData, Credentials, RequestMeta, Resource, Resources, RunFunctionRequest, State,
    credentials::Source,
};
use biplane_proto::{Struct, deterministic};
use prost::Message as _;
use serde_json::{Value, json};

use crate::recorded::first_requests;

fn object(value: Value) -> Struct {
    let Value::Object(map) = value else { panic!("not an object") };
    map.into()
}

fn observing(composite: Value) -> RunFunctionRequest {
    let composite = Resource { resource: Some(object(composite)), ..Resource::default() };
    RunFunctionRequest {
        observed: Some(State { composite: Some(composite), ..State::default() }),
        ..RunFunctionRequest::default()
    }
}

fn bucket() -> RunFunctionRequest {
    RunFunctionRequest {
        desired: Some(State::default()),
        context: Some(Struct::default()),
        ..observing(json!({
            "apiVersion": "example.org/v1",
            "kind": "XBucket",
            "metadata": {"name": "demo"},
            "spec": {"replicas": 3},
        }))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn a_small_request_has_the_bytes_and_the_tag_of_go() {
    // FN-Q6, test case 1
    let request = observing(json!({"apiVersion": "example.org/v1", "kind": "Test"}));
    assert_eq!(
        hex(&deterministic::encode(&request)),
        "12340a320a300a1e0a0a61706956657273696f6e12101a0e6578616d706c652e6f72672f7631\
         0a0e0a046b696e6412061a0454657374"
    );
    assert_eq!(
        deterministic::tag(&request),
        "60e065117e1992fb17c3c5ef2a50de370eeec23fbd380836d31ad388bbe4e082"
    );
}

#[test]
fn messages_that_are_present_but_empty_count() {
    // FN-Q6, test case 3
    assert_eq!(
        deterministic::tag(&bucket()),
        "497b67aa23a2e5efe5b5fa6a7fc2980308f84f9f5f33605f029f0d161310b970"
    );
}

#[test]
fn meta_does_not_count() {
    // FN-Q6, test case 3
    let meta = Some(RequestMeta { tag: "x".into(), capabilities: vec![1, 2] });
    let request = RunFunctionRequest { meta, ..bucket() };
    assert_eq!(deterministic::tag(&request), deterministic::tag(&bucket()));
    assert_ne!(deterministic::encode(&request), deterministic::encode(&bucket()));
}

#[test]
fn a_requirement_that_found_nothing_counts() {
    // FN-Q6, test case 4
    let mut request = bucket();
    request.required_resources.insert("cfg".into(), Resources::default());
    assert_eq!(
        deterministic::tag(&request),
        "7bdbfa39b65c9c43b285a29cfc4f945c43bc863d5651d41a06229d37eaa71959"
    );
}

#[test]
fn every_byte_of_a_credential_counts() {
    // FN-Q6, test case 5
    let with = |secret: &str| {
        let data = [("password".to_owned(), secret.into())].into();
        let source = Some(Source::CredentialData(CredentialData { data }));
        let mut request = bucket();
        request.credentials.insert("db".into(), Credentials { source });
        deterministic::tag(&request)
    };
    assert_ne!(with("hunter2"), with("hunter3"));
    assert_ne!(with(""), deterministic::tag(&bucket()));
}

#[test]
fn the_order_in_which_maps_are_filled_does_not_count() {
    // FN-Q6, test case 2
    let fill = |names: &[&str]| {
        let mut request = bucket();
        let mut map = serde_json::Map::new();
        for name in names {
            map.insert((*name).into(), true.into());
            request.required_resources.insert((*name).into(), Resources::default());
        }
        request.input = Some(map.into());
        deterministic::tag(&request)
    };
    assert_eq!(fill(&["a", "b", "A", "é"]), fill(&["é", "A", "b", "a"]));
}

#[test]
fn the_encoding_reads_back_as_the_same_request() {
    for (_, mut request) in first_requests() {
        request.meta = Some(RequestMeta { tag: "t".into(), capabilities: vec![1, 5, -1, 300] });
        if let Some(observed) = request.observed.as_mut()
            && let Some(composite) = observed.composite.as_mut()
        {
            composite.ready = -7;
            composite.connection_details.insert(String::new(), Vec::new());
        }
        let bytes = deterministic::encode(&request);
        assert_eq!(RunFunctionRequest::decode(&*bytes).unwrap(), request);
    }
}

#[test]
fn recorded_requests_have_the_tags_that_upstream_gave_them() {
    let recorded = first_requests();
    assert!(recorded.len() > 500, "only {} requests", recorded.len());
    for (tag, request) in recorded {
        assert_eq!(
            deterministic::tag(&request),
            tag,
            "{}",
            serde_json::to_string(&request).unwrap()
        );
    }
}
