//! What a recorder counts.

use biplane_function::metrics::{Counters, Metrics};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// The labels of emissions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EmissionLabels {
    /// `request` or `response`.
    pub r#type: &'static str,
    /// `shipped` or `design`.
    pub dialect: &'static str,
}

/// The label of what was lost.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct LossLabels {
    /// Why.
    pub reason: &'static str,
}

/// The labels of changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ChangeLabels {
    /// `create`, `update`, `delete` or `other`.
    pub operation: &'static str,
    /// `success` or `failure`, as the provider says.
    pub result: &'static str,
}

/// The label of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SourceLabels {
    /// The name of the recorder.
    pub source: String,
}

/// The label of findings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct FindingLabels {
    /// What was found.
    pub kind: &'static str,
}

/// The label of lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct LineLabels {
    /// `emission` or `change`.
    pub kind: &'static str,
}

/// The metrics of a recorder. Clones share them.
#[derive(Clone, Debug)]
pub struct RecorderMetrics {
    /// Emissions that were received.
    pub emissions: Counters<EmissionLabels>,
    /// Emissions that were received and not stored.
    pub lost: Counters<LossLabels>,
    /// Bytes that wait to be digested.
    pub queue_bytes: Gauge,
    /// How long a transaction takes.
    pub write_seconds: Histogram,
    /// The size of the store.
    pub store_bytes: Gauge,
    /// When the oldest kept run started.
    pub oldest_run: Gauge,
    /// Changes that were stored.
    pub changes: Counters<ChangeLabels>,
    /// The number of the last change of a source.
    pub chain_sequence: Family<SourceLabels, Gauge>,
    /// What was found in runs.
    pub findings: Counters<FindingLabels>,
    /// Lines that nobody read.
    pub unprinted: Counters<LineLabels>,
}

/// The upper bounds of the buckets of transactions, in seconds.
const BUCKETS: [f64; 9] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];

impl RecorderMetrics {
    /// Registers the metrics.
    pub fn new(metrics: &Metrics) -> Self {
        let own = Self {
            emissions: metrics
                .counters("biplane_recorder_emissions_total", "Emissions that were received."),
            lost: metrics.counters(
                "biplane_recorder_lost_total",
                "Emissions that were received and not stored.",
            ),
            queue_bytes: Gauge::default(),
            write_seconds: Histogram::new(BUCKETS),
            store_bytes: Gauge::default(),
            oldest_run: Gauge::default(),
            changes: metrics
                .counters("biplane_recorder_changes_total", "Change log entries that were stored."),
            chain_sequence: Family::default(),
            findings: metrics
                .counters("biplane_recorder_findings_total", "What was found in the runs."),
            unprinted: metrics.counters(
                "biplane_recorder_unprinted_total",
                "Lines that were not printed because nobody reads standard output.",
            ),
        };
        let added = own.clone();
        metrics.add(|registry| {
            registry.register(
                "biplane_recorder_queue_bytes",
                "Bytes of emissions that wait to be stored",
                added.queue_bytes,
            );
            registry.register(
                "biplane_recorder_write_seconds",
                "How long a transaction of the store takes",
                added.write_seconds,
            );
            registry.register(
                "biplane_recorder_store_bytes",
                "The size of the store",
                added.store_bytes,
            );
            registry.register(
                "biplane_recorder_oldest_run_timestamp_seconds",
                "When the oldest run that is kept started",
                added.oldest_run,
            );
            registry.register(
                "biplane_recorder_chain_sequence",
                "The number of the last change of a source",
                added.chain_sequence,
            );
        });
        own
    }
}
