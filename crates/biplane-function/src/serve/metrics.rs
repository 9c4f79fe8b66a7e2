//! The metrics of a server, with the names that gRPC servers in Go use.

use prometheus_client::encoding::EncodeLabelSet;
use tonic::Code;

use super::SERVICES;
use crate::metrics::{Counters, Metrics};
use crate::status::code_name;

/// The method that was called.
#[allow(clippy::struct_field_names)] // the fields are label names
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    grpc_type: &'static str,
    grpc_service: &'static str,
    grpc_method: &'static str,
}

impl Method {
    fn of(service: &'static str) -> Self {
        Self { grpc_type: "unary", grpc_service: service, grpc_method: "RunFunction" }
    }
}

/// The called method, and the status code of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Handled {
    #[prometheus(flatten)]
    method: Method,
    grpc_code: &'static str,
}

impl Handled {
    fn of(service: &'static str, code: Code) -> Self {
        Self { method: Method::of(service), grpc_code: code_name(code) }
    }
}

/// The counters of a server.
#[derive(Debug)]
pub struct ServerMetrics {
    started: Counters<Method>,
    handled: Counters<Handled>,
    received: Counters<Method>,
    sent: Counters<Method>,
}

impl ServerMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let counters = Self {
            started: metrics.counters(
                "grpc_server_started_total",
                "Total number of RPCs started on the server.",
            ),
            handled: metrics.counters(
                "grpc_server_handled_total",
                "Total number of RPCs completed on the server, regardless of success or failure.",
            ),
            received: metrics.counters(
                "grpc_server_msg_received_total",
                "Total number of RPC stream messages received on the server.",
            ),
            sent: metrics.counters(
                "grpc_server_msg_sent_total",
                "Total number of gRPC stream messages sent by the server.",
            ),
        };
        // Every series exists from the start, so that the first failure shows as an increase.
        for service in SERVICES {
            for family in [&counters.started, &counters.received, &counters.sent] {
                let _ = family.get_or_create(&Method::of(service));
            }
            for code in 0..=16 {
                let _ = counters.handled.get_or_create(&Handled::of(service, Code::from(code)));
            }
        }
        counters
    }

    /// Returns the number of started calls in both protocol versions.
    pub fn started(&self) -> u64 {
        let of = |service| self.started.get(&Method::of(service)).map_or(0, |n| n.get());
        SERVICES.into_iter().map(of).sum()
    }

    pub(super) fn begin(&self, service: &'static str) {
        self.started.get_or_create(&Method::of(service)).inc();
        self.received.get_or_create(&Method::of(service)).inc();
    }

    pub(super) fn end(&self, service: &'static str, code: Code) {
        if code == Code::Ok {
            self.sent.get_or_create(&Method::of(service)).inc();
        }
        self.handled.get_or_create(&Handled::of(service, code)).inc();
    }
}
