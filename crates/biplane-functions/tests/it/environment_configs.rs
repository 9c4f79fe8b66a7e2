//! Calls of the real function-environment-configs: generated ones, and those of recorded pipelines.

use biplane_functions::environment_configs::EnvironmentConfigs;

use crate::recorded::{Recording, assert_answers_equal, assert_survives_damage, unpack};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/env.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 600, "{} recordings", recordings.len());
    assert_answers_equal(&EnvironmentConfigs, recordings);
}

#[test]
fn answers_whatever_it_is_asked() {
    assert_survives_damage("function-environment-configs", &EnvironmentConfigs, &recordings());
}
