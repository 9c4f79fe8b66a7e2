//! One half of a function call as it was received, in whichever dialect.

use std::time::Duration;

use biplane_proto::inspector::design;
use biplane_proto::inspector::shipped::{CompositionMeta, StepMeta, step_meta::Context};
use biplane_proto::redact::Half;
use tonic::metadata::MetadataMap;

/// The version of the protocol. The path of a call decides it, never the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The version that released control planes use.
    Shipped,
    /// The version of the design document.
    Design,
}

/// One half of a function call. It may contain secrets until it is redacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Emission {
    /// The dialect in which it came.
    pub dialect: Dialect,
    /// Which half of the call it is.
    pub half: Half,
    /// Which call. The dialect of the design document has no name for the step.
    pub meta: Option<StepMeta>,
    /// The message as JSON. Empty if there is none.
    pub payload: Vec<u8>,
    /// Why the call failed. Empty if it did not.
    pub error: String,
    /// What Biplane's own emitter adds.
    pub details: Details,
}

/// What Biplane's own emitter says about a call in the metadata of gRPC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// How long the call took.
    pub took: Option<Duration>,
    /// Whether a cache answered.
    pub cached: Option<bool>,
    /// The revision of the function.
    pub revision: Option<String>,
}

impl Details {
    /// Reads the metadata of a call. What is not understood is left out.
    pub fn read(metadata: &MetadataMap) -> Self {
        let text = |key: &str| metadata.get(key).and_then(|value| value.to_str().ok());
        Self {
            took: text("biplane-took-us").and_then(|t| t.parse().ok()).map(Duration::from_micros),
            cached: text("biplane-cached").and_then(|text| text.parse().ok()),
            revision: text("biplane-function-revision").map(str::to_owned),
        }
    }
}

/// The metadata of the design document in the form of released control planes.
pub fn normalized(meta: design::StepMeta) -> StepMeta {
    StepMeta {
        timestamp: meta.timestamp,
        trace_id: meta.trace_id,
        span_id: meta.span_id,
        step_index: meta.step_index,
        step_name: String::new(),
        iteration: meta.iteration,
        function_name: meta.function_name,
        context: Some(Context::CompositionMeta(CompositionMeta {
            composition_name: meta.composition_name,
            composite_resource_uid: meta.composite_resource_uid,
            composite_resource_name: meta.composite_resource_name,
            composite_resource_namespace: meta.composite_resource_namespace,
            composite_resource_api_version: meta.composite_resource_api_version,
            composite_resource_kind: meta.composite_resource_kind,
        })),
    }
}
