//! `recorder pages`, and what a recorder serves over HTTP: pages, answers, metrics and probes.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use biplane_console::signals;
use biplane_function::metrics::{CONTENT_TYPE, Metrics};
use biplane_function::server::Page;
use biplane_pages::serve::{self, Server};
use biplane_pages::site::{Extra, Options, PATIENCE, Site};
use biplane_pages::tls::Certificate;
use biplane_pages::token::Token;
use biplane_recorder::query::stored::Stored;
use biplane_recorder::recorder::Recorder;
use biplane_recorder::store::Location;
use clap::Args;

use crate::commands::records;
use crate::values;

/// Where pages are served, and to whom.
#[derive(Clone, Debug, Args)]
pub(in crate::commands) struct Listening {
    /// Address of pages, questions (/api/v1), metrics (/metrics) and probes (/healthz, /readyz);
    /// empty for none
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7654")]
    pub(in crate::commands) listen: String,
    /// File with the token that readers must know: as a bearer token, or typed into a form
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    token_file: Option<PathBuf>,
    /// Serve other machines without a token: everybody who can reach the address can read the
    /// records
    #[arg(long, conflicts_with = "token_file")]
    allow_anyone: bool,
    /// File with the certificate of the pages, read again when it changes
    #[arg(long, value_name = "FILE", value_parser = values::path, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the key of the certificate
    #[arg(long, value_name = "FILE", value_parser = values::path, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Name by which the pages may be asked, beside addresses and localhost; repeatable
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
}

/// What is served beside pages and answers, and what pages say of the recorder.
pub(in crate::commands) struct Beside {
    extra: Arc<Extra>,
    trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

/// What a recorder serves beside pages.
pub(in crate::commands) fn of(recorder: &Arc<Recorder>, metrics: &Metrics) -> Beside {
    let asked = Arc::clone(recorder);
    let (recorder, metrics) = (Arc::clone(recorder), metrics.clone());
    Beside {
        extra: Arc::new(move |path: &str| match path {
            "/metrics" => Some(text_of(&metrics)),
            "/healthz" => Some(probe(recorder.is_alive())),
            "/readyz" => Some(probe(recorder.is_ready())),
            _ => None,
        }),
        trouble: Arc::new(move || asked.trouble().map(str::to_owned)),
    }
}

fn text_of(metrics: &Metrics) -> Page {
    Page { status: 200, content_type: CONTENT_TYPE, body: metrics.text() }
}

/// The answer to a probe.
fn probe(state: Result<(), &str>) -> Page {
    match state {
        Ok(()) => Page::text(200, "ok"),
        Err(reason) => Page::text(500, format!("{reason}\n")),
    }
}

impl Listening {
    /// Pages at an address of this machine, without a token.
    pub(in crate::commands) fn local(listen: &str) -> Self {
        Self {
            listen: listen.to_owned(),
            token_file: None,
            allow_anyone: false,
            tls_cert: None,
            tls_key: None,
            hosts: Vec::new(),
        }
    }

    /// Checks that what is served to other machines has a token.
    pub(in crate::commands) fn check(&self) -> Result<()> {
        let is_safe = self.listen.is_empty() || serve::is_loopback(&self.listen);
        if is_safe || self.token_file.is_some() || self.allow_anyone {
            return Ok(());
        }
        bail!(
            "{} can be reached from other machines: give readers a token with --token-file, or let \
             everybody read the records with --allow-anyone",
            self.listen
        )
    }

    /// Serves until the server is dropped. Nothing is served at an empty address.
    pub(in crate::commands) async fn serve(
        &self,
        store: &str,
        beside: Beside,
    ) -> Result<Option<Server>> {
        self.check()?;
        if self.listen.is_empty() {
            return Ok(None);
        }
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Arc::new(Certificate::read(certificate, key)?)),
            _ => None,
        };
        let store = store.to_owned();
        let site = Site::new(Options {
            allowed: self.hosts.clone(),
            token: self.token()?,
            is_secure: certificate.is_some(),
            open: Arc::new(move || Stored::open(&store)),
            now: Arc::new(records::now),
            trouble: beside.trouble,
            extra: beside.extra,
            patience: PATIENCE,
        });
        let served = serve::serve(site, &self.listen, certificate).await;
        let attempted =
            || format!("cannot serve pages, answers, metrics and probes at {}", self.listen);
        served.map(Some).with_context(attempted)
    }

    fn token(&self) -> Result<Option<Token>> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        let token = Token::new(&text);
        token.map(Some).with_context(|| format!("{} has no token", file.display()))
    }
}

const EXAMPLES: &str = "\
Examples:
  # Pages of a store in a file, for this machine
  biplane recorder pages --store=recorder.db

  # Pages of a store that recorders share, for everybody who knows a token
  biplane recorder pages --store=postgres://reader@db/recorder --listen=:7654 --token-file=token \\
    --tls-cert=tls.crt --tls-key=tls.key --host=recorder.example.org";

/// Serve pages about what was recorded
///
/// Any number of servers can show the store of a recorder. They only read it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Pages {
    /// Emit debug logs in addition to info logs
    #[arg(long, short)]
    pub(super) debug: bool,
    /// The store of a recorder: a file, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "FILE|URL", env = "BIPLANE_RECORDER", hide_env_values = true)]
    store: String,
    #[command(flatten)]
    listening: Listening,
}

impl Pages {
    /// Serves until the process is interrupted or terminated.
    pub(super) fn run(&self) -> Result<()> {
        self.listening.check()?;
        if self.listening.listen.is_empty() {
            bail!("pages need an address: --listen");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime")?;
        let served = runtime.block_on(async {
            let stop =
                signals::first_of(signals::of_servers()).context("cannot listen for signals")?;
            let metrics = Metrics::default();
            let beside = Beside {
                extra: Arc::new(move |path: &str| match path {
                    "/metrics" => Some(text_of(&metrics)),
                    "/healthz" | "/readyz" => Some(probe(Ok(()))),
                    _ => None,
                }),
                trouble: Arc::new(|| None),
            };
            let server = self.listening.serve(&self.store, beside).await?;
            let address = server.as_ref().map(|server| server.address().to_string());
            let store = Location::parse(&self.store);
            tracing::info!(address = address.unwrap_or_default(), %store, "Pages listening");
            stop.await;
            Ok(())
        });
        runtime.shutdown_background();
        served
    }
}
