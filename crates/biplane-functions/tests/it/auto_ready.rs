//! Compares with the real function-auto-ready: generated calls, and calls of recorded pipelines.

use std::sync::Arc;

use biplane_function::PureFunction;
use biplane_function::v1::RunFunctionResponse;
use biplane_functions::auto_ready::AutoReady;
use serde_json::json;

use crate::recorded::{
    Recording, assert_answers_equal, assert_served_answers_equal, assert_survives_damage, unpack,
};
use crate::rows::{self, Row};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/ready.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 600, "{} recordings", recordings.len());
    assert_answers_equal(&AutoReady::default(), recordings);
}

#[tokio::test]
async fn answers_the_same_over_the_wire() {
    assert_served_answers_equal(Arc::new(AutoReady::default()), recordings()).await;
}

/// Keys of a row: `seen` is the observed state of the desired resource `r`; `input` is the input;
/// `gate` enables rules; `flag` sets how long responses are cached.
fn ask(row: &mut Row) -> RunFunctionResponse {
    let mut request = json!({"desired": {"resources": {"r": {"resource": {}}}}});
    if let Some(seen) = row.take("seen") {
        request["observed"] = json!({"resources": {"r": {"resource": seen}}});
    }
    if let Some(input) = row.take("input") {
        request["input"] = input;
    }
    let mut function = AutoReady::default();
    if row.take("gate") == Some(true.into()) {
        function = function.with_feature_gates("CELHealthcheckCustomizations=true").unwrap();
    }
    if let Some(ttl) = row.take("flag") {
        function = function.with_ttl(ttl.as_str().unwrap().parse().unwrap());
    }
    function.run(row.request(request)).unwrap()
}

#[test]
fn judges_readiness_as_the_table_says() {
    rows::check(include_str!("../rows/auto-ready.yaml"), ask);
}

#[test]
fn answers_whatever_it_is_asked() {
    assert_survives_damage("function-auto-ready", &AutoReady::default(), &recordings());
}
