//! `core start`: runs the control plane on a cluster until it is told to stop.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use biplane_cluster::Skipping;
use biplane_console::logging;
use biplane_console::signals;
use biplane_controlplane::functions::{self, Cache, CertificateSource};
use biplane_controlplane::start::{self, Process, Server, Settings};
use biplane_controlplane::{BreakerLimits, composite, definitions};
use biplane_engine::claim::Syncing;
use biplane_engine::{Clock as _, SystemClock};
use biplane_function::Registry;
use clap::Args;

use super::flags::{Features, Identity, Ignored, Network, Pace, Refused};
use super::hooks::Hooks;
use super::runtime::Runtimes;
use crate::inspection;

const EXAMPLES: &str = "\
Examples:
  # On the cluster of a kubeconfig, with the functions in the box in this process
  biplane core start --kubeconfig=kubeconfig --package-runtime=Function=InProcess

  # Several at a time, of which one works
  biplane core start --leader-election --namespace=crossplane-system

  # Look whether a write was ever skipped that would have changed something
  biplane core start --verify-skips";

/// Run the control plane
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Start {
    #[command(flatten)]
    identity: Identity,
    /// Work only while this process holds the Lease
    #[arg(short, long, env = "LEADER_ELECTION")]
    leader_election: bool,
    /// Where functions run: External, InProcess, or by kind, such as Function=InProcess
    #[arg(long, env = "PACKAGE_RUNTIME", value_name = "RUNTIME", default_value = "Deployment")]
    package_runtime: Runtimes,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    hooks: Hooks,
    #[command(flatten)]
    features: Features,
    #[command(flatten)]
    ignored: Ignored,
    #[command(flatten)]
    refused: Refused,
    /// Log what is being done, for people
    #[arg(short, long)]
    pub(super) debug: bool,
}

impl Start {
    /// Runs until the process is told to stop. A second signal ends it at once.
    pub fn run(self, own: &Registry) -> anyhow::Result<()> {
        self.refused.check()?;
        for flag in self.ignored.given() {
            tracing::warn!(flag, "this flag has no effect yet");
        }
        for (flag, is_on) in [
            ("EnableBetaRealtimeCompositions", self.features.enable_realtime_compositions),
            ("EnableBetaClaimSSA", self.features.enable_ssa_claims),
            (
                "EnableBetaCompositionWebhookSchemaValidation",
                self.features.older.enable_composition_webhook_schema_validation,
            ),
        ] {
            if is_on {
                tracing::info!(flag, "Beta feature enabled");
            }
        }
        if self.features.enable_function_response_cache {
            tracing::info!(flag = "EnableAlphaFunctionResponseCache", "Alpha feature enabled");
        }
        if self.features.older.enable_environment_configs {
            tracing::info!(flag = "EnableAlphaEnvironmentConfigs", "Alpha feature enabled");
        }
        if self.features.older.enable_resources_mode {
            tracing::warn!("mode Resources is deprecated: use mode Pipeline");
        }
        let cluster = self.cluster();
        let (process, settings) = (self.process()?, self.settings(own));
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.enable_all()).build();
        let runtime = runtime.context("cannot start the runtime")?;
        let ended = runtime.block_on(async {
            let attempted = "cannot listen for signals";
            let stop = signals::first_of(signals::of_servers()).context(attempted)?;
            let at_once = signals::nth_of(2, signals::of_servers()).context(attempted)?;
            let run = start::start(&Server::Configured, cluster, &process, settings, stop);
            tokio::select! {
                ended = run => Ok(ended?),
                () = at_once => Ok(()),
            }
        });
        // A function may still compute, but must not keep the process alive.
        runtime.shutdown_background();
        ended
    }

    fn cluster(&self) -> biplane_kube::Options {
        let defaults = biplane_kube::Options::default();
        let Identity { kubeconfig, context, user_agent, .. } = self.identity.clone();
        biplane_kube::Options {
            kubeconfig,
            context,
            user_agent: user_agent.unwrap_or(defaults.user_agent.clone()),
            ..defaults
        }
    }

    fn process(&self) -> anyhow::Result<Process> {
        let address = |port: u16| (port != 0).then(|| format!(":{port}"));
        let schemas = self.features.older.enable_composition_webhook_schema_validation;
        Ok(Process {
            election: self.leader_election.then(|| self.identity.namespace.clone()),
            probes: address(self.network.health_probe_port),
            metrics: address(self.network.metrics_port),
            webhooks: self.hooks.options(&self.identity.namespace, schemas)?,
        })
    }

    fn settings(&self, own: &Registry) -> Settings {
        let Self { identity, pace, network, features, .. } = self;
        let folder = network.tls_client_certs_dir.clone().filter(|folder| !folder.is_empty());
        let secret = network.tls_client_secret_name.clone().filter(|name| !name.is_empty());
        let certificates = match (folder, secret) {
            (Some(folder), _) => Some(CertificateSource::Folder(PathBuf::from(folder))),
            (None, Some(name)) => {
                Some(CertificateSource::Secret { namespace: identity.namespace.clone(), name })
            }
            (None, None) => None,
        };
        let cache = features.enable_function_response_cache.then(|| Cache {
            folder: features.xfn_cache_dir.clone(),
            max_ttl: features.xfn_cache_max_ttl,
            now: Arc::new(|| SystemClock.now().into()),
        });
        let user =
            format!("system:serviceaccount:{}:{}", identity.namespace, identity.service_account);
        Settings {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            skipping: match (features.skip_unchanged, features.verify_skips) {
                (false, _) => Skipping::Send,
                (true, true) => Skipping::Verify,
                (true, false) => Skipping::Skip,
            },
            sync_interval: Some(pace.sync_interval),
            composites: composite::Settings {
                realtime: features.enable_realtime_compositions,
                poll_interval: pace.poll_interval,
                min_poll_interval: pace.min_poll_interval,
                concurrent: pace.max_concurrent_reconciles,
                breaker: BreakerLimits {
                    burst: pace.circuit_breaker_burst,
                    refill_rate: pace.circuit_breaker_refill_rate,
                    cooldown: pace.circuit_breaker_cooldown,
                    ..BreakerLimits::default()
                },
                user: Some(user),
                resources_mode: features.older.enable_resources_mode,
                environments: features.older.enable_environment_configs,
            },
            definitions: definitions::Options {
                claims: if features.enable_ssa_claims {
                    Syncing::ServerSide
                } else {
                    Syncing::ClientSide
                },
                revision_history: pace.composition_revision_history_limit,
                concurrent: pace.max_concurrent_reconciles,
            },
            functions: functions::Options {
                built_in: biplane_functions::registry().and(own),
                in_process: self.package_runtime.functions_in_process(),
                certificates,
                step_limit: Some(pace.function_timeout).filter(|limit| !limit.is_zero()),
                cache,
                inspection: features.enable_pipeline_inspector.then(|| {
                    inspection::of_control_plane(features.pipeline_inspector_socket.clone())
                }),
                ..functions::Options::default()
            },
        }
    }
}
