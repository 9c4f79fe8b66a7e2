//! The metrics of the cache, with the names that control planes use.

use std::time::Duration;

use biplane_function::metrics::{Counters, Histograms, Metrics};
use prometheus_client::encoding::EncodeLabelSet;

/// The function of a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Function {
    function_name: String,
}

impl Function {
    pub(super) fn of(name: &str) -> Self {
        Self { function_name: name.to_owned() }
    }
}

/// The counters of caches. Clones share the same counters.
#[derive(Clone, Debug)]
pub struct CacheMetrics {
    pub(super) hits: Counters<Function>,
    pub(super) misses: Counters<Function>,
    pub(super) errors: Counters<Function>,
    pub(super) writes: Counters<Function>,
    pub(super) deletes: Counters<Function>,
    pub(super) bytes_written: Counters<Function>,
    pub(super) bytes_deleted: Counters<Function>,
    pub(super) read_seconds: Histograms<Function>,
    pub(super) write_seconds: Histograms<Function>,
}

impl CacheMetrics {
    /// Adds the counters to the metrics of the process. This must be done only once.
    pub fn new(metrics: &Metrics) -> Self {
        let counters = |name: &str, help: &str| {
            metrics.counters(&format!("function_run_function_response_cache_{name}"), help)
        };
        let histograms = |name: &str, help: &str| {
            metrics.histograms(&format!("function_run_function_response_cache_{name}"), help)
        };
        Self {
            hits: counters("hits_total", "Total number of RunFunctionResponse cache hits."),
            misses: counters("misses_total", "Total number of RunFunctionResponse cache misses."),
            errors: counters("errors_total", "Total number of RunFunctionResponse cache errors."),
            writes: counters("writes_total", "Total number of RunFunctionResponses cache writes."),
            deletes: counters(
                "deletes_total",
                "Total number of RunFunctionResponses cache deletes.",
            ),
            bytes_written: counters(
                "bytes_written_total",
                "Total number of RunFunctionResponse bytes written.",
            ),
            bytes_deleted: counters(
                "bytes_deleted_total",
                "Total number of RunFunctionResponse bytes deleted.",
            ),
            read_seconds: histograms(
                "read_seconds",
                "Histogram of RunFunctionResponse cache read time (seconds).",
            ),
            write_seconds: histograms(
                "write_seconds",
                "Histogram of RunFunctionResponse cache write time (seconds).",
            ),
        }
    }

    pub(super) fn hit(&self, function: &str, took: Duration) {
        let function = Function::of(function);
        self.hits.get_or_create(&function).inc();
        self.read_seconds.get_or_create(&function).observe(took.as_secs_f64());
    }

    pub(super) fn miss(&self, function: &str) {
        self.misses.get_or_create(&Function::of(function)).inc();
    }

    pub(super) fn error(&self, function: &str) {
        self.errors.get_or_create(&Function::of(function)).inc();
    }

    pub(super) fn write(&self, function: &str, bytes: u64, took: Duration) {
        let function = Function::of(function);
        self.writes.get_or_create(&function).inc();
        self.bytes_written.get_or_create(&function).inc_by(bytes);
        self.write_seconds.get_or_create(&function).observe(took.as_secs_f64());
    }

    pub(super) fn delete(&self, function: &str, bytes: u64) {
        let function = Function::of(function);
        self.deletes.get_or_create(&function).inc();
        self.bytes_deleted.get_or_create(&function).inc_by(bytes);
    }
}
