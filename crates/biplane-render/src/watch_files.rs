//! Watching: renders again whenever one of the files changes that a render is made from.
//!
//! Files are looked at a few times a second rather than watched by the operating system: there are
//! only a handful, and looking works on every file system, network and container mounts included,
//! and whichever way an editor replaces a file.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use biplane_model::Value;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::flags::{FunctionFlags, OutputFormat};
use super::interrupt::{Interrupted, Interrupts};
use super::up::Up;
use super::{asynchronous, print, project};
use crate::cli::{self, Exit, USAGE_ERROR, values};
use crate::streams::Streams;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Folders in the source of a function that its tools write to.
const WRITTEN_BY_TOOLS: &[&str] = &["__pycache__", "node_modules", "target"];

/// What tells one state of a file from another: time, size and inode.
pub(super) type Stamp = Option<(SystemTime, u64, u64)>;
pub(super) type Stamps = BTreeMap<PathBuf, Stamp>;

/// A command that can do its work again.
pub(super) trait Again {
    /// What is read.
    fn sources(&self) -> Sources;

    /// Reads everything and renders, with functions that may still be up.
    fn render_again(&self, up: &mut Up<'_>, streams: &mut Streams<'_>) -> Result<Vec<Value>>;

    fn output_format(&self) -> OutputFormat;
}

/// The files that a render is made from.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Files, and folders of which the files right in them are read.
    pub flat: Vec<PathBuf>,
    /// Folders that are read with everything below them.
    pub deep: Vec<PathBuf>,
    /// The project, if functions are taken from one.
    pub project: Option<PathBuf>,
}

impl Sources {
    /// What the flags about functions name.
    pub(super) fn of(flags: &FunctionFlags, function_file: Option<&Path>) -> Self {
        let mut flat: Vec<_> = function_file.into_iter().map(Path::to_owned).collect();
        flat.extend(flags.function_credentials.clone());
        flat.extend(values::paths(&flags.required_resources));
        let context = flags.context_files();
        flat.extend(context.values().map(|file| values::at_home(file)));
        let project = function_file.is_none().then(|| flags.project_file.clone());
        Self { flat, deep: Vec::new(), project }
    }

    /// Refuses what can be read only once.
    pub(super) fn check(&self) -> Result<(), Exit> {
        let text = "--watch can't be used with standard input".to_owned();
        if self.flat.iter().any(|path| path == Path::new(values::STDIN)) {
            return Err(Exit { code: USAGE_ERROR, text });
        }
        Ok(())
    }

    fn stamps(&self) -> Stamps {
        let mut files: Vec<PathBuf> = self.flat.iter().flat_map(|path| flat(path)).collect();
        for directory in &self.deep {
            below(directory, &mut files);
        }
        if let Some(project) = &self.project {
            files.push(project.clone());
            for folder in project::sources(project) {
                source_files(&folder, &mut files);
            }
        }
        stamps(files)
    }
}

/// Renders and prints, now and after every change, until someone asks to stop.
pub(super) fn watch(command: &dyn Again, streams: &mut Streams<'_>) -> Result<()> {
    let stopped = || Exit { code: cli::INTERRUPTED, text: String::new() };
    let runtime = asynchronous(true)?;
    let interrupted = Interrupts::listen(&streams.progress, true)?;
    let mut up = Up::new(&runtime, interrupted.clone());
    let mut stamps = command.sources().stamps();
    loop {
        match command.render_again(&mut up, streams) {
            Ok(documents) => {
                let write = || print::write(&documents, command.output_format(), streams.stdout);
                up.while_stuck(write)?;
            }
            Err(error) if error.is::<Interrupted>() => return Err(stopped().into()),
            Err(error) => streams.say(&cli::error_text(&error)),
        }
        let now = match runtime.block_on(change(command, &stamps, &interrupted)) {
            Next::Changed(now) => now,
            Next::Interrupted => return Err(stopped().into()),
            Next::Unread => return Ok(()),
        };
        let time = jiff::Timestamp::now().strftime("%H:%M:%SZ");
        streams.say(&format!("--- {time} changed: {}", changed(&stamps, &now)));
        stamps = now;
    }
}

/// What comes after a render.
enum Next {
    /// The state of the files after a change, once it is over.
    Changed(Stamps),
    /// Someone asks to stop.
    Interrupted,
    /// Whoever read what is printed has seen enough.
    Unread,
}

async fn change(command: &dyn Again, before: &Stamps, interrupted: &Interrupts) -> Next {
    let mut last = before.clone();
    loop {
        tokio::select! {
            () = interrupted.requested() => return Next::Interrupted,
            () = tokio::time::sleep(LOOK) => {}
        }
        if is_unread(std::io::stdout()) {
            return Next::Unread;
        }
        let now = command.sources().stamps();
        if now == last && now != *before {
            return Next::Changed(now);
        }
        last = now;
    }
}

/// Whether nobody is left to read what is written somewhere. The system tells without being asked for
/// anything in particular.
fn is_unread(out: impl AsFd) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::empty())];
    let told = poll(&mut asked, PollTimeout::ZERO);
    told.is_ok_and(|count| count > 0)
}

/// The files that a project's functions are made of, without what tools write while they are built
/// and run.
pub(super) fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || WRITTEN_BY_TOOLS.contains(&name.as_ref()) {
            continue;
        }
        // A link to a folder may lead anywhere, even back.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => source_files(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// A file, or the files right in a directory and the directory itself.
pub(super) fn flat(path: &Path) -> Vec<PathBuf> {
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

pub(super) fn stamps(files: Vec<PathBuf>) -> Stamps {
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
    fn what_nobody_reads_any_more_is_told_from_what_nobody_has_read() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!is_unread(&writer));
        drop(reader);
        assert!(is_unread(&writer));
        assert!(!is_unread(tempfile::tempfile().unwrap()));
        assert!(!is_unread(std::fs::File::open("/dev/null").unwrap()));
    }

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
