//! Counters of controllers, watches, reconciles and circuit breakers, under Crossplane's names.

use std::time::Duration;

use biplane_function::metrics::{Counters, Histograms, Metrics};
use prometheus_client::encoding::EncodeLabelSet;

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: String,
}

/// A controller and the type of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WatchOf {
    controller: String,
    r#type: &'static str,
}

/// A controller and a result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultOf {
    controller: String,
    result: &'static str,
}

/// The counters of a control plane. Clones share the same counters.
#[derive(Clone, Debug)]
pub struct PlaneMetrics {
    controllers_started: Counters<Of>,
    controllers_stopped: Counters<Of>,
    watches_started: Counters<WatchOf>,
    watches_stopped: Counters<WatchOf>,
    reconciles: Counters<ResultOf>,
    errors: Counters<Of>,
    seconds: Histograms<Of>,
    opens: Counters<Of>,
    closes: Counters<Of>,
    events: Counters<ResultOf>,
    pauses: Counters<Of>,
}

impl PlaneMetrics {
    /// Adds the counters to the metrics of the process. This must be done only once.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            controllers_started: metrics.counters(
                "engine_controllers_started_total",
                "Total number of controllers started.",
            ),
            controllers_stopped: metrics.counters(
                "engine_controllers_stopped_total",
                "Total number of controllers stopped.",
            ),
            watches_started: metrics
                .counters("engine_watches_started_total", "Total number of watches started."),
            watches_stopped: metrics
                .counters("engine_watches_stopped_total", "Total number of watches stopped."),
            reconciles: metrics.counters(
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller.",
            ),
            errors: metrics.counters(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller.",
            ),
            seconds: metrics.histograms(
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller.",
            ),
            opens: metrics.counters(
                "circuit_breaker_opens_total",
                "Number of times the circuit breaker opened.",
            ),
            closes: metrics.counters(
                "circuit_breaker_closes_total",
                "Number of times the circuit breaker closed.",
            ),
            events: metrics.counters(
                "circuit_breaker_events_total",
                "Number of events that the circuit breaker handled, by result.",
            ),
            pauses: metrics.counters(
                "queue_pauses_total",
                "Number of times that all queues paused because of the API server.",
            ),
        }
    }

    pub(crate) fn controller_started(&self, controller: &str) {
        self.controllers_started.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn controller_stopped(&self, controller: &str) {
        self.controllers_stopped.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn watch_started(&self, controller: &str, r#type: &'static str) {
        let labels = WatchOf { controller: controller.to_owned(), r#type };
        self.watches_started.get_or_create(&labels).inc();
    }

    pub(crate) fn watch_stopped(&self, controller: &str, r#type: &'static str) {
        let labels = WatchOf { controller: controller.to_owned(), r#type };
        self.watches_stopped.get_or_create(&labels).inc();
    }

    pub(crate) fn reconciled(&self, controller: &str, result: &'static str, took: Duration) {
        let labels = ResultOf { controller: controller.to_owned(), result };
        self.reconciles.get_or_create(&labels).inc();
        if result == "error" {
            self.errors.get_or_create(&of(controller)).inc();
        }
        self.seconds.get_or_create(&of(controller)).observe(took.as_secs_f64());
    }

    pub(crate) fn paused(&self, controller: &str) {
        self.pauses.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn circuit_opened(&self, controller: &str) {
        self.opens.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn circuit_closed(&self, controller: &str) {
        self.closes.get_or_create(&of(controller)).inc();
    }

    pub(crate) fn circuit_event(&self, controller: &str, result: &'static str) {
        let labels = ResultOf { controller: controller.to_owned(), result };
        self.events.get_or_create(&labels).inc();
    }
}

fn of(controller: &str) -> Of {
    Of { controller: controller.to_owned() }
}
