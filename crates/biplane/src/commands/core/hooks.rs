//! The flags of `core start` for webhooks: names, variables and defaults as Crossplane has them.

use std::ffi::OsString;
use std::path::PathBuf;

use biplane_controlplane::webhooks::{CertificateSource, Options};
use clap::Args;

use crate::values;

/// The webhooks that the API server asks.
#[derive(Clone, Debug, Args)]
pub(super) struct Hooks {
    /// Serve webhooks, if there is a certificate for them [default: true]
    #[arg(long, env = "ENABLE_WEBHOOKS", value_name = "BOOL", num_args = 0..=1,
        require_equals = true, default_missing_value = "true", value_parser = values::boolean)]
    enable_webhooks: Option<bool>,
    /// The earlier name of the flag and of its variable.
    #[arg(long, env = "WEBHOOK_ENABLED", hide = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = values::boolean)]
    webhook_enabled: Option<bool>,
    /// Port of webhooks
    #[arg(long, env = "WEBHOOK_PORT", value_name = "PORT", default_value_t = 9443)]
    webhook_port: u16,
    /// Folder with the certificate of webhooks: tls.crt, tls.key
    #[arg(long, env = "TLS_SERVER_CERTS_DIR", value_name = "FOLDER")]
    tls_server_certs_dir: Option<OsString>,
    /// The earlier name of the flag and of its variable.
    #[arg(long, hide = true, env = "WEBHOOK_TLS_CERT_DIR", value_name = "FOLDER")]
    webhook_tls_cert_dir: Option<OsString>,
    /// Secret with this certificate, used if there is no folder
    #[arg(long, env = "TLS_SERVER_SECRET_NAME", value_name = "NAME")]
    tls_server_secret_name: Option<String>,
}

impl Hooks {
    /// How webhooks are served, if they are. `namespace` is that of the Secret.
    pub(super) fn options(
        &self,
        namespace: &str,
        schemas: bool,
    ) -> anyhow::Result<Option<Options>> {
        if !self.enable_webhooks.or(self.webhook_enabled).unwrap_or(true) {
            return Ok(None);
        }
        let folder = |given: &Option<OsString>| given.clone().filter(|folder| !folder.is_empty());
        let folder =
            folder(&self.tls_server_certs_dir).or_else(|| folder(&self.webhook_tls_cert_dir));
        let secret = self.tls_server_secret_name.clone().filter(|name| !name.is_empty());
        let certificates = match (folder, secret) {
            (Some(folder), _) => CertificateSource::Folder(PathBuf::from(folder)),
            (None, Some(name)) => CertificateSource::Secret { namespace: namespace.into(), name },
            (None, None) if schemas => anyhow::bail!(
                "--enable-composition-webhook-schema-validation needs a certificate for webhooks: give --tls-server-certs-dir or --tls-server-secret-name"
            ),
            (None, None) => return Ok(None),
        };
        let address = format!(":{}", self.webhook_port);
        Ok(Some(Options { address, certificates, schemas }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        hooks: Hooks,
    }

    fn options(arguments: &[&str], schemas: bool) -> anyhow::Result<Option<Options>> {
        let line = std::iter::once("start").chain(arguments.iter().copied());
        Line::try_parse_from(line).unwrap().hooks.options("system", schemas)
    }

    /// WH-1 of validation
    #[test]
    fn webhooks_are_served_if_there_is_a_certificate() {
        let served = |flags: &[&str]| options(flags, false).unwrap();
        let (folder, secret) = ("--tls-server-certs-dir=/tls", "--tls-server-secret-name=tls");
        let in_folder = CertificateSource::Folder(PathBuf::from("/tls"));
        let in_secret =
            CertificateSource::Secret { namespace: "system".to_owned(), name: "tls".to_owned() };
        let at = |address: &str, certificates: &CertificateSource| {
            let (address, certificates) = (address.to_owned(), certificates.clone());
            Some(Options { address, certificates, schemas: false })
        };
        assert_eq!(served(&[folder, secret]), at(":9443", &in_folder));
        assert_eq!(served(&["--webhook-tls-cert-dir=/tls"]), at(":9443", &in_folder));
        assert_eq!(served(&[secret, "--webhook-port=443"]), at(":443", &in_secret));
        assert_eq!(served(&[secret, "--tls-server-certs-dir="]), at(":9443", &in_secret));
        assert_eq!(served(&[]), None);
        for flag in ["--enable-webhooks=false", "--webhook-enabled=false"] {
            assert_eq!(served(&[folder, flag]), None, "{flag}");
            assert_eq!(options(&[flag], true).unwrap(), None);
        }
        let error = options(&["--enable-webhooks"], true).unwrap_err().to_string();
        assert!(error.contains("needs a certificate for webhooks"), "{error}");
    }
}
