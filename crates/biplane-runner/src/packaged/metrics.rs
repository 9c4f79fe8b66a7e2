//! The metrics of calls over the wire, with the names that control planes use.

use std::time::Instant;

use biplane_function::metrics::{Counters, Histograms, Metrics};
use prometheus_client::encoding::EncodeLabelSet;
use tonic::{Code, Status};

use super::Endpoint;
use crate::grpc::{Dialect, Watch};
use crate::status::code_name;
use crate::v1::{RunFunctionResponse, Severity};

/// The labels of a sent request: the function and the method.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Sent {
    pub(super) function_name: String,
    pub(super) function_package: String,
    pub(super) grpc_target: String,
    pub(super) grpc_method: &'static str,
}

/// The labels of a response: those of the request and the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Answered {
    #[prometheus(flatten)]
    pub(super) sent: Sent,
    pub(super) grpc_code: &'static str,
    pub(super) result_severity: &'static str,
}

/// Counters of requests to installed functions and of their responses. Clones share the same
/// counters.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    pub(super) requests: Counters<Sent>,
    pub(super) responses: Counters<Answered>,
    pub(super) seconds: Histograms<Answered>,
}

impl CallMetrics {
    /// Adds the counters to the metrics of the process. This must be done only once.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            requests: metrics.counters(
                "function_run_function_request_total",
                "Total number of RunFunctionRequests sent.",
            ),
            responses: metrics.counters(
                "function_run_function_response_total",
                "Total number of RunFunctionResponses received.",
            ),
            seconds: metrics.histograms(
                "function_run_function_seconds",
                "Histogram of RunFunctionResponse latency (seconds).",
            ),
        }
    }

    pub(super) fn start_call<'a>(
        &'a self,
        function: &'a str,
        endpoint: &'a Endpoint,
    ) -> CallTimer<'a> {
        CallTimer { metrics: self, function, endpoint }
    }
}

/// Counts the requests and responses of one call and measures their latency.
pub(super) struct CallTimer<'a> {
    metrics: &'a CallMetrics,
    function: &'a str,
    endpoint: &'a Endpoint,
}

impl CallTimer<'_> {
    fn labels(&self, dialect: Dialect) -> Sent {
        Sent {
            function_name: self.function.to_owned(),
            function_package: self.endpoint.package.clone(),
            grpc_target: self.endpoint.target.clone(),
            grpc_method: dialect.method(),
        }
    }
}

impl Watch for CallTimer<'_> {
    fn sent(&self, dialect: Dialect) {
        self.metrics.requests.get_or_create(&self.labels(dialect)).inc();
    }

    fn answered(
        &self,
        dialect: Dialect,
        answer: Result<&RunFunctionResponse, &Status>,
        since: Instant,
    ) {
        let code = answer.err().map_or(Code::Ok, Status::code);
        let labels = Answered {
            sent: self.labels(dialect),
            grpc_code: code_name(code),
            result_severity: answer.map_or("Normal", worst),
        };
        self.metrics.responses.get_or_create(&labels).inc();
        self.metrics.seconds.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
    }
}

fn worst(response: &RunFunctionResponse) -> &'static str {
    let has = |severity| response.results.iter().any(|r| r.severity() == severity);
    if has(Severity::Fatal) {
        "Fatal"
    } else if has(Severity::Warning) {
        "Warning"
    } else {
        "Normal"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::Result as FunctionResult;

    /// FN-M3
    #[test]
    fn the_worst_result_counts() {
        let cases: [(&[i32], &str); 4] =
            [(&[], "Normal"), (&[3, 2], "Warning"), (&[2, 1, 3], "Fatal"), (&[0, 77], "Normal")];
        for (severities, expected) in cases {
            let result = |&severity| FunctionResult { severity, ..FunctionResult::default() };
            let results = severities.iter().map(result).collect();
            let response = RunFunctionResponse { results, ..RunFunctionResponse::default() };
            assert_eq!(worst(&response), expected, "{severities:?}");
        }
    }
}
