//! Recorded calls of real functions, and what they are for: comparing answers, and damaging.

use std::io::Read;

use biplane_function::PureFunction;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_testkit::mutate;
use prost::Message as _;
use serde::Deserialize;

/// What one call of the real function said.
#[derive(Deserialize)]
pub(crate) struct Recording {
    id: String,
    request: RunFunctionRequest,
    response: RunFunctionResponse,
}

/// The calls in a packed file, one JSON object a line.
pub(crate) fn unpack(packed: &[u8]) -> Vec<Recording> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What follows these words varies at random in the real functions.
const VARIES: &str = "cannot unmarshal";

fn cut(mut response: RunFunctionResponse) -> RunFunctionResponse {
    for result in &mut response.results {
        if let Some(at) = result.message.find(VARIES) {
            result.message.truncate(at + VARIES.len());
        }
    }
    response
}

/// Asks the function what the real one was asked.
pub(crate) fn assert_answers_equal(function: &impl PureFunction, recordings: Vec<Recording>) {
    let total = recordings.len();
    let mut differ = Vec::new();
    for Recording { id, request, response } in recordings {
        let asked = serde_json::to_string(&request).unwrap();
        let (answer, expected) = (cut(function.run(request).unwrap()), cut(response));
        if answer != expected {
            differ.push(format!("{id}\n  asked {asked}\n  said  {answer:?}\n  real  {expected:?}"));
        }
    }
    let shown = differ.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
    assert!(differ.is_empty(), "{} of {total} answers differ:\n{shown}", differ.len());
}

/// Asks the function what nobody would ask. All that is wanted is an answer.
pub(crate) fn assert_survives_damage(
    name: &str,
    function: &impl PureFunction,
    recordings: &[Recording],
) {
    let corpus: Vec<Vec<u8>> =
        recordings.iter().map(|recording| recording.request.encode_to_vec()).collect();
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    mutate(name, &corpus, mutate::BUDGET, |bytes| {
        if let Ok(request) = RunFunctionRequest::decode(bytes) {
            let answer = function.run(request).unwrap();
            // What the function says must be something that can be sent and read.
            RunFunctionResponse::decode(answer.encode_to_vec().as_slice()).unwrap();
        }
    });
}
