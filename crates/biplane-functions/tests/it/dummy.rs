//! Compares with recorded calls of function-dummy.

use biplane_function::PureFunction as _;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_functions::dummy::Dummy;
use biplane_proto::Struct;
use serde_json::{Value, json};

use crate::recorded::{assert_answers_equal, assert_survives_damage, unpack};

const RECORDINGS: &[u8] = include_bytes!("../data/dummy.jsonl.gz");

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = unpack(RECORDINGS);
    assert!(recordings.len() > 150, "{} recordings", recordings.len());
    assert_answers_equal(&Dummy, recordings);
}

#[test]
fn answers_damaged_requests() {
    assert_survives_damage("dummy", &Dummy, &unpack(RECORDINGS));
}

/// Returns the response to an input that sets a connection detail.
fn with_detail(detail: &str) -> RunFunctionResponse {
    let input = json!({
        "apiVersion": "dummy.fn.crossplane.io/v1beta1",
        "kind": "Response",
        "response": {"desired": {"composite": {"connectionDetails": {"k": detail}}}},
    });
    let Value::Object(input) = input else { panic!("not an object") };
    let input = Some(Struct::from(input));
    Dummy.run(RunFunctionRequest { input, ..RunFunctionRequest::default() }).unwrap()
}

/// E2E-3
#[test]
fn connection_details_are_base64_as_go_reads_it() {
    for detail in ["aGk=", "aGk", "aGl"] {
        let composite = with_detail(detail).desired.unwrap().composite.unwrap();
        assert_eq!(composite.connection_details["k"], b"hi", "{detail}");
    }
    let results = with_detail("aGk==").results;
    assert_eq!(
        results[0].message,
        "cannot unmarshal RunFunctionResponse from *v1.RunFunctionRequest: \
         proto: invalid value for bytes field value: \"aGk==\""
    );
}
