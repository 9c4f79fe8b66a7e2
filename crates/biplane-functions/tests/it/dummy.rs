//! Recorded calls of the real function.

use std::io::Read;

use biplane_function::PureFunction;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_functions::dummy::Dummy;
use serde::Deserialize;

#[derive(Deserialize)]
struct Recording {
    id: String,
    request: RunFunctionRequest,
    response: RunFunctionResponse,
}

fn recordings() -> Vec<Recording> {
    let packed: &[u8] = include_bytes!("../data/dummy.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What follows these words varies at random in the real function.
const VARIES: &str = "cannot unmarshal";

fn cut(response: &mut RunFunctionResponse) {
    for result in &mut response.results {
        if let Some(at) = result.message.find(VARIES) {
            result.message.truncate(at + VARIES.len());
        }
    }
}

#[test]
fn answers_every_recorded_call_as_the_real_function_did() {
    let recordings = recordings();
    assert!(recordings.len() > 150, "{} recordings", recordings.len());
    for Recording { id, request, response: mut expected } in recordings {
        let mut answer = Dummy.run(request).unwrap();
        cut(&mut answer);
        cut(&mut expected);
        assert_eq!(answer, expected, "{id}");
    }
}
