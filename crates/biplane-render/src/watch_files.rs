//! Watches the input files of a render and renders again whenever one of them changes.
//!
//! Files are polled a few times a second instead of being watched by the operating system. There
//! are only a few, and polling works on every file system, including network and container mounts,
//! and regardless of how an editor replaces a file.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use biplane_console::error::error_text;
use biplane_console::{Interrupted, Interrupts, Streams};
use biplane_manifest::STDIN;
use biplane_model::Value;
use biplane_runtime::project;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::file_stamps::{Stamp, Stamps, below, flat, source_files, stamps};
use crate::options::{Format, FunctionOptions};
use crate::warm::WarmFunctions;
use crate::{asynchronous, print};

/// How often files are polled.
const LOOK: Duration = Duration::from_millis(200);
/// A render that can be repeated.
pub(crate) trait Repeatable {
    /// The files to watch.
    fn sources(&self) -> Sources;

    /// Reads everything and renders, with functions that may already be running.
    fn render_again(
        &self,
        warm: &mut WarmFunctions<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>>;

    /// How documents are written.
    fn format(&self) -> Format;
}

/// The input files of a render.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Files, and folders whose files are read without subfolders.
    pub flat: Vec<PathBuf>,
    /// Folders that are read recursively.
    pub deep: Vec<PathBuf>,
    /// The project, if functions are taken from one.
    pub project: Option<PathBuf>,
}

impl Sources {
    /// The files named by the options about functions.
    pub(crate) fn of(options: &FunctionOptions, function_file: Option<&Path>) -> Self {
        let mut flat: Vec<_> = function_file.into_iter().map(Path::to_owned).collect();
        flat.extend(options.credentials.clone());
        flat.extend(options.required_resources.iter().cloned());
        flat.extend(options.context_files.values().cloned());
        let deep = options.required_schemas.iter().cloned().collect();
        let project = function_file.is_none().then(|| options.runtime.project_file.clone());
        Self { flat, deep, project }
    }

    /// Whether they include standard input, which can only be read once.
    pub(crate) fn has_stdin(&self) -> bool {
        self.flat.iter().any(|path| path == Path::new(STDIN))
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

/// Why watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The command was interrupted.
    Interrupted,
    /// The reader of stdout has closed the pipe.
    Unread,
}

/// Renders and prints, now and after every change, until the command is interrupted.
pub(crate) fn watch(render: &dyn Repeatable, streams: &mut Streams<'_>) -> Result<Watched> {
    let runtime = asynchronous(true)?;
    let interrupted = Interrupts::listen(&streams.progress, true)?;
    let mut warm = WarmFunctions::new(&runtime, interrupted.clone());
    let mut stamps = render.sources().stamps();
    loop {
        match render.render_again(&mut warm, streams) {
            Ok(documents) => {
                let write = || print::write(&documents, render.format(), streams.stdout);
                warm.run_interruptible(write)?;
            }
            Err(error) if error.is::<Interrupted>() => return Ok(Watched::Interrupted),
            Err(error) => streams.say(&error_text(&error)),
        }
        let now = match runtime.block_on(change(render, &stamps, &interrupted)) {
            Next::Changed(now) => now,
            Next::End(end) => return Ok(end),
        };
        #[allow(clippy::disallowed_methods)] // the time is shown to the user
        let time = jiff::Timestamp::now().strftime("%H:%M:%SZ");
        streams.say(&format!("--- {time} changed: {}", changed(&stamps, &now)));
        stamps = now;
    }
}

/// What follows a render.
enum Next {
    /// The state of the files after a change is complete.
    Changed(Stamps),
    /// Watching has ended.
    End(Watched),
}

async fn change(render: &dyn Repeatable, before: &Stamps, interrupted: &Interrupts) -> Next {
    let mut last = before.clone();
    loop {
        tokio::select! {
            () = interrupted.requested() => return Next::End(Watched::Interrupted),
            () = tokio::time::sleep(LOOK) => {}
        }
        if is_unread(std::io::stdout()) {
            return Next::End(Watched::Unread);
        }
        let now = render.sources().stamps();
        if now == last && now != *before {
            return Next::Changed(now);
        }
        last = now;
    }
}

/// Whether the reading end of a pipe is closed. The system reports that even if no events are
/// requested.
fn is_unread(out: impl AsFd) -> bool {
    let mut asked = [PollFd::new(out.as_fd(), PollFlags::empty())];
    let told = poll(&mut asked, PollTimeout::ZERO);
    told.is_ok_and(|count| count > 0)
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
    fn a_closed_pipe_is_told_from_one_that_is_not_read_yet() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert!(!is_unread(&writer));
        drop(reader);
        assert!(is_unread(&writer));
        assert!(!is_unread(tempfile::tempfile().unwrap()));
        assert!(!is_unread(std::fs::File::open("/dev/null").unwrap()));
    }
}
