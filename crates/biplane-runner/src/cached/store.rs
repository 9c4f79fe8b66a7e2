//! The files of the cache: lookup, atomic writes and garbage collection.

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use biplane_proto::Timestamp;
use biplane_proto::cache::CachedRunFunctionResponse;
use prost::Message;

use super::{CacheMetrics, Now};
use crate::v1::RunFunctionResponse;

/// The prefix of temporary files. No cache key starts with it.
const TEMPORARY: &str = ".new-";
/// The age at which a temporary file counts as left behind by a dead process.
const ABANDONED: Duration = Duration::from_hours(1);
/// The largest file that is read, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

pub(super) struct Store {
    folder: PathBuf,
    now: Now,
    metrics: CacheMetrics,
    written: AtomicU64,
}

/// The cache key of a response.
#[derive(Clone, Debug)]
pub(super) struct Key {
    function: String,
    tag: String,
}

impl Key {
    /// Returns `None` if there is no tag, or if a name could refer to a file outside the folder.
    pub(super) fn new(function: &str, tag: &str) -> Option<Self> {
        let is_plain =
            |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0']);
        (is_plain(function) && is_plain(tag))
            .then(|| Self { function: function.to_owned(), tag: tag.to_owned() })
    }
}

/// Why a response is not in the cache.
#[derive(Debug)]
pub(super) enum Miss {
    EmptyTag,
    NotCached,
    Expired,
    Error(String),
}

impl Miss {
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::EmptyTag => "EmptyRequestTag",
            Self::NotCached => "NotCached",
            Self::Expired => "DeadlineExpired",
            Self::Error(_) => "Error",
        }
    }
}

impl Store {
    pub(super) fn new(folder: PathBuf, now: Now, metrics: CacheMetrics) -> Self {
        Self { folder, now, metrics, written: AtomicU64::new(0) }
    }

    pub(super) async fn read(&self, key: &Key) -> Result<RunFunctionResponse, Miss> {
        let path = self.folder.join(&key.function).join(&key.tag);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Miss::NotCached,
            _ => Miss::Error(error.to_string()),
        };
        let found = tokio::fs::metadata(&path).await;
        found.and_then(|found| check_size(&found)).map_err(failed)?;
        let bytes = tokio::fs::read(path).await.map_err(failed)?;
        let cached = CachedRunFunctionResponse::decode(bytes.as_slice())
            .map_err(|error| Miss::Error(error.to_string()))?;
        if (self.now)() > deadline(&cached) {
            return Err(Miss::Expired);
        }
        Ok(cached.response.unwrap_or_default())
    }

    /// Writes a response and returns its size. Readers see either the old file or the new one.
    pub(super) async fn write(
        &self,
        key: &Key,
        response: &RunFunctionResponse,
        ttl: Duration,
    ) -> io::Result<u64> {
        let deadline = (self.now)().checked_add(ttl).ok_or_else(|| io::Error::other("TTL"))?;
        let cached = CachedRunFunctionResponse {
            deadline: Some(timestamp(deadline)),
            response: Some(response.clone()),
        };
        let folder = self.folder.join(&key.function);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let new = folder.join(format!("{TEMPORARY}{}-{number}", std::process::id()));
        let path = folder.join(&key.tag);
        let write = move || {
            let bytes = cached.encode_to_vec();
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let written = write_privately(&new, &bytes).and_then(|()| fs::rename(&new, &path));
            if written.is_err() {
                let _ = fs::remove_file(&new);
            }
            written.map(|()| bytes.len() as u64)
        };
        tokio::task::spawn_blocking(write).await?
    }

    /// Deletes expired responses and empty folders.
    pub(super) fn collect_garbage(&self) -> io::Result<usize> {
        let mut collected = 0;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if !path.is_dir() {
                continue;
            }
            let files: Vec<_> = match fs::read_dir(&path).and_then(Iterator::collect) {
                Ok(files) => files,
                Err(error) => {
                    tracing::info!(path = %path.display(), %error, "RunFunctionResponse cache error");
                    continue;
                }
            };
            if files.is_empty() {
                let _ = fs::remove_dir(&path);
            }
            let function = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for file in files {
                match self.collect(&file.path()) {
                    Ok(None) => {}
                    Ok(Some(bytes)) => {
                        collected += 1;
                        self.metrics.delete(&function, bytes);
                    }
                    Err(error) => {
                        tracing::info!(name = function, %error, "RunFunctionResponse cache error");
                        self.metrics.error(&function);
                    }
                }
            }
        }
        Ok(collected)
    }

    /// Deletes one response if it has expired, and returns its size.
    fn collect(&self, path: &Path) -> io::Result<Option<u64>> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(TEMPORARY) {
            let modified = fs::metadata(path)?.modified()?;
            let age = (self.now)().duration_since(modified).unwrap_or_default();
            return if age > ABANDONED { fs::remove_file(path).map(|()| None) } else { Ok(None) };
        }
        check_size(&fs::metadata(path)?)?;
        let bytes = fs::read(path)?;
        let cached = CachedRunFunctionResponse::decode(bytes.as_slice())
            .map_err(|error| io::Error::other(error.to_string()))?;
        if (self.now)() < deadline(&cached) {
            return Ok(None);
        }
        fs::remove_file(path)?;
        Ok(Some(bytes.len() as u64))
    }
}

/// Fails if reading a file could go on without end.
fn check_size(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() && found.len() <= LARGEST {
        return Ok(());
    }
    Err(io::Error::other("it is no regular file, or too large"))
}

/// Writes a file that only its owner can read, because responses may hold secrets.
fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A file that another process left behind could be open to others.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// Returns when a response expires. An absent deadline is in the past.
fn deadline(cached: &CachedRunFunctionResponse) -> SystemTime {
    let Timestamp { seconds, nanos } = cached.deadline.unwrap_or_default();
    let since = Duration::new(
        u64::try_from(seconds).unwrap_or_default(),
        u32::try_from(nanos).unwrap_or_default().min(999_999_999),
    );
    SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: since.subsec_nanos().cast_signed(),
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.folder).finish()
    }
}
