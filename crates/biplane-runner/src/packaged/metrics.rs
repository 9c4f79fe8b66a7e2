//! What is counted about calls over the wire.

use std::time::Instant;

use tonic::{Code, Status};

use super::Endpoint;
use crate::grpc::{Dialect, Watch};
use crate::status::code_name;
use crate::v1::{RunFunctionResponse, Severity};
use biplane_function::metrics::{Counter, Histogram};

const SENT: &[&str] = &["function_name", "function_package", "grpc_target", "grpc_method"];
const ANSWERED: &[&str] = &[
    "function_name",
    "function_package",
    "grpc_target",
    "grpc_method",
    "grpc_code",
    "result_severity",
];

/// Attempts, by function, package, target and method; answers also by code and severity.
#[derive(Debug)]
#[allow(missing_docs)] // the names and help texts below say it
pub struct Metrics {
    pub requests: Counter,
    pub responses: Counter,
    pub seconds: Histogram,
}

impl Metrics {
    pub(super) fn new() -> Self {
        Self {
            requests: Counter::new(
                "function_run_function_request_total",
                "Total number of RunFunctionRequests sent.",
                SENT,
            ),
            responses: Counter::new(
                "function_run_function_response_total",
                "Total number of RunFunctionResponses received.",
                ANSWERED,
            ),
            seconds: Histogram::new(
                "function_run_function_seconds",
                "Histogram of RunFunctionResponse latency (seconds).",
                ANSWERED,
            ),
        }
    }

    pub(super) fn watch<'a>(&'a self, function: &'a str, endpoint: &'a Endpoint) -> Watched<'a> {
        Watched { metrics: self, function, endpoint }
    }

    /// Appends all of it in Prometheus' text format.
    pub fn write(&self, out: &mut String) {
        self.requests.write(out);
        self.responses.write(out);
        self.seconds.write(out);
    }
}

/// Counts the attempts of one call.
pub(super) struct Watched<'a> {
    metrics: &'a Metrics,
    function: &'a str,
    endpoint: &'a Endpoint,
}

impl Watch for Watched<'_> {
    fn sent(&self, dialect: Dialect) {
        let Endpoint { target, package, .. } = self.endpoint;
        self.metrics.requests.add(&[self.function, package, target, dialect.method()], 1);
    }

    fn answered(
        &self,
        dialect: Dialect,
        answer: Result<&RunFunctionResponse, &Status>,
        since: Instant,
    ) {
        let code = answer.err().map_or(Code::Ok, Status::code);
        let labels = [
            self.function,
            &self.endpoint.package,
            &self.endpoint.target,
            dialect.method(),
            code_name(code),
            answer.map_or("Normal", worst),
        ];
        self.metrics.responses.add(&labels, 1);
        self.metrics.seconds.observe(&labels, since.elapsed());
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
