//! Decodes mutated messages. Each must give an error or a message, never a panic.

use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::render::v1alpha1::RenderRequest;
use biplane_proto::{Struct, deterministic, json};
use biplane_testkit::mutate;
use prost::Message;

use crate::recorded::{Both, calls, cases};

/// Small messages find more errors per second than large ones.
fn shortest(mut corpus: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    corpus.sort_by_key(|c| (c.len(), c.clone()));
    corpus.dedup();
    corpus.truncate(60);
    assert!(!corpus.is_empty());
    corpus
}

fn search(name: &str, corpus: Vec<Vec<u8>>, run: impl Fn(&[u8])) {
    let corpus = shortest(corpus);
    mutate(name, &corpus.iter().map(Vec::as_slice).collect::<Vec<_>>(), 50_000, run);
}

/// A message that can be decoded can be encoded, and decodes to the same message.
fn survives<M: Both>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    assert_eq!(M::decode(&*message.encode_to_vec()).as_ref(), Ok(&message));
    if let Ok(text) = json::to_string(&message) {
        assert_eq!(json::from_str::<M>(&text).as_ref().ok(), Some(&message), "{text}");
    }
    Some(message)
}

fn requests() -> impl Iterator<Item = RunFunctionRequest> {
    calls()
        .map(|mut call| call["request"].take())
        .filter(|request| !request.is_null())
        .map(|request| json::from_value(request).unwrap())
}

#[test]
fn requests_of_functions_survive_damage() {
    search("RunFunctionRequest", requests().map(|r| r.encode_to_vec()).collect(), |bytes| {
        if let Some(request) = survives::<RunFunctionRequest>(bytes) {
            let bytes = deterministic::encode(&request);
            assert_eq!(RunFunctionRequest::decode(&*bytes).as_ref(), Ok(&request));
        }
    });
}

#[test]
fn requests_to_render_survive_damage() {
    let corpus = cases()
        .filter_map(|case| case.json("request.json"))
        .map(|request| json::from_value::<RenderRequest>(request).unwrap().encode_to_vec());
    search("RenderRequest", corpus.collect(), |bytes| drop(survives::<RenderRequest>(bytes)));
}

#[test]
fn structs_survive_damage() {
    let corpus = requests().filter_map(|r| r.input).map(|input| input.encode_to_vec());
    search("Struct", corpus.collect(), |bytes| drop(survives::<Struct>(bytes)));
}

#[test]
fn json_of_responses_survives_damage() {
    let corpus = calls()
        .map(|mut call| call["response"].take())
        .filter(|response| !response.is_null())
        .map(|response| response.to_string().into_bytes());
    search("RunFunctionResponse as JSON", corpus.collect(), |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let lenient = json::from_str_with::<RunFunctionResponse>(text, json::Unknown::Discard);
        if let Ok(message) = json::from_str::<RunFunctionResponse>(text) {
            assert_eq!(lenient.as_ref().ok(), Some(&message));
            let again = json::to_string(&message).unwrap();
            assert_eq!(json::from_str::<RunFunctionResponse>(&again).unwrap(), message, "{again}");
        }
    });
}
