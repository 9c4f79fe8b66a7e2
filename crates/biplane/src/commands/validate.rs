//! `validate`: checks resources against the schemas of definitions and packages.

mod cluster;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use biplane_console::{Deadline, Streams};
use biplane_go::fmt::quote;
use biplane_package::contents::{self, Contents};
use biplane_package::registry::{self, Client};
use biplane_package::{Range, TagCache};
use biplane_validate::{Cache, Packages, Registry, Sources, advice, print, sources};
use clap::Args;

use crate::environment::Environment;
use crate::values::{self, Locations};

const EXAMPLES: &str = "\
Examples:
  # Resources against the definitions and packages of a folder
  biplane validate extensions/ resources.yaml

  # What render makes of a composite resource
  biplane render xr.yaml composition.yaml functions.yaml -x | biplane validate extensions/ -

  # For a pipeline: only what is wrong, and a kind without a schema is wrong too
  biplane validate extensions/ resources/ --skip-success-results --error-on-missing-schemas

  # As data
  biplane validate extensions/ resources/ -o json";

/// Check resources against the schemas of definitions and packages
///
/// EXTENSIONS are CRDs, XRDs, and the Providers, Functions and Configurations whose packages have more of
/// them. RESOURCES are what is checked: composite resources, claims, composed resources, Compositions and
/// the inputs of their functions. Both are files, folders, or `-` for standard input, several with commas
/// between. Kinds of Kubernetes itself need no schema.
///
/// Each resource gets its defaults, and is then checked as an API server does: types and values, unknown
/// fields, and rules. Packages are looked up in the cache, and downloaded if they are not there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)] // flags
pub struct Validate {
    /// Where schemas come from
    #[arg(value_name = "EXTENSIONS")]
    extensions: String,
    /// What is checked
    #[arg(value_name = "RESOURCES")]
    resources: String,
    /// The folder with the schemas of packages
    #[arg(long, value_name = "DIR", default_value = "~/.crossplane/cache")]
    cache_dir: String,
    /// Empty the cache first
    #[arg(long)]
    clean_cache: bool,
    /// The image with the schemas of Crossplane's own kinds; empty for none
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "xpkg.crossplane.io/crossplane/crossplane:stable"
    )]
    crossplane_image: String,
    /// Fail if there is no schema for a resource
    #[arg(long)]
    error_on_missing_schemas: bool,
    /// Output format: text, json or yaml
    #[arg(long, short, value_name = "FORMAT", default_value = "text", value_parser = output)]
    output: Output,
    /// Do not print what is valid; text only
    #[arg(long)]
    skip_success_results: bool,
    /// Download packages even if they are in the cache
    #[arg(long)]
    update_cache: bool,
    /// When to show on stderr where in the files errors are: always, never, or by default if it is a terminal
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Locations::Auto, hide_possible_values = true)]
    locations: Locations,
    /// How long to run before timing out, everything included
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    timeout: Duration,
    #[command(flatten)]
    cluster: cluster::ClusterFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Text,
    Json,
    Yaml,
}

fn output(text: &str) -> Result<Output, String> {
    match text {
        "text" => Ok(Output::Text),
        "json" => Ok(Output::Json),
        "yaml" => Ok(Output::Yaml),
        other => Err(format!("unknown output format: {}", quote(other))),
    }
}

impl Validate {
    /// Checks everything, prints what was found, and fails if something is wrong.
    pub fn run(&self, environment: &Environment, streams: &mut Streams<'_>) -> Result<()> {
        if self.extensions == sources::STDIN && self.resources == sources::STDIN {
            bail!("cannot use stdin for both extensions and resources");
        }
        let deadline = Deadline::after(self.timeout);
        let mut files = Sources::new(streams, deadline);
        let given = files
            .read(&self.extensions)
            .with_context(|| format!("cannot load extensions from {}", quote(&self.extensions)))?;
        let resources = files
            .read(&self.resources)
            .with_context(|| format!("cannot load resources from {}", quote(&self.resources)))?;
        let packages = Packages {
            cache: Cache { folder: self.cache_folder(), update: self.update_cache },
            clean: self.clean_cache,
            crossplane: &self.crossplane_image,
        };
        let mut remote = Remote {
            announced: Vec::new(),
            auth_file: environment.docker.auth_file.clone(),
            deadline,
        };
        let found = biplane_validate::schemas(&given, &packages, &mut remote);
        announce(&remote.announced, found.is_err(), streams)?;
        let mut extensions = found?;
        self.cluster.add(&mut extensions.crds, deadline)?;
        let report = biplane_validate::validate(&resources, &extensions)?;
        let printed = match self.output {
            Output::Text => print::text(&report, self.skip_success_results),
            Output::Json => print::json(&report),
            Output::Yaml => print::yaml(&report),
        };
        streams
            .stdout
            .write_all(printed.as_bytes())
            .and_then(|()| streams.stdout.flush())
            .context("cannot render validation result")?;
        if self.locations.wanted().unwrap_or_else(|| streams.stderr.is_terminal()) {
            for line in biplane_validate::places::of(&resources, &report) {
                streams.say(&line);
            }
            let advice = advice::of_definitions(&given);
            for warning in advice.into_iter().chain(advice::of(&resources, &extensions)) {
                streams.say(&format!("biplane: warning: {warning}"));
            }
        }
        match report.failure(self.error_on_missing_schemas) {
            Some(failure) => bail!(failure),
            None => Ok(()),
        }
    }

    /// The folder as given. Only a leading `~/` is replaced.
    fn cache_folder(&self) -> PathBuf {
        values::at_home(&self.cache_dir)
    }
}

/// Tells of downloads. Upstream does so on standard output, which breaks whatever reads JSON there:
/// only if nothing else is printed there, they are told as upstream tells them.
fn announce(lines: &[String], failed: bool, streams: &mut Streams<'_>) -> Result<()> {
    for line in lines {
        if failed {
            writeln!(streams.stdout, "{line}").context("cannot write")?;
        } else {
            streams.say(line);
        }
    }
    Ok(())
}

/// The registries, and what was downloaded from them.
struct Remote {
    announced: Vec<String>,
    auth_file: Option<PathBuf>,
    deadline: Deadline,
}

impl Registry for Remote {
    fn announce(&mut self, line: &str) {
        self.announced.push(line.to_owned());
    }

    fn download(&mut self, image: &str) -> Result<Contents> {
        contents::download(image, self.auth_file.as_deref(), self.deadline.remaining())
    }

    fn tags(&mut self, repository: &str) -> Result<Vec<String>> {
        let client = Client {
            cache: TagCache::at(None),
            auth_file: self.auth_file.clone(),
            max_concurrency: 1,
        };
        let Some(any) = Range::parse("*") else { bail!("cannot list tags") };
        let asked = [(repository, &any)].into();
        let mut known = registry::tags(&client, &asked, self.deadline.remaining())?;
        let Some(answer) = known.remove(repository) else { bail!("the registry did not answer") };
        answer.tags
    }
}
