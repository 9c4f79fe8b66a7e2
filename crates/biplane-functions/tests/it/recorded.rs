//! Recorded calls of real functions, to compare responses and to create damaged requests.

use std::io::Read;
use std::sync::Arc;

use biplane_function::serve::{self, Config};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Function, PureFunction};
use biplane_runner::grpc::{Client, Security};
use biplane_testkit::mutate;
use prost::Message as _;
use serde::Deserialize;
use tokio::task::JoinSet;

/// How many damaged requests each function gets.
const TRIES: u64 = 5_000;

/// One recorded call of the real function.
#[derive(Deserialize)]
pub(crate) struct Recording {
    pub(crate) id: String,
    pub(crate) request: RunFunctionRequest,
    pub(crate) response: RunFunctionResponse,
}

/// Unpacks the calls in a file, one JSON object per line.
pub(crate) fn unpack(packed: &[u8]) -> Vec<Recording> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The message after this text is random in the real functions.
const VARIES: &str = "cannot unmarshal";

fn cut(mut response: RunFunctionResponse) -> RunFunctionResponse {
    for result in &mut response.results {
        if let Some(at) = result.message.find(VARIES) {
            result.message.truncate(at + VARIES.len());
        }
    }
    response
}

/// Checks that the function returns the recorded responses.
pub(crate) fn assert_answers_equal(function: &impl PureFunction, recordings: Vec<Recording>) {
    let mut differ = Differences::default();
    for recording in recordings {
        let answer = function.run(recording.request.clone()).unwrap();
        differ.compare(recording, answer);
    }
    differ.assert_none();
}

/// Checks the same through a socket, like users who replace the function's image.
pub(crate) async fn assert_served_answers_equal(
    function: Arc<dyn Function>,
    recordings: Vec<Recording>,
) {
    let config = Config {
        address: "127.0.0.1:0".to_owned(),
        insecure: true,
        metrics_address: None,
        ..Config::default()
    };
    let server = serve::start(function, config, std::future::pending()).await.unwrap();
    let client = Client::new(server.target(), Security::Plaintext).unwrap();
    let mut calls = JoinSet::new();
    let mut differ = Differences::default();
    for recording in recordings {
        if calls.len() == 32
            && let Some(answered) = calls.join_next().await
        {
            let (recording, answer) = answered.unwrap();
            differ.compare(recording, answer);
        }
        let client = client.clone();
        calls.spawn(async move {
            let answer = client.call(recording.request.clone(), None).await.unwrap();
            (recording, answer)
        });
    }
    for (recording, answer) in calls.join_all().await {
        differ.compare(recording, answer);
    }
    differ.assert_none();
}

/// The responses that differ from the recorded ones.
#[derive(Default)]
struct Differences {
    compared: usize,
    texts: Vec<String>,
}

impl Differences {
    fn compare(&mut self, recording: Recording, answer: RunFunctionResponse) {
        self.compared += 1;
        let Recording { id, request, response } = recording;
        let (answer, expected) = (cut(answer), cut(response));
        if answer != expected {
            let asked = serde_json::to_string(&request).unwrap();
            self.texts
                .push(format!("{id}\n  asked {asked}\n  said  {answer:?}\n  real  {expected:?}"));
        }
    }

    fn assert_none(&self) {
        let Self { compared, texts } = self;
        let shown = texts.iter().take(3).cloned().collect::<Vec<_>>().join("\n");
        assert!(texts.is_empty(), "{} of {compared} answers differ:\n{shown}", texts.len());
    }
}

/// Sends damaged requests to the function. It must respond to all of them.
pub(crate) fn assert_survives_damage(
    name: &str,
    function: &impl PureFunction,
    recordings: &[Recording],
) {
    let corpus: Vec<Vec<u8>> =
        recordings.iter().map(|recording| recording.request.encode_to_vec()).collect();
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    mutate(name, &corpus, TRIES, |bytes| {
        if let Ok(request) = RunFunctionRequest::decode(bytes) {
            let answer = function.run(request).unwrap();
            // The response must be encodable and decodable.
            RunFunctionResponse::decode(answer.encode_to_vec().as_slice()).unwrap();
        }
    });
}
