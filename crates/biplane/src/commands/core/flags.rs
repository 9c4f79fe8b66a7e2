//! The flags of `core start`: names, variables and defaults as Crossplane has them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use biplane_runner::inspected::{DEFAULT_SOCKET, SOCKET_VARIABLE};
use clap::{ArgAction, Args};

use crate::values;

/// Who the control plane is, and where it finds its cluster.
#[derive(Clone, Debug, Args)]
pub(super) struct Identity {
    /// Kubeconfig of the cluster; else KUBECONFIG, the pod's service account, ~/.kube/config
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    pub(super) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub(super) context: Option<String>,
    /// Namespace of the control plane: of its Secrets and its Lease
    #[arg(short, long, env = "POD_NAMESPACE", default_value = "crossplane-system")]
    pub(super) namespace: String,
    /// Name of the control plane's service account, to explain refused requests
    #[arg(long, env = "POD_SERVICE_ACCOUNT", default_value = "crossplane")]
    pub(super) service_account: String,
    /// How requests to the API server introduce themselves
    #[arg(long, env = "USER_AGENT", value_name = "TEXT")]
    pub(super) user_agent: Option<String>,
}

/// How often, how much and how many at a time.
#[derive(Clone, Debug, Args)]
pub(super) struct Pace {
    /// How often everything is looked at although nothing happened; 0 for never
    #[arg(short, long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub(super) sync_interval: Duration,
    /// How often composite resources are reconciled if nothing they depend on is watched
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    pub(super) poll_interval: Duration,
    /// The shortest interval that a composite resource's annotation can ask for
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = values::duration)]
    pub(super) min_poll_interval: Duration,
    /// How many objects of a kind are reconciled at a time
    #[arg(long, alias = "max-reconcile-rate", value_name = "COUNT", default_value_t = 100, value_parser = values::count::<usize>)]
    pub(super) max_concurrent_reconciles: usize,
    /// How many changes of what a composite resource depends on may reconcile it at once
    #[arg(long, value_name = "COUNT", default_value_t = 100.0)]
    pub(super) circuit_breaker_burst: f64,
    /// How many more each second
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    pub(super) circuit_breaker_refill_rate: f64,
    /// How long a composite resource that changes too often is left alone
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub(super) circuit_breaker_cooldown: Duration,
    /// How long one step of a pipeline may take; 0 for as long as the reconcile may
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = values::duration)]
    pub(super) function_timeout: Duration,
    /// How many revisions of a Composition that nothing uses are kept; 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(super) composition_revision_history_limit: usize,
}

/// Where the process listens, and which certificates it shows.
#[derive(Clone, Debug, Args)]
pub(super) struct Network {
    /// Port of Prometheus metrics; 0 for none
    #[arg(long, env = "METRICS_PORT", value_name = "PORT", default_value_t = 8080)]
    pub(super) metrics_port: u16,
    /// Port of /healthz and /readyz; 0 for none
    #[arg(long, env = "HEALTH_PROBE_PORT", value_name = "PORT", default_value_t = 8081)]
    pub(super) health_probe_port: u16,
    /// Folder with the certificates that functions are called with: tls.crt, tls.key, ca.crt
    #[arg(long, env = "TLS_CLIENT_CERTS_DIR", value_name = "FOLDER")]
    pub(super) tls_client_certs_dir: Option<OsString>,
    /// Secret with these certificates, used if there is no folder
    #[arg(long, env = "TLS_CLIENT_SECRET_NAME", value_name = "NAME")]
    pub(super) tls_client_secret_name: Option<String>,
}

/// What can be turned on or off.
#[derive(Clone, Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // one for each flag
pub(super) struct Features {
    /// Reconcile composite resources as soon as something they depend on changes
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "true", value_name = "BOOL", value_parser = values::boolean)]
    pub(super) enable_realtime_compositions: bool,
    /// Sync claims with server-side apply
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "true", value_name = "BOOL", value_parser = values::boolean)]
    pub(super) enable_ssa_claims: bool,
    /// Keep answers of functions for as long as they allow
    #[arg(long)]
    pub(super) enable_function_response_cache: bool,
    /// Where answers of functions are kept
    #[arg(long, env = "XFN_CACHE_DIR", value_name = "FOLDER", default_value = "/cache/xfn")]
    pub(super) xfn_cache_dir: PathBuf,
    /// The longest time that an answer is kept
    #[arg(long, env = "XFN_CACHE_MAX_TTL", value_name = "DURATION", default_value = "24h", value_parser = values::duration)]
    pub(super) xfn_cache_max_ttl: Duration,
    /// Emit what functions are given and what they answer to a Pipeline Inspector
    #[arg(long)]
    pub(super) enable_pipeline_inspector: bool,
    /// The socket of the Pipeline Inspector
    #[arg(long, env = SOCKET_VARIABLE, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(super) pipeline_inspector_socket: PathBuf,
    #[command(flatten)]
    pub(super) older: Older,
    /// Do not send applies that would change nothing
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "true", value_name = "BOOL", value_parser = values::boolean)]
    pub(super) skip_unchanged: bool,
    /// Send such applies as dry runs, and log and count those that would have changed something
    #[arg(long)]
    pub(super) verify_skips: bool,
}

