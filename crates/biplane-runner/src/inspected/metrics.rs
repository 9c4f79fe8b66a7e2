//! The metric of the Pipeline Inspector, with the name that control planes use.

use biplane_function::metrics::{Counters, Metrics};
use biplane_proto::redact::Half;
use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    function_name: String,
    r#type: &'static str,
}

/// Counts emissions that did not arrive. Clones share the same counters.
#[derive(Clone, Debug)]
pub struct InspectorMetrics(Counters<Labels>);

impl InspectorMetrics {
    /// Adds the counters to the metrics of the process. This must be done only once.
    pub fn new(metrics: &Metrics) -> Self {
        Self(metrics.counters(
            "function_run_function_pipeline_inspector_errors_total",
            "Total number of errors encountered emitting request/response data.",
        ))
    }

    pub(super) fn error(&self, function: &str, half: Half) {
        let r#type = match half {
            Half::Request => "request",
            Half::Response => "response",
        };
        self.0.get_or_create(&Labels { function_name: function.to_owned(), r#type }).inc();
    }
}
