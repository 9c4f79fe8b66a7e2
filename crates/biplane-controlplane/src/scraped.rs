//! What is read when metrics are scraped: how busy controllers are, and which writes were not sent.

use std::sync::{Arc, Weak};

use biplane_cluster::Quiet;
use biplane_function::metrics::Metrics;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::registry::WeakRegistry;
use crate::registry::state::Load;

/// Adds it to the metrics of a process.
pub(crate) fn add(metrics: &Metrics, registry: WeakRegistry, quiet: &Arc<Quiet>) {
    let scraped = Scraped { registry, quiet: Arc::downgrade(quiet) };
    metrics.add(|all| all.register_collector(Box::new(scraped)));
}

#[derive(Debug)]
struct Scraped {
    registry: WeakRegistry,
    quiet: Weak<Quiet>,
}

/// A controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: String,
}

/// A queue, as Kubernetes' controllers name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueOf {
    controller: String,
    name: String,
}

impl Scraped {
    fn loads(encoder: &mut DescriptorEncoder<'_>, loads: &[Load]) -> std::fmt::Result {
        let count = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let help = "Current depth of workqueue";
        let gauge = MetricType::Gauge;
        let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, gauge)?;
        for Load { controller, due, .. } in loads {
            let labels = QueueOf { controller: controller.clone(), name: controller.clone() };
            count(*due).encode(metric.encode_family(&labels)?)?;
        }
        let (name, help) = (
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, gauge)?;
        for Load { controller, running, .. } in loads {
            count(*running)
                .encode(metric.encode_family(&Of { controller: controller.clone() })?)?;
        }
        Ok(())
    }
}

impl Collector for Scraped {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        if let Some(registry) = self.registry.upgrade() {
            let loads = registry.0.state().loads();
            Self::loads(&mut encoder, &loads)?;
        }
        let Some(quiet) = self.quiet.upgrade() else { return Ok(()) };
        for (name, help, count) in [
            ("writes_skipped", "Number of writes that would have changed nothing", quiet.skipped()),
            (
                "writes_skipped_wrongly",
                "Number of skipped writes that would have changed something, if they are verified",
                quiet.wrong(),
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(metric)?;
        }
        Ok(())
    }
}