/// What the v1 line had and Crossplane has removed since.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Older {
    /// Let Compositions have an environment from EnvironmentConfigs, as in v1.17
    #[arg(long)]
    pub(super) enable_environment_configs: bool,
    /// Compose Compositions of mode Resources (deprecated, as in v1.20)
    #[arg(long)]
    pub(super) enable_resources_mode: bool,
    /// Let webhooks validate XRDs, and Compositions with the schemas of what they compose
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_name = "BOOL", value_parser = values::boolean)]
    pub(super) enable_composition_webhook_schema_validation: bool,
}

/// Flags that are accepted because scripts and charts set them, and do nothing yet.
#[derive(Clone, Debug, Args)]
pub(super) struct Ignored {
    #[arg(long, hide = true)]
    profile: Option<String>,
    #[arg(long, hide = true, env = "CA_BUNDLE_PATH")]
    ca_bundle_path: Option<String>,
    #[arg(short = 'c', long, alias = "cache-dir", hide = true, env = "XPKG_CACHE_DIR")]
    xpkg_cache_dir: Option<String>,
    #[arg(long, hide = true)]
    max_concurrent_package_establishers: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    restrict_namespaced_events: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    watch_cache_namespaced: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_dependency_version_upgrades: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_dependency_version_downgrades: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_signature_verification: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_operations: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_provider_deletion_protection: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_deployment_runtime_configs: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_usages: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    enable_custom_to_managed_resource_conversion: Option<String>,
}

impl Ignored {
    /// The flags that were given and ask for something that is not done.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let says_no = |text: &String| matches!(text.as_str(), "false" | "0" | "no");
        let given = |value: &Option<String>| value.as_ref().is_some_and(|text| !says_no(text));
        [
            ("--profile", &self.profile),
            ("--ca-bundle-path", &self.ca_bundle_path),
            ("--xpkg-cache-dir", &self.xpkg_cache_dir),
            ("--max-concurrent-package-establishers", &self.max_concurrent_package_establishers),
            ("--restrict-namespaced-events", &self.restrict_namespaced_events),
            ("--watch-cache-namespaced", &self.watch_cache_namespaced),
            ("--enable-dependency-version-upgrades", &self.enable_dependency_version_upgrades),
            ("--enable-dependency-version-downgrades", &self.enable_dependency_version_downgrades),
            ("--enable-signature-verification", &self.enable_signature_verification),
            ("--enable-operations", &self.enable_operations),
            ("--enable-provider-deletion-protection", &self.enable_provider_deletion_protection),
            ("--enable-deployment-runtime-configs", &self.enable_deployment_runtime_configs),
            ("--enable-usages", &self.enable_usages),
            (
                "--enable-custom-to-managed-resource-conversion",
                &self.enable_custom_to_managed_resource_conversion,
            ),
        ]
        .into_iter()
        .filter(|(_, value)| given(value))
        .map(|(flag, _)| flag)
        .collect()
    }
}

/// Flags that Crossplane refuses.
#[derive(Clone, Debug, Args)]
pub(super) struct Refused {
    #[arg(long, hide = true)]
    enable_external_secret_stores: bool,
    #[arg(short, long, hide = true)]
    registry: Option<String>,
}

impl Refused {
    /// Why the control plane does not start with these flags, in Crossplane's words.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.enable_external_secret_stores {
            anyhow::bail!(
                "Crossplane removed support for external secret stores. The --enable-external-secret-stores flag will be removed in a future release."
            );
        }
        if self.registry.as_ref().is_some_and(|registry| !registry.is_empty()) {
            anyhow::bail!(
                "the --registry flag is no longer supported since support for a default registry value has been removed. Please ensure that all packages have fully qualified names that explicitly state their registry. This also applies to all of a packages dependencies"
            );
        }
        Ok(())
    }
}
