//! Internal commands for other programs: the render engine as a process and as a server.

mod serve;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use biplane_engine::FixedClock;
use biplane_engine::render::{self, RenderError, Settings};
use biplane_proto::render::v1alpha1::RenderRequest;
use biplane_runner::Connections;
use clap::{Args, Subcommand};
use prost::Message;

use biplane_console::Streams;

use crate::exit::Exit;
use crate::values;
use biplane_console::Log;

/// The exit code when a function ended the pipeline. Stdout then holds the partial response.
const FATAL: u8 = 3;

/// Commands for other programs.
#[derive(Debug, Subcommand)]
pub enum Internal {
    /// Read a RenderRequest from stdin, run one reconcile, write a RenderResponse to stdout
    Render(Render),
    /// Answer RenderRequests over gRPC until told to stop
    Serve(serve::Serve),
}

impl Internal {
    /// The log settings of the command. A server always logs renders that panicked.
    pub fn log(&self, verbose: bool) -> Log {
        match self {
            Self::Render(render) => Log::when_asked(verbose || render.common.debug),
            Self::Serve(serve) => serve.log(verbose),
        }
    }

    /// Runs the command.
    pub fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        match self {
            Self::Render(render) => render.run(streams),
            Self::Serve(serve) => serve.run(streams),
        }
    }
}

/// Flags of every render.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// How long a render may take
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = values::duration)]
    timeout: Duration,
    /// Render as if it were this time (RFC 3339) instead of the time of day
    #[arg(long, value_name = "TIME")]
    time: Option<jiff::Timestamp>,
    /// Log what is being done
    #[arg(short, long)]
    debug: bool,
}

impl Common {
    fn settings(&self) -> Settings {
        let mut settings = Settings { timeout: self.timeout, ..Settings::default() };
        if let Some(time) = self.time {
            settings.clock = Arc::new(FixedClock(time));
        }
        settings
    }
}

/// Renders one request.
#[derive(Debug, Args)]
pub struct Render {
    #[command(flatten)]
    common: Common,
}

impl Render {
    fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let mut data = Vec::new();
        let read = streams.stdin.read_to_end(&mut data);
        read.context("cannot read render request from stdin")?;
        streams.debug("read render request", &[("bytes", &data.len().to_string())]);
        let request =
            RenderRequest::decode(data.as_slice()).context("cannot unmarshal render request")?;
        // One request needs one thread, and starting more would take longer than the request.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let settings = self.common.settings();
        let functions = render::connect(&request, &Connections::default())
            .context("cannot connect to functions")
            .context(render::attempted(&request))?;
        let rendered = runtime.block_on(render::render(request, Arc::new(functions), &settings));
        let (response, fatal) = match rendered {
            Ok(response) => (response, None),
            Err(RenderError::Fatal { text, partial, .. }) => (*partial, Some(text)),
            Err(error) => return Err(error.into()),
        };
        let written = streams
            .stdout
            .write_all(&response.encode_to_vec())
            .and_then(|()| streams.stdout.flush());
        match (written, fatal) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(text)) => Err(Exit { code: FATAL, text }.into()),
            (Err(error), None) => Err(error).context("cannot write render response"),
            (Err(error), Some(text)) => {
                Err(anyhow!("[cannot write render response: {error}, {text}]"))
            }
        }
    }
}
