//! The metrics of a process, in the format that Prometheus scrapes.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// The content type of [`Metrics::text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of the histogram buckets in seconds: the defaults of Prometheus' Go client.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A counter for each set of labels.
pub type Counters<L> = Family<L, Counter>;

/// A histogram of durations for each set of labels.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The labels of a metric: a struct that derives `EncodeLabelSet`.
pub trait Labels: Clone + Debug + Eq + Hash + EncodeLabelSet + Send + Sync + 'static {}

impl<L: Clone + Debug + Eq + Hash + EncodeLabelSet + Send + Sync + 'static> Labels for L {}

/// All metrics of a process. Clones share the same metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Metrics {
    /// Adds counters. The name must end in `_total` and must be unique.
    pub fn counters<L: Labels>(&self, name: &str, help: &str) -> Counters<L> {
        let counters = Counters::default();
        // The encoder adds the suffix again.
        self.register(name.strip_suffix("_total").unwrap_or(name), help, counters.clone());
        counters
    }

    /// Adds histograms of seconds. The name must be unique.
    pub fn histograms<L: Labels>(&self, name: &str, help: &str) -> Histograms<L> {
        let histograms = Histograms::new_with_constructor(|| Histogram::new(BUCKETS));
        self.register(name, help, histograms.clone());
        histograms
    }

    /// Adds metrics that somebody else keeps.
    pub fn add(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn register(&self, name: &str, help: &str, metric: impl Metric) {
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The encoder adds the full stop again.
        registry.register(name, help.strip_suffix('.').unwrap_or(help), metric);
    }

    /// Returns all metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string cannot fail.
        let _ = text::encode(&mut out, &registry);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct Labelled {
        function: &'static str,
        code: &'static str,
    }

    #[test]
    fn counters_are_printed_under_their_names() {
        let metrics = Metrics::default();
        let counters = metrics.counters("calls_total", "Calls.");
        counters.get_or_create(&Labelled { function: "b\"\\\n", code: "OK" }).inc_by(2);
        assert_eq!(
            metrics.text(),
            "# HELP calls Calls.\n# TYPE calls counter\n\
             calls_total{function=\"b\\\"\\\\\\n\",code=\"OK\"} 2\n# EOF\n"
        );
    }

    #[test]
    fn buckets_of_histograms_include_the_smaller_ones() {
        let metrics = Metrics::default();
        let histograms = metrics.histograms("seconds", "Time.");
        let histogram = histograms.get_or_create_owned(&Labelled { function: "a", code: "OK" });
        for seconds in [0.005, 0.03, 20.0] {
            histogram.observe(seconds);
        }
        let text = metrics.text();
        for line in [
            "# HELP seconds Time.",
            "# TYPE seconds histogram",
            "seconds_bucket{le=\"0.005\",function=\"a\",code=\"OK\"} 1",
            "seconds_bucket{le=\"0.025\",function=\"a\",code=\"OK\"} 1",
            "seconds_bucket{le=\"0.05\",function=\"a\",code=\"OK\"} 2",
            "seconds_bucket{le=\"10.0\",function=\"a\",code=\"OK\"} 2",
            "seconds_bucket{le=\"+Inf\",function=\"a\",code=\"OK\"} 3",
            "seconds_sum{function=\"a\",code=\"OK\"} 20.035",
            "seconds_count{function=\"a\",code=\"OK\"} 3",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn clones_share_their_metrics() {
        let metrics = Metrics::default();
        let counters = metrics.clone().counters("calls_total", "Calls.");
        counters.get_or_create(&Labelled { function: "a", code: "OK" }).inc();
        assert!(metrics.text().contains("calls_total{function=\"a\",code=\"OK\"} 1\n"));
    }
}
