//! Messages from the recordings.

use std::collections::BTreeSet;
use std::fmt::Debug;

use biplane_proto::function::v1::RunFunctionRequest;
use biplane_proto::json;
use biplane_testkit::Recording;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A message with both encodings.
pub(crate) trait Both:
    Message + Default + PartialEq + Debug + Serialize + DeserializeOwned
{
}

impl<M: Message + Default + PartialEq + Debug + Serialize + DeserializeOwned> Both for M {}

const AREAS: &[&str] = &["cron", "engine", "env", "op", "pt", "ready", "tmpl", "watch"];

/// Every recorded case of every area.
pub(crate) fn cases() -> impl Iterator<Item = Recording> {
    AREAS.iter().flat_map(|area| Recording::load_area(area))
}

/// Every recorded call of a function.
pub(crate) fn calls() -> impl Iterator<Item = Value> {
    cases().filter_map(|case| case.json("calls.json")).flat_map(|calls| match calls {
        Value::Array(calls) => calls,
        other => panic!("calls.json holds {other}"),
    })
}

/// The first request of every step without its `meta`, and its recorded tag.
pub(crate) fn first_requests() -> Vec<(String, RunFunctionRequest)> {
    let mut seen = BTreeSet::new();
    calls()
        .filter(|call| !call["request"].is_null())
        .filter_map(|mut call| {
            let mut request: RunFunctionRequest = json::from_value(call["request"].take()).unwrap();
            let tag = request.meta.take().unwrap().tag;
            // Later calls of a step have the same tag as the first.
            seen.insert(tag.clone()).then_some((tag, request))
        })
        .collect()
}
