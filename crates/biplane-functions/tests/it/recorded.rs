//! Recorded calls of real functions, and what they are for: comparing answers, and damaging.

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

/// What one call of the real function said.
#[derive(Deserialize)]
pub(crate) struct Recording {
    pub(crate) id: String,
    pub(crate) request: RunFunctionRequest,
    pub(crate) response: RunFunctionResponse,
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
    let mut differ = Differences::default();
    for recording in recordings {
        let answer = function.run(recording.request.clone()).unwrap();
        differ.compare(recording, answer);
    }
    differ.assert_none();
}

/// Asks the function as its users do who swap its image: through a socket.
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

/// Where our answers are not the recorded ones.
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
