//! `inspector export`: prints runs as lines of the sidecar, or as spans.

use anyhow::Result;
use biplane_console::Streams;
use biplane_recorder::Format;
use biplane_recorder::query::archive::{After, Archive, RunFilter};
use biplane_recorder::query::ask::{Named, find};
use biplane_recorder::query::record::{Head, Run};
use biplane_recorder::query::{export, otlp};
use clap::{Args, ValueEnum};

use crate::commands::records::{Source, Times, failed, now};

const EXAMPLES: &str = "\
Examples:
  # All runs of the last hour, as the sidecar prints them
  biplane inspector export --store=recorder.db --since=1h > runs.jsonl

  # One run as OpenTelemetry spans, for a collector that reads files
  biplane inspector export 9822d93d --store=recorder.db --format=otlp > spans.json";

/// Print runs as the sidecar prints them, or as OpenTelemetry spans
///
/// Lines can be imported again. Secrets stay redacted.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The runs; all that are kept if there is none
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The namespace of the owner, and of all runs if none is named
    #[arg(long, short)]
    namespace: Option<String>,
    /// jsonl: the sidecar's lines; text: its blocks of text; otlp: a span for each run and call
    #[arg(long, value_enum, default_value_t = Form::Jsonl, hide_possible_values = true)]
    format: Form,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One line of JSON for each emission.
    Jsonl,
    /// Labels and YAML.
    Text,
    /// Spans, in the JSON form of OTLP.
    Otlp,
}

/// How many runs are read at a time.
const PAGE: usize = 100;

impl Export {
    pub(super) fn run(self, streams: &mut Streams<'_>) -> Result<()> {
        let archive = self.source.archive(streams)?;
        let heads = self.heads(archive.as_ref())?;
        if self.format == Form::Otlp {
            let load = |head: &Head| archive.load(head).map_err(failed);
            let runs: Vec<Run> = heads.iter().map(load).collect::<Result<_>>()?;
            let spans = serde_json::to_string(&otlp::traces(&runs))?;
            writeln!(streams.stdout, "{spans}")?;
            return Ok(streams.stdout.flush()?);
        }
        let format = if self.format == Form::Text { Format::Text } else { Format::Json };
        for head in &heads {
            let run = archive.load(head).map_err(failed)?;
            for line in export::emissions(&run, format) {
                streams.stdout.write_all(line.as_bytes())?;
            }
        }
        Ok(streams.stdout.flush()?)
    }

    /// The runs, the oldest first.
    fn heads(&self, archive: &dyn Archive) -> Result<Vec<Head>> {
        let (since, until) = self.times.range()?;
        if !self.runs.is_empty() {
            let one = |address: &String| {
                let (address, namespace) = (address.clone(), self.namespace.clone());
                find(archive, &Named { address, namespace }, now()).map(|found| found.head)
            };
            return self.runs.iter().map(|run| one(run).map_err(failed)).collect();
        }
        let namespace = self.namespace.clone();
        let filter = RunFilter { namespace, since, until, ..RunFilter::default() };
        let mut heads: Vec<Head> = Vec::new();
        loop {
            let after = heads.last();
            let after = after.map(|h| After { at: h.started.as_microsecond(), key: h.key });
            let page = archive.runs(&filter, PAGE, after).map_err(failed)?;
            let is_last = page.len() < PAGE;
            heads.extend(page);
            if is_last {
                heads.reverse();
                return Ok(heads);
            }
        }
    }
}
