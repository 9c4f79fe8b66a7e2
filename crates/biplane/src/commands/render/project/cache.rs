//! What registries have said, kept for a while.
//!
//! Nothing here ever fails: what cannot be read was never said, and what cannot be written is asked for
//! again. Files are replaced as a whole, so that commands that run at the same time never see half of one.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use biplane_engine::{Ids, SystemIds};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long an answer is as good as a new one.
const FRESH: SignedDuration = SignedDuration::from_mins(5);
/// Beside what other programs keep in the folder.
const FOLDER: &str = "biplane-tags";

/// A folder of answers; none if there is no place for one.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache(Option<PathBuf>);

/// What a registry said about a repository, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    repository: String,
    pub(super) asked: Timestamp,
    pub(super) tags: Vec<String>,
}

impl Answer {
    pub(super) fn new(repository: &str, tags: Vec<String>) -> Self {
        Self { repository: repository.to_owned(), asked: Timestamp::now(), tags }
    }

    /// Whether there is no need to ask again. One from the future tells of a clock that cannot be
    /// trusted.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.asked);
        !age.is_negative() && age < FRESH
    }
}

impl Cache {
    /// The folder that is given, else the one that the user's programs keep such things in.
    pub(super) fn at(folder: Option<&Path>) -> Self {
        let given = folder.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
        Self(given.or_else(default_folder).map(|folder| folder.join(FOLDER)))
    }

    /// What was last said about a repository.
    pub(super) fn read(&self, repository: &str) -> Option<Answer> {
        let text = std::fs::read(self.file(repository)?).ok()?;
        let answer: Answer = serde_json::from_slice(&text).ok()?;
        (answer.repository == repository).then_some(answer)
    }

    pub(super) fn write(&self, answer: &Answer) {
        let _ = self.try_write(answer);
    }

    fn try_write(&self, answer: &Answer) -> Option<()> {
        let file = self.file(&answer.repository)?;
        // Which packages someone uses is nobody else's business.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(file.parent()?).ok()?;
        let unfinished = file.with_extension(SystemIds.uuid());
        let text = serde_json::to_vec(answer).ok()?;
        let written = std::fs::File::create_new(&unfinished)
            .and_then(|mut out| out.write_all(&text))
            .and_then(|()| std::fs::rename(&unfinished, &file));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        Some(())
    }

    /// A file of the folder itself, whatever the repository is called.
    fn file(&self, repository: &str) -> Option<PathBuf> {
        let mut name = String::new();
        for byte in repository.bytes() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(byte)),
                other => {
                    let _ = write!(name, "%{other:02X}");
                }
            }
        }
        Some(self.0.as_ref()?.join(format!("{name}.json")))
    }
}

fn default_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().filter(|home| home.is_absolute());
    let caches = set("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")))?;
    Some(caches.join("crossplane").join("xpkg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(repository: &str) -> Answer {
        Answer::new(repository, vec!["v1.0.0".to_owned(), "latest".to_owned()])
    }

    #[test]
    fn answers_are_kept_by_repository() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(Some(&folder.path().join("not/there/yet")));
        for repository in ["r.io/a/b", "r.io/a_b", "localhost:5000/a/b", "../../up", "r.io/A/b"] {
            assert_eq!(cache.read(repository), None, "{repository}");
            cache.write(&answer(repository));
            let read = cache.read(repository).unwrap();
            assert_eq!((read.repository.as_str(), read.tags.len()), (repository, 2));
        }
        let files = std::fs::read_dir(folder.path().join("not/there/yet").join(FOLDER)).unwrap();
        assert_eq!(files.count(), 5, "one file each, and nothing unfinished");
    }

    #[test]
    fn answers_are_fresh_for_minutes_and_never_from_the_future() {
        let answer = answer("r.io/a");
        for (seconds, want) in [(0, true), (299, true), (300, false), (-1, false)] {
            let now = answer.asked + SignedDuration::from_secs(seconds);
            assert_eq!(answer.is_fresh(now), want, "{seconds}");
        }
    }

    #[test]
    fn what_cannot_be_read_was_never_said() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(Some(folder.path()));
        cache.write(&answer("r.io/a"));
        let file = cache.file("r.io/a").unwrap();
        let whole = std::fs::read_to_string(&file).unwrap();
        let half = whole.split_at(whole.len() / 2).0;
        for text in ["", "{", "null", "\u{0}", half, &whole.replace("r.io/a", "r.io/b")] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(cache.read("r.io/a"), None, "{text:?}");
        }
        cache.write(&answer("r.io/a"));
        assert!(cache.read("r.io/a").is_some(), "and it is said anew");
    }

    #[test]
    fn a_folder_that_cannot_be_written_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let cache = Cache::at(Some(&file));
        cache.write(&answer("r.io/a"));
        assert_eq!(cache.read("r.io/a"), None);
    }
}
