//! The folder of one control plane: a temporary one, or one that the user keeps.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::EnvError;

/// What has to be the same the next time. It contains private keys.
const STATE: &str = "state.json";

/// A folder that only its user can read.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Held while the folder is in use. The system releases it when the process ends.
    lock: Option<File>,
    temporary: Option<TempDir>,
}

impl Folder {
    /// A new folder, removed when this is dropped.
    pub(crate) fn temporary() -> Result<Self, EnvError> {
        let dir = tempfile::Builder::new()
            .prefix("biplane-devenv-")
            .tempdir()
            .map_err(EnvError::io("make a folder for the servers"))?;
        Ok(Self { path: dir.path().to_owned(), lock: None, temporary: Some(dir) })
    }

    /// A folder of the user, which stays. It has to be new, empty, or the folder of an earlier
    /// control plane.
    pub(crate) fn kept(path: &Path) -> Result<Self, EnvError> {
        let cannot = || EnvError::io(format!("use {}", path.display()));
        let path = std::path::absolute(path).map_err(cannot())?;
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(cannot())?;
        let mut others = std::fs::read_dir(&path).map_err(cannot())?;
        if !path.join(STATE).exists() && others.any(|entry| !is_ours(entry)) {
            return Err(EnvError::Occupied { path });
        }
        let lock = path.join(LOCK);
        let file = File::create(&lock).map_err(cannot())?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path, lock: Some(file), temporary: None }),
            Err(std::fs::TryLockError::WouldBlock) => Err(EnvError::InUse { path }),
            Err(std::fs::TryLockError::Error(error)) => Err(cannot()(error)),
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.lock.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that has to be removed if its owner cannot do it.
    pub(crate) fn to_remove(&self) -> Option<&Path> {
        self.temporary.as_ref().map(TempDir::path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that only the user can read. The old content stays until the new one is
    /// complete.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, EnvError> {
        let path = self.join(name);
        let partial = self.join(&format!(".{name}.partial"));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&partial, &path))
            .map_err(EnvError::io(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Removes the logs of an earlier control plane.
    pub(crate) fn remove_logs(&self) -> Result<(), EnvError> {
        let cannot = || EnvError::io(format!("remove old logs in {}", self.path.display()));
        for entry in std::fs::read_dir(&self.path).map_err(cannot())? {
            let path = entry.map_err(cannot())?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                std::fs::remove_file(&path).map_err(cannot())?;
            }
        }
        Ok(())
    }

    /// The state that an earlier control plane left here.
    pub(crate) fn read_state(&self) -> Result<Option<String>, EnvError> {
        let path = self.join(STATE);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EnvError::io(format!("read {}", path.display()))(error)),
        }
    }

    pub(crate) fn write_state(&self, text: &str) -> Result<(), EnvError> {
        self.write(STATE, text).map(drop)
    }
}

const LOCK: &str = ".lock";

/// Whether an earlier control plane that did not get far left this behind.
fn is_ours(entry: std::io::Result<std::fs::DirEntry>) -> bool {
    entry.is_ok_and(|entry| entry.file_name() == LOCK)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_temporary_folder_goes_with_its_owner() {
        let folder = Folder::temporary().unwrap();
        let file = folder.write("token", "secret").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "secret");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder.to_remove(), Some(folder.path()));
        drop(folder);
        assert!(!file.exists());
    }

    #[test]
    fn a_kept_folder_stays_and_has_one_user_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/data");
        let folder = Folder::kept(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(folder.to_remove(), None);
        assert_eq!(folder.read_state().unwrap(), None);
        folder.write_state("{}").unwrap();
        let error = Folder::kept(&path).unwrap_err();
        assert!(matches!(error, EnvError::InUse { .. }), "{error}");
        drop(folder);
        let folder = Folder::kept(&path).unwrap();
        assert_eq!(folder.read_state().unwrap().as_deref(), Some("{}"));
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("photo"), "").unwrap();
        let error = Folder::kept(dir.path()).unwrap_err();
        assert!(matches!(error, EnvError::Occupied { .. }), "{error}");
        assert!(!dir.path().join(LOCK).exists());
    }

    #[test]
    fn a_start_that_did_not_get_far_can_be_repeated() {
        let dir = tempfile::tempdir().unwrap();
        drop(Folder::kept(dir.path()).unwrap());
        Folder::kept(dir.path()).unwrap();
    }
}
