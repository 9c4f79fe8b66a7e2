//! `core init`: prepares a cluster for the control plane.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use biplane_console::{Interrupted, logging, signals};
use biplane_controlplane::init::{
    self, Address, Features, Options, Packages, SecretNames, WebhookUrl, Webhooks,
};
use biplane_engine::SystemClock;
use biplane_kube::KubeCluster;
use clap::Args;
use clap::builder::BoolishValueParser;

use super::flags::Older;

const EXAMPLES: &str = "\
Examples:
  # Prepare the cluster of the current context of ~/.kube/config
  biplane core init

  # With CRDs of your own choice, in another namespace
  biplane core init --crds-path=crds --namespace=platform

  # With a function to begin with
  biplane core init --function=xpkg.crossplane.io/crossplane-contrib/function-auto-ready:v0.6.0";

/// Prepare a cluster for the control plane: certificates, CRDs, default objects
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Init {
    /// Install a Provider, by its image; can be repeated
    #[arg(long = "provider", value_name = "IMAGE", value_delimiter = ',')]
    providers: Vec<String>,
    /// Install a Configuration, by its image; can be repeated
    #[arg(long = "configuration", value_name = "IMAGE", value_delimiter = ',')]
    configurations: Vec<String>,
    /// Install a Function, by its image; can be repeated
    #[arg(long = "function", value_name = "IMAGE", value_delimiter = ',')]
    functions: Vec<String>,
    /// Activate managed resources of this name, with wildcards; can be repeated
    #[arg(long = "activation", value_name = "NAME", value_delimiter = ',')]
    activations: Vec<String>,
    /// The namespace of the control plane; it is created if it does not exist
    #[arg(long, short, env = "POD_NAMESPACE", default_value = "crossplane-system")]
    namespace: String,
    /// The service account of the control plane
    #[arg(long, env = "POD_SERVICE_ACCOUNT", default_value = "crossplane")]
    service_account: String,
    /// A folder with the CRDs to install, instead of the built-in ones
    #[arg(long, alias = "cr-ds-path", env = "CRDS_PATH", value_name = "PATH")]
    crds_path: Option<PathBuf>,
    #[command(flatten)]
    older: Older,
    /// Accepted for compatibility: the configuration of webhooks is built in
    #[arg(long, env = "WEBHOOK_CONFIGS_PATH", value_name = "PATH")]
    webhook_configurations_path: Option<PathBuf>,
    /// Make a certificate for webhooks, and install those that are enabled [default: true]
    #[arg(long, env = "ENABLE_WEBHOOKS", value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true",
        value_parser = BoolishValueParser::new())]
    enable_webhooks: Option<bool>,
    /// The earlier name of the flag and of its variable.
    #[arg(long, env = "WEBHOOK_ENABLED", hide = true, num_args = 0..=1,
        require_equals = true, default_missing_value = "true",
        value_parser = BoolishValueParser::new())]
    webhook_enabled: Option<bool>,
    /// The Service of the webhooks
    #[arg(
        long,
        env = "WEBHOOK_SERVICE_NAME",
        value_name = "NAME",
        default_value = "crossplane-webhooks"
    )]
    webhook_service_name: String,
    /// The namespace of this Service, if it is not that of the control plane
    #[arg(long, env = "WEBHOOK_SERVICE_NAMESPACE", value_name = "NAMESPACE")]
    webhook_service_namespace: Option<String>,
    /// The port of this Service
    #[arg(long, env = "WEBHOOK_SERVICE_PORT", value_name = "PORT", default_value_t = 9443)]
    webhook_service_port: u16,
    /// The URL of the webhooks, if no Service leads to them: https://HOST:PORT
    #[arg(long, env = "WEBHOOK_URL", value_name = "URL")]
    webhook_url: Option<WebhookUrl>,
    /// The Secret of the certificate authority
    #[arg(
        long,
        env = "TLS_CA_SECRET_NAME",
        value_name = "NAME",
        default_value = "crossplane-root-ca"
    )]
    tls_ca_secret_name: String,
    /// The Secret of the webhook server's certificate
    #[arg(
        long,
        env = "TLS_SERVER_SECRET_NAME",
        value_name = "NAME",
        default_value = "crossplane-tls-server"
    )]
    tls_server_secret_name: String,
    /// The Secret of the certificate that functions get to see
    #[arg(
        long,
        env = "TLS_CLIENT_SECRET_NAME",
        value_name = "NAME",
        default_value = "crossplane-tls-client"
    )]
    tls_client_secret_name: String,
    /// The kubeconfig file, instead of KUBECONFIG, ~/.kube/config or the service account of the pod
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Log what is being done
    #[arg(long, short)]
    pub(super) debug: bool,
}

