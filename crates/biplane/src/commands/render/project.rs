//! The functions of a project: those it depends on, and those whose source is in it.

mod cache;
mod embedded;
mod file;
mod registry;
mod rewrites;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, bail};
use biplane_go::fmt::quote;
use jiff::Timestamp;

use super::build::NotBuilt;
use super::flags::FunctionFlags;
use super::runtime::Function;
use crate::streams::Streams;
use cache::Cache;
use file::{Listed, Package, Project};
use registry::Known;
use versions::Range;

/// The functions of a project that a pipeline uses. Nothing else of the project is looked at: what
/// is not used is neither resolved nor built.
pub(super) fn functions(
    path: &Path,
    used: &[String],
    flags: &FunctionFlags,
    limit: Duration,
    in_box: impl Fn(&str) -> bool,
    streams: &mut Streams<'_>,
) -> Result<Vec<Function>> {
    let file = quote(&path.display().to_string());
    streams
        .debug("Loading functions from project", &[("project-file", &path.display().to_string())]);
    let project =
        Project::read(path).with_context(|| format!("cannot parse project file {file}"))?;
    let root = path.parent().unwrap_or(Path::new("/"));
    let mut notes = Vec::new();
    let resolved = spinner("Resolving function dependencies", streams, || {
        dependencies(&project, used, flags, limit, in_box, &mut notes)
    });
    for note in notes {
        note.say(streams);
    }
    let mut functions = resolved.context("cannot load project functions")?;
    for function in &functions {
        let fields = [("function", function.name.as_str()), ("package", &function.package)];
        streams.debug("Resolved function dependency", &fields);
    }
    functions.extend(embedded::functions(&project, root, used, flags).context(NotBuilt)?);
    Ok(functions)
}

/// Where the functions of a project and what they are made of are, as far as it can be read.
pub(super) fn sources(path: &Path) -> Vec<PathBuf> {
    let root = path.parent().unwrap_or(Path::new("/"));
    let Ok(project) = Project::read(path) else { return Vec::new() };
    let mut sources = vec![root.join(&project.functions_path), root.join(&project.schemas_path)];
    let prefixes = project.listed.iter().flatten().filter_map(Listed::prefix);
    sources.extend(prefixes.filter_map(|prefix| Some(root.join(prefix).parent()?.to_owned())));
    sources
}

/// Versions of a repository that were not asked for anew.
struct Note {
    repository: String,
    asked: Timestamp,
    /// Why, if they are old.
    stale: Option<Error>,
}

impl Note {
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
    used: &[String],
    flags: &FunctionFlags,
    limit: Duration,
    in_box: impl Fn(&str) -> bool,
    notes: &mut Vec<Note>,
) -> Result<Vec<Function>> {
    let mut functions: Vec<Function> = Vec::new();
    // By place among the functions.
    let mut ranges: BTreeMap<usize, (&Package, Range, String)> = BTreeMap::new();
    for package in &project.packages {
        let name = dns_label(repository_path(&package.repository));
        if !used.contains(&name) {
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
        // A function that runs in process does so at any version, and no registry has to be asked.
        if flags.no_builtin || function.upstream_name().is_none_or(|name| !in_box(name)) {
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
    let cache = Cache::at(flags.cache_dir.as_deref().map(Path::new));
    let wanted: BTreeMap<_, _> =
        ranges.values().map(|(_, range, at)| (at.as_str(), range)).collect();
    let mut known = registry::tags(&wanted, &cache, flags.max_concurrency, limit)?;
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

/// The newest version that a range allows.
fn newest(
    repository: &str,
    version: &str,
    range: &Range,
    known: Known,
    notes: &mut Vec<Note>,
) -> Result<String> {
    if let Some(asked) = known.asked {
        notes.push(Note { repository: repository.to_owned(), asked, stale: known.stale });
    }
    let tags = known.tags.with_context(|| format!("cannot list versions for {repository}"))?;
    versions::newest(&tags, range)
        .map(ToOwned::to_owned)
        .ok_or_else(|| anyhow!("cannot find version to satisfy constraint {version}"))
}

/// The package as a registry knows it, or what it has to be asked for.
enum Reference {
    Exact(String),
    Range(Range),
}

/// What is no range is taken at its word.
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

/// The repository without its registry, which is what has a dot or a port in it.
fn repository_path(repository: &str) -> &str {
    match repository.split_once('/') {
        Some((registry, path)) if registry.contains(['.', ':']) || registry == "localhost" => path,
        _ => repository,
    }
}

/// The name that a package manager gives to what it installs from a repository: lower case letters
/// and digits of at most 63 bytes, with dashes for what separates parts.
fn dns_label(text: &str) -> String {
    let last = text.len().saturating_sub(1);
    let mut label = String::new();
    for (i, byte) in text.bytes().take(63).enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => label.push(char::from(byte)),
            b'.' | b'/' | b':' | b'-' if i != 0 && i != 62 && i != last => label.push('-'),
            _ => {}
        }
    }
    label.trim_matches('-').to_owned()
}

/// Says what is being done, and how it ended.
fn spinner<T>(
    message: &str,
    streams: &mut Streams<'_>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    // On a terminal the line that says what is waited for takes the place of the first.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// RX-5
    #[test]
    fn functions_are_named_after_their_repository() {
        for (repository, want) in [
            (
                "xpkg.crossplane.io/crossplane-contrib/function-auto-ready",
                "crossplane-contrib-function-auto-ready",
            ),
            ("localhost:5000/acme/fn", "acme-fn"),
            ("localhost/acme/fn", "acme-fn"),
            ("acme/fn", "acme-fn"),
            ("fn", "fn"),
            ("example.org/acme/project_compose", "acme-projectcompose"),
            ("example.org/Acme/a.b-", "cme-a-b"),
        ] {
            assert_eq!(dns_label(repository_path(repository)), want, "{repository}");
        }
        let long = "a".repeat(62) + "-" + "b";
        assert_eq!(dns_label(&long), "a".repeat(62));
        assert_eq!(dns_label(&"a".repeat(70)), "a".repeat(63));
    }
}
