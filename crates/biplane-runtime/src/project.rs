//! Finds the functions of a project: its dependencies, and functions whose source is in the
//! project.

mod embedded;
mod file;
mod rewrites;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use biplane_console::{Deadline, Streams};
use biplane_go::fmt::quote;
use biplane_package::reference::{dns_label, repository_path};
use biplane_package::{Range, TagCache, Tags, registry, versions};
use jiff::Timestamp;

use crate::build_spec::NotBuilt;
use crate::function::Function;
use crate::options::Options;
use file::{Listed, Package, Project};

/// The functions of a project that a pipeline calls. Others are neither resolved nor built.
pub fn functions(
    called: &[String],
    options: &Options,
    deadline: Deadline,
    streams: &mut Streams<'_>,
) -> Result<Vec<Function>> {
    let path = options.project_file.as_path();
    let file = quote(&path.display().to_string());
    streams
        .debug("Loading functions from project", &[("project-file", &path.display().to_string())]);
    let project =
        Project::read(path).with_context(|| format!("cannot parse project file {file}"))?;
    let root = path.parent().unwrap_or(Path::new("/"));
    let mut notes = Vec::new();
    let resolved = spinner("Resolving function dependencies", streams, || {
        dependencies(&project, called, options, deadline, &mut notes)
    });
    for note in notes {
        note.say(streams);
    }
    let mut functions = resolved.context("cannot load project functions")?;
    for function in &functions {
        let fields = [("function", function.name.as_str()), ("package", &function.package)];
        streams.debug("Resolved function dependency", &fields);
    }
    functions.extend(
        embedded::functions(&project, root, called, options.allow_process, deadline)
            .context(NotBuilt)?,
    );
    Ok(functions)
}

/// The paths of the project's functions and of the files they are built from, as far as the project
/// can be read.
pub fn sources(path: &Path) -> Vec<PathBuf> {
    let root = path.parent().unwrap_or(Path::new("/"));
    let Ok(project) = Project::read(path) else { return Vec::new() };
    let mut sources = vec![root.join(&project.functions_path), root.join(&project.schemas_path)];
    let prefixes = project.listed.iter().flatten().filter_map(Listed::prefix);
    sources.extend(prefixes.filter_map(|prefix| Some(root.join(prefix).parent()?.to_owned())));
    sources
}

/// A notice that cached versions of a repository were used.
struct CacheNotice {
    repository: String,
    asked: Timestamp,
    /// The error, if the cached versions are old.
    stale: Option<Error>,
}

impl CacheNotice {
    fn say(self, streams: &mut Streams<'_>) {
        let (repository, asked) = (&self.repository, self.asked.strftime("%Y-%m-%dT%H:%M:%SZ"));
        match self.stale {
            Some(error) => streams.say(&format!(
                "biplane: warning: cannot list versions for {repository}: {error:#}; those of {asked} are used"
            )),
            None => streams.debug(
                "Versions are known from before",
                &[("asked", &asked.to_string()), ("repository", repository)],
            ),
        }
    }
}

fn dependencies(
    project: &Project,
    called: &[String],
    options: &Options,
    deadline: Deadline,
    notes: &mut Vec<CacheNotice>,
) -> Result<Vec<Function>> {
    let mut functions: Vec<Function> = Vec::new();
    // By index among the functions.
    let mut ranges: BTreeMap<usize, (&Package, Range, String)> = BTreeMap::new();
    for package in &project.packages {
        let name = dns_label(repository_path(&package.repository));
        if !called.contains(&name) {
            continue;
        }
        let mut function =
            Function { name, package: package.repository.clone(), ..Function::default() };
        if let Some(other) = functions.iter().find(|other| other.name == function.name) {
            bail!(
                "packages {} and {} both give Function {}",
                quote(&other.package),
                quote(&function.package),
                quote(&function.name)
            );
        }
        // A function that runs in process does so at any version, so that no registry is queried.
        let in_process = function.upstream_name().is_some_and(|name| options.in_box(name));
        if !options.builtin || !in_process {
            match reference(package) {
                Reference::Exact(reference) => function.package = reference,
                Reference::Range(range) => {
                    let at = rewrites::rewrite(&project.rewrites, &package.repository)?;
                    ranges.insert(functions.len(), (package, range, at));
                }
            }
        }
        functions.push(function);
    }
    let client = registry::Client {
        cache: TagCache::at(options.cache_dir.as_deref()),
        auth_file: options.docker.auth_file.clone(),
        max_concurrency: options.max_concurrency,
    };
    let wanted: BTreeMap<_, _> =
        ranges.values().map(|(_, range, at)| (at.as_str(), range)).collect();
    let mut known = registry::tags(&client, &wanted, deadline.remaining())?;
    for (place, (package, range, at)) in &ranges {
        let Package { repository, version } = package;
        let newest = match known.remove(at) {
            Some(known) => newest(repository, version, range, known, notes),
            None => Err(anyhow!("nobody was asked")),
        };
        let newest = newest.with_context(|| {
            format!("cannot resolve function dependency {repository}:{version}")
        })?;
        if let Some(function) = functions.get_mut(*place) {
            function.package = format!("{repository}:{newest}");
        }
    }
    Ok(functions)
}

/// The newest version in a range.
fn newest(
    repository: &str,
    version: &str,
    range: &Range,
    known: Tags,
    notes: &mut Vec<CacheNotice>,
) -> Result<String> {
    if let Some(asked) = known.asked {
        notes.push(CacheNotice { repository: repository.to_owned(), asked, stale: known.stale });
    }
    let tags = known.tags.with_context(|| format!("cannot list versions for {repository}"))?;
    versions::newest(&tags, range)
        .map(ToOwned::to_owned)
        .ok_or_else(|| anyhow!("cannot find version to satisfy constraint {version}"))
}

/// A resolved package, or one that must be looked up in its registry.
enum Reference {
    Exact(String),
    Range(Range),
}

/// A version that is not a range is used literally.
fn reference(package: &Package) -> Reference {
    let Package { repository, version } = package;
    if versions::is_digest(version) {
        return Reference::Exact(format!("{repository}@{version}"));
    }
    match Range::parse(version).filter(|_| !versions::is_exact(version)) {
        None => Reference::Exact(format!("{repository}:{version}")),
        Some(range) => Reference::Range(range),
    }
}

/// Shows a task and its result.
fn spinner<T>(
    message: &str,
    streams: &mut Streams<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    // On a terminal, the progress line replaces the first line.
    if !streams.progress.is_on() {
        streams.say(&format!("{message}..."));
    }
    let waiting = streams.progress.wait(|| message.to_owned());
    let done = work();
    drop(waiting);
    let mark = if done.is_ok() { '✓' } else { '✗' };
    streams.say(&format!("{mark} {message}"));
    done
}
