//! Calls of the real function-auto-ready: generated ones, and those of recorded pipelines.

use biplane_functions::auto_ready::AutoReady;

use crate::recorded::{Recording, assert_answers_equal, assert_survives_damage, unpack};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/ready.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 600, "{} recordings", recordings.len());
    assert_answers_equal(&AutoReady::default(), recordings);
}

#[test]
fn answers_whatever_it_is_asked() {
    assert_survives_damage("function-auto-ready", &AutoReady::default(), &recordings());
}