impl Init {
    /// Prepares the cluster, unless the process is interrupted.
    pub(super) fn run(self) -> Result<()> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = logging::on_threads(builder.enable_all()).build();
        let runtime = runtime.context("cannot start the runtime")?;
        let prepared = runtime.block_on(async {
            let interrupted = signals::first_of(signals::of_servers());
            let interrupted = interrupted.context("cannot listen for signals")?;
            tokio::select! {
                prepared = self.prepare() => prepared,
                () = interrupted => Err(Interrupted.into()),
            }
        });
        // A key that is being made must not keep the process alive.
        runtime.shutdown_background();
        prepared
    }

    async fn prepare(self) -> Result<()> {
        if self.webhook_configurations_path.is_some() {
            tracing::warn!("the configuration of webhooks is built in: the files are not used");
        }
        let connection = biplane_kube::Options {
            kubeconfig: self.kubeconfig.clone(),
            ..biplane_kube::Options::default()
        };
        let attempted = "cannot initialize core";
        let cluster = KubeCluster::connect(&connection).await.context(attempted)?;
        init::run(Arc::new(cluster), &SystemClock, &self.options()).await.context(attempted)?;
        tracing::info!("Initialization has been completed");
        Ok(())
    }

    fn options(self) -> Options {
        let webhooks = self.enable_webhooks.or(self.webhook_enabled).unwrap_or(true);
        let service = Address::Service {
            name: self.webhook_service_name,
            namespace: self.webhook_service_namespace.unwrap_or_else(|| self.namespace.clone()),
            port: self.webhook_service_port,
        };
        Options {
            namespace: self.namespace,
            service_account: self.service_account,
            crds: self.crds_path,
            features: Features {
                resources_mode: self.older.enable_resources_mode,
                environments: self.older.enable_environment_configs,
            },
            secrets: SecretNames {
                authority: self.tls_ca_secret_name,
                server: self.tls_server_secret_name,
                client: self.tls_client_secret_name,
            },
            webhooks: webhooks.then_some(Webhooks {
                at: self.webhook_url.map_or(service, Address::Url),
                validation: self.older.enable_composition_webhook_schema_validation,
            }),
            packages: Packages {
                providers: self.providers,
                configurations: self.configurations,
                functions: self.functions,
            },
            activate: self.activations,
            ..Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        init: Init,
    }

    fn options(arguments: &[&str]) -> Options {
        let line = std::iter::once("init").chain(arguments.iter().copied());
        Line::try_parse_from(line).unwrap().init.options()
    }

    /// INIT-2
    #[test]
    fn flags_have_crossplanes_names_and_the_defaults_of_its_chart() {
        assert_eq!(options(&[]), Options::default());
        for flag in ["--crds-path", "--cr-ds-path"] {
            let options = options(&[flag, "/crds"]);
            assert_eq!(options.crds, Some(PathBuf::from("/crds")), "{flag}");
        }
        for flag in ["--enable-webhooks=false", "--webhook-enabled=false"] {
            assert_eq!(options(&[flag]).webhooks, None, "{flag}");
        }
        assert!(options(&["--enable-webhooks"]).webhooks.is_some());
        let other = options(&["-n", "other", "--function=a,b", "--function=c"]);
        assert_eq!(other.packages.functions, ["a", "b", "c"]);
        let service = |namespace: &str, port| Address::Service {
            name: "crossplane-webhooks".to_owned(),
            namespace: namespace.to_owned(),
            port,
        };
        let webhooks = Webhooks { at: service("other", 9443), validation: false };
        assert_eq!(other.webhooks, Some(webhooks));
        let flags = ["--webhook-service-port=443", "--webhook-service-namespace=hooks"];
        assert_eq!(options(&flags).webhooks.unwrap().at, service("hooks", 443));
        let validating = "--enable-composition-webhook-schema-validation";
        let by_url = options(&[validating, "--webhook-url=https://localhost:9443"]);
        let at = Address::Url("https://localhost:9443".parse().unwrap());
        assert_eq!(by_url.webhooks, Some(Webhooks { at, validation: true }));
    }
}
