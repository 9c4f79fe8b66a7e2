//! Recorded calls of function-dummy.

use biplane_functions::dummy::Dummy;

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
