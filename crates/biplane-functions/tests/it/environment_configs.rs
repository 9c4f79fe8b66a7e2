//! Compares with the real function-environment-configs: generated calls, and calls of recorded
//! pipelines.

use std::sync::Arc;

use biplane_function::PureFunction;
use biplane_functions::environment_configs::EnvironmentConfigs;
use serde_json::json;

use crate::recorded::{
    Recording, assert_answers_equal, assert_served_answers_equal, assert_survives_damage, unpack,
};
use crate::rows;

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/env.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 600, "{} recordings", recordings.len());
    assert_answers_equal(&EnvironmentConfigs, recordings);
}

#[tokio::test]
async fn answers_the_same_over_the_wire() {
    assert_served_answers_equal(Arc::new(EnvironmentConfigs), recordings()).await;
}

#[test]
fn gathers_environments_as_the_tables_say() {
    rows::check(include_str!("../rows/environment.yaml"), |row| {
        EnvironmentConfigs.run(row.request(json!({}))).unwrap()
    });
}

#[test]
fn answers_whatever_it_is_asked() {
    assert_survives_damage("function-environment-configs", &EnvironmentConfigs, &recordings());
}
