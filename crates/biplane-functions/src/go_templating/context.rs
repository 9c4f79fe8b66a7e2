//! What is written to the context of the pipeline.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_function::response;
use biplane_function::v1::{Resource, Resources, RunFunctionResponse};
use biplane_model::{Map, Value};

/// The context key of resources that the function required.
pub(super) const EXTRA_RESOURCES: &str = "apiextensions.crossplane.io/extra-resources";

/// The context that later changes build on.
///
/// Upstream, request and response share the context of the request, unless it is empty. So changes
/// add up only if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// The context of the response.
    Shared,
    /// An empty context.
    Empty,
}

impl Base {
    pub(super) fn of(context: Option<&biplane_proto::Struct>) -> Self {
        if context.is_some_and(|context| !context.is_empty()) { Self::Shared } else { Self::Empty }
    }

    fn context(self, response: &RunFunctionResponse) -> Map<String, Value> {
        match (self, &response.context) {
            (Self::Shared, Some(context)) => context.object().clone().into_map(),
            _ => Map::new(),
        }
    }
}

/// Merges data into the context.
pub(super) fn merge(base: Base, data: Map<String, Value>, response: &mut RunFunctionResponse) {
    let mut merged = base.context(response);
    merge_over(&mut merged, data);
    // A `Context` document creates the context, even if it is empty.
    response.context.get_or_insert_default();
    for (key, value) in merged {
        response::set_context(response, &key, value);
    }
}

/// Overrides values. Objects merge, everything else is replaced, also by null and by empty values.
pub(super) fn merge_over(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => merge_over(below, above),
            (Some(below), value) => *below = value,
            (None, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Adds found resources, by the names of their requirements.
pub(super) fn add_resources(
    base: Base,
    found: &BTreeMap<String, Resources>,
    response: &mut RunFunctionResponse,
) {
    if found.is_empty() {
        return;
    }
    let new: Map<String, Value> =
        found.iter().map(|(name, found)| (name.clone(), resources(found))).collect();
    let merged = match base.context(response).remove(EXTRA_RESOURCES) {
        Some(Value::Object(known)) => known.into_iter().chain(new).collect(),
        _ => new,
    };
    response::set_context(response, EXTRA_RESOURCES, Value::Object(merged));
}

/// The message as Go's JSON encoder writes its struct.
fn resources(found: &Resources) -> Value {
    let mut map = Map::new();
    if !found.items.is_empty() {
        map.insert("items".to_owned(), found.items.iter().map(resource).collect());
    }
    Value::Object(map)
}

fn resource(found: &Resource) -> Value {
    let mut map = Map::new();
    if let Some(resource) = &found.resource {
        map.insert("resource".to_owned(), resource.object().to_value());
    }
    if !found.connection_details.is_empty() {
        let details = found.connection_details.iter();
        let details = details.map(|(key, one)| (key.clone(), STANDARD.encode(one).into()));
        map.insert("connection_details".to_owned(), Value::Object(details.collect()));
    }
    if found.ready != 0 {
        map.insert("ready".to_owned(), found.ready.into());
    }
    Value::Object(map)
}
