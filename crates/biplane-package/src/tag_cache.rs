//! Caches the tags that registries report.
//!
//! Nothing here fails: an unreadable entry counts as missing, and an entry that cannot be written
//! is requested again. Files are replaced atomically, so that concurrent commands never read a
//! partial file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long an entry is as good as a new response.
const FRESH: SignedDuration = SignedDuration::from_mins(5);
/// The folder of this cache within the common cache folder.
const FOLDER: &str = "biplane-tags";
/// The largest entry, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// A folder of cached responses. Without a folder, nothing is cached.
#[derive(Clone, Debug, Default)]
pub struct TagCache(Option<PathBuf>);

/// The tags of a repository, and when the registry reported them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTags {
    repository: String,
    pub asked: Timestamp,
    pub tags: Vec<String>,
}

impl CachedTags {
    /// An entry with the time of the response.
    pub fn new(repository: &str, asked: Timestamp, tags: Vec<String>) -> Self {
        Self { repository: repository.to_owned(), asked, tags }
    }

    /// Whether the registry need not be queried again. An entry from the future means that the
    /// clock is wrong, so it is not fresh.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.asked);
        !age.is_negative() && age < FRESH
    }
}

impl TagCache {
    /// A cache in a folder. Without a folder, nothing is cached.
    pub fn at(folder: Option<&Path>) -> Self {
        let given = folder.filter(|folder| !folder.as_os_str().is_empty());
        Self(given.map(|folder| folder.join(FOLDER)))
    }

    /// The latest entry of a repository.
    pub fn read(&self, repository: &str) -> Option<CachedTags> {
        let file = self.file(repository)?;
        // Whatever else may be there could be read without end.
        let found = std::fs::metadata(&file).ok()?;
        if !found.is_file() || found.len() > LARGEST {
            return None;
        }
        let text = std::fs::read(file).ok()?;
        let answer: CachedTags = serde_json::from_slice(&text).ok()?;
        (answer.repository == repository).then_some(answer)
    }

    /// Writes an entry.
    pub fn write(&self, answer: &CachedTags) {
        let _ = self.try_write(answer);
    }

    fn try_write(&self, answer: &CachedTags) -> Option<()> {
        let file = self.file(&answer.repository)?;
        let folder = file.parent()?;
        // The dependencies of a user are private, so only the owner may read them.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let mut unfinished =
            tempfile::Builder::new().permissions(owner_only()).tempfile_in(folder).ok()?;
        unfinished.write_all(&serde_json::to_vec(answer).ok()?).ok()?;
        unfinished.persist(file).ok().map(drop)
    }

    /// The path of an entry. It is always directly in the folder, whatever the repository's name.
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

fn owner_only() -> std::fs::Permissions {
    std::fs::Permissions::from_mode(0o600)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    fn answer(repository: &str) -> CachedTags {
        CachedTags::new(
            repository,
            Timestamp::UNIX_EPOCH,
            vec!["v1.0.0".to_owned(), "latest".to_owned()],
        )
    }

    #[test]
    fn answers_are_kept_by_repository() {
        let folder = tempfile::tempdir().unwrap();
        let cache = TagCache::at(Some(&folder.path().join("not/there/yet")));
        for repository in ["r.io/a/b", "r.io/a_b", "localhost:5000/a/b", "../../up", "r.io/A/b"] {
            assert_eq!(cache.read(repository), None, "{repository}");
            cache.write(&answer(repository));
            let read = cache.read(repository).unwrap();
            assert_eq!((read.repository.as_str(), read.tags.len()), (repository, 2));
        }
        let files = std::fs::read_dir(folder.path().join("not/there/yet").join(FOLDER)).unwrap();
        let modes: Vec<_> = files.map(|f| f.unwrap().metadata().unwrap().mode() & 0o777).collect();
        assert_eq!(modes, [0o600; 5], "one private file each, and nothing unfinished");
    }

    /// Reading it would fill the memory.
    #[test]
    fn an_entry_that_is_no_file_or_too_large_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = TagCache::at(Some(folder.path()));
        cache.write(&answer("r.io/a"));
        let file = cache.file("r.io/a").unwrap();
        let whole = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{whole}{}", " ".repeat(LARGEST as usize))).unwrap();
        assert_eq!(cache.read("r.io/a"), None);
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert_eq!(cache.read("r.io/a"), None);
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
        let cache = TagCache::at(Some(folder.path()));
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
        let cache = TagCache::at(Some(&file));
        cache.write(&answer("r.io/a"));
        assert_eq!(cache.read("r.io/a"), None);
    }
}
