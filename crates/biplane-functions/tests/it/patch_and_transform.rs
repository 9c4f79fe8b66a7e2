//! Calls of the real function-patch-and-transform: generated ones, and those of recorded pipelines.

use biplane_functions::patch_and_transform::PatchAndTransform;

use crate::recorded::{Recording, assert_answers_equal, assert_survives_damage, unpack};

fn recordings() -> Vec<Recording> {
    unpack(include_bytes!("../data/pt.jsonl.gz"))
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 2500, "{} recordings", recordings.len());
    assert_answers_equal(&PatchAndTransform::default(), recordings);
}

#[test]
fn answers_whatever_it_is_asked() {
    let function = PatchAndTransform::default();
    assert_survives_damage("function-patch-and-transform", &function, &recordings());
}
