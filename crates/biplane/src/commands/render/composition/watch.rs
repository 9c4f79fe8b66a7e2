//! Watching: renders again whenever one of the files changes that a render is made from.
//!
//! Files are looked at a few times a second rather than watched by the operating system: there are
//! only a handful, and looking works on every file system, network and container mounts included,
//! and whichever way an editor replaces a file.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use tokio::runtime::Runtime;
use tokio::sync::watch::Receiver;

use super::super::functions;
use super::super::interrupt::{self, Interrupted};
use super::super::load::Loader;
use super::super::project;
use super::super::runners::Runners;
use super::super::runtime::Function;
use super::super::{asynchronous, print};
use super::CompositionRender;
use crate::cli::{self, Exit, values};
use crate::streams::Streams;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// What tells one state of a file from another: time, size and inode.
type Stamp = Option<(SystemTime, u64, u64)>;
type Stamps = BTreeMap<PathBuf, Stamp>;

/// Functions that stay up between renders, and what they were started from.
struct Started {
    from: (Vec<Function>, Vec<String>, Stamps),
    runners: Runners,
}

impl CompositionRender {
    /// Renders and prints, now and after every change, until someone asks to stop.
    pub(super) fn watch(&self, streams: &mut Streams<'_>) -> Result<()> {
        let stopped = || Exit { code: cli::INTERRUPTED, text: String::new() };
        let runtime = asynchronous(true)?;
        let mut interrupted = runtime.block_on(async { interrupt::listen() })?;
        let mut started = None;
        let mut stamps = self.stamps();
        loop {
            match self.render_again(&runtime, &mut started, &interrupted, streams) {
                Ok(documents) => {
                    print::write(&documents, self.output.output_format, streams.stdout)?;
                }
                Err(error) if error.is::<Interrupted>() => return Err(stopped().into()),
                Err(error) => streams.say(&cli::error_text(&error)),
            }
            let Some(now) = runtime.block_on(self.change(&stamps, &mut interrupted)) else {
                return Err(stopped().into());
            };
            let time = jiff::Timestamp::now().strftime("%H:%M:%SZ");
            streams.say(&format!("--- {time} changed: {}", changed(&stamps, &now)));
            stamps = now;
        }
    }

    fn render_again(
        &self,
        runtime: &Runtime,
        started: &mut Option<Started>,
        interrupted: &Receiver<bool>,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<biplane_model::Value>> {
        let (inputs, composites) = self.load(&mut Loader::new(streams))?;
        let mut files = flat(self.function_file().unwrap_or(&self.function.project_file));
        files.extend(self.sources());
        let from = (inputs.functions.clone(), functions::used(&inputs.pipelines()), stamps(files));
        if started.as_ref().is_none_or(|started| started.from != from) {
            // The old ones go first, since the new ones may want their place.
            if let Some(old) = started.take() {
                runtime.block_on(old.runners.end());
            }
            let mut runners = runtime.block_on(self.start(&inputs, streams))?;
            runners.interrupted = Some(interrupted.clone());
            // Later renders do not wait for the start.
            runners.spent = Duration::ZERO;
            *started = Some(Started { from, runners });
        }
        let Some(Started { runners, .. }) = started else { return Ok(Vec::new()) };
        self.render_each(runtime, &inputs, &composites, runners, streams)
    }

    /// The state of the files after a change, once it is over; none if someone asks to stop.
    async fn change(&self, before: &Stamps, interrupted: &mut Receiver<bool>) -> Option<Stamps> {
        let mut last = before.clone();
        loop {
            tokio::select! {
                _ = interrupted.wait_for(|interrupted| *interrupted) => return None,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = self.stamps();
            if now == last && now != *before {
                return Some(now);
            }
            last = now;
        }
    }

    fn stamps(&self) -> Stamps {
        let mut files: Vec<PathBuf> = self.paths().iter().flat_map(|path| flat(path)).collect();
        files.extend(self.sources());
        for directory in self.required_schemas.iter().chain(&self.compositions) {
            below(directory, &mut files);
        }
        stamps(files)
    }

    /// Everything that is read but for what is read with everything below it.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = vec![self.composite_resource.clone()];
        let optional = [
            &self.composition,
            &self.functions,
            &self.function.function_credentials,
            &self.observed_resources,
            &self.xrs,
            &self.engine.crossplane_binary,
        ];
        paths.extend(optional.into_iter().flatten().cloned());
        paths.extend(self.xrd.iter().cloned());
        paths.extend(values::paths(&self.function.required_resources));
        paths.extend(values::paths(&self.extra_resources));
        let context = self.function.context_files();
        paths.extend(context.values().map(PathBuf::from));
        if self.function_file().is_none() {
            paths.push(self.function.project_file.clone());
        }
        paths
    }

    /// What the functions of a project are made of.
    fn sources(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if self.function_file().is_none() {
            for path in project::sources(&self.function.project_file) {
                visible(&path, &mut files);
            }
        }
        files
    }

    fn function_file(&self) -> Option<&Path> {
        self.files().ok().and_then(|(_, functions)| functions)
    }
}

/// A file, or the files right in a directory and the directory itself.
fn flat(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(path.to_owned());
    files
}

/// A file, or everything below a directory but for what links lead to.
fn below(path: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
    files.push(path.to_owned());
}

/// Everything below a directory that people look at: not what tools keep there, which may be much.
fn visible(path: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden => visible(&entry.path(), files),
            Ok(kind) if !kind.is_dir() => files.push(entry.path()),
            _ => {}
        }
    }
}

fn stamps(files: Vec<PathBuf>) -> Stamps {
    let stamp = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file);
        let stamp = metadata.and_then(|m| Some((m.modified().ok()?, m.len(), m.ino())));
        (path, stamp)
    };
    files.into_iter().map(stamp).collect()
}

/// The names of the files that differ.
fn changed(before: &Stamps, after: &Stamps) -> String {
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let differs = |(path, stamp): &(&PathBuf, &Stamp)| before.get(*path) != Some(*stamp);
    let mut paths: Vec<_> =
        after.iter().filter(differs).map(|(path, _)| path).chain(gone).collect();
    paths.sort();
    let here = std::env::current_dir().unwrap_or_default();
    let name = |path: &&PathBuf| path.strip_prefix(&here).unwrap_or(path).display().to_string();
    paths.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_directories_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("apis")).unwrap();
        std::fs::write(root.join("apis/a.yaml"), "").unwrap();
        std::os::unix::fs::symlink("..", root.join("apis/up")).unwrap();
        std::os::unix::fs::symlink("a.yaml", root.join("apis/b.yaml")).unwrap();
        let mut files = Vec::new();
        below(root, &mut files);
        let below: std::collections::BTreeSet<_> =
            files.iter().map(|file| file.strip_prefix(root).unwrap()).collect();
        let want = ["", "apis", "apis/a.yaml", "apis/b.yaml", "apis/up"].map(Path::new);
        assert_eq!(below, want.into());
    }
}
