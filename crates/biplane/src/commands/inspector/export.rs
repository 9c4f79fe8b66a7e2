//! `inspector export`: takes runs elsewhere: as lines, spans, files for `render`, or a document.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use biplane_console::Streams;
use biplane_recorder::Format;
use biplane_recorder::query::archive::{Archive, RunFilter, all_runs};
use biplane_recorder::query::ask::{Named, find};
use biplane_recorder::query::case::{Case, case};
use biplane_recorder::query::record::{Head, Run};
use biplane_recorder::query::{export, otlp, report};
use clap::{Args, ValueEnum};

use super::replay::in_box;
use crate::commands::records::{Source, Times, failed, now, usage};
use crate::environment::Environment;
use crate::values;

const EXAMPLES: &str = "\
Examples:
  # All runs of the last hour, as the sidecar prints them
  biplane inspector export --store=recorder.db --since=1h > runs.jsonl

  # One run as OpenTelemetry spans, for a collector that reads files
  biplane inspector export 9822d93d --store=recorder.db --as=otlp > spans.json

  # One run as files that render takes
  biplane inspector export 9822d93d --store=recorder.db --as=case -d case
  cd case && biplane render xr.yaml composition.yaml functions.yaml --observed-resources=observed.yaml

  # One run as a page to send to somebody, and as text for an issue
  biplane inspector export 9822d93d --store=recorder.db --as=html > run.html
  biplane inspector export 9822d93d --store=recorder.db --as=md";

/// Take runs elsewhere: as lines, spans, files for render, or a document
///
/// Lines can be imported again. Secrets stay redacted in all forms.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// The runs; all that are kept if there is none
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The namespace of the owner, and of all runs if none is named
    #[arg(long, short)]
    namespace: Option<String>,
    /// jsonl: the sidecar's lines; text: its blocks of text; otlp: a span for each run and call; case:
    /// files for render; html: a page without scripts; md: Markdown for an issue
    #[arg(long = "as", visible_alias = "format", value_name = "FORM", value_enum,
        default_value_t = Form::Jsonl, hide_possible_values = true)]
    form: Form,
    /// The folder for the files of a case, which is made
    #[arg(long, short, value_name = "DIR", value_parser = values::path)]
    directory: Option<PathBuf>,
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
    /// Files for `render`.
    Case,
    /// A page.
    Html,
    /// Markdown.
    Md,
}

impl Export {
    pub(super) fn run(self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        if self.directory.is_some() != (self.form == Form::Case) {
            return Err(usage("--as=case needs the folder of its files with --directory").into());
        }
        let archive = self.source.archive(streams)?;
        match self.form {
            Form::Case => self.case(archive.as_ref(), environment, streams),
            Form::Html | Form::Md => {
                let report =
                    report::report(archive.as_ref(), &self.only()?, now()).map_err(failed)?;
                let text = if self.form == Form::Html {
                    biplane_pages::single::page(&report)
                } else {
                    report::markdown(&report)
                };
                streams.stdout.write_all(text.as_bytes())?;
                Ok(streams.stdout.flush()?)
            }
            Form::Otlp => {
                let heads = self.heads(archive.as_ref())?;
                let load = |head: &Head| archive.load(head).map_err(failed);
                let runs: Vec<Run> = heads.iter().map(load).collect::<Result<_>>()?;
                let spans = serde_json::to_string(&otlp::traces(&runs))?;
                writeln!(streams.stdout, "{spans}")?;
                Ok(streams.stdout.flush()?)
            }
            Form::Jsonl | Form::Text => {
                let format = if self.form == Form::Text { Format::Text } else { Format::Json };
                for head in &self.heads(archive.as_ref())? {
                    let run = archive.load(head).map_err(failed)?;
                    for line in export::emissions(&run, format) {
                        streams.stdout.write_all(line.as_bytes())?;
                    }
                }
                Ok(streams.stdout.flush()?)
            }
        }
    }

    /// The only run that is named.
    fn only(&self) -> Result<Named> {
        match self.runs.as_slice() {
            [run] => Ok(self.named(run)),
            _ => Err(usage("name the one run that this form is about").into()),
        }
    }

    fn named(&self, run: &str) -> Named {
        Named { address: run.to_owned(), namespace: self.namespace.clone() }
    }

    /// Writes the files of a case, and says how to use them.
    fn case(
        &self,
        archive: &dyn Archive,
        environment: &Environment,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        let head = find(archive, &self.only()?, now()).map_err(failed)?.head;
        let run = archive.load(&head).map_err(failed)?;
        let registry = biplane_functions::registry().and(&environment.own);
        let made = case(&run, &|name: &str| in_box(name, &registry)).map_err(failed)?;
        write(&self.directory.clone().unwrap_or_default(), &made)?;
        let (count, words) = (made.files.len(), made.shell_words().join(" "));
        writeln!(streams.stdout, "Wrote {count} files. In their folder, render them with:")?;
        writeln!(streams.stdout, "  biplane {words}")?;
        for note in &made.notes {
            writeln!(streams.stdout, "- {note}")?;
        }
        Ok(streams.stdout.flush()?)
    }

    /// The runs, the oldest first.
    fn heads(&self, archive: &dyn Archive) -> Result<Vec<Head>> {
        let (since, until) = self.times.range()?;
        if !self.runs.is_empty() {
            let one = |run: &String| find(archive, &self.named(run), now()).map(|found| found.head);
            return self.runs.iter().map(|run| one(run).map_err(failed)).collect();
        }
        let namespace = self.namespace.clone();
        let filter = RunFilter { namespace, since, until, ..RunFilter::default() };
        let mut heads = all_runs(archive, &filter).map_err(failed)?;
        heads.reverse();
        Ok(heads)
    }
}

/// Writes files into a folder that is new or empty, so that nothing is replaced.
fn write(folder: &Path, made: &Case) -> Result<()> {
    let attempted = || format!("cannot write to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(attempted)?;
    if std::fs::read_dir(folder).with_context(attempted)?.next().is_some() {
        return Err(usage(&format!("the folder {} is not empty", folder.display())).into());
    }
    for (name, text) in &made.files {
        std::fs::write(folder.join(name), text).with_context(attempted)?;
    }
    Ok(())
}
