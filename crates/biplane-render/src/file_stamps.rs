//! Records the state of files, to detect which ones have changed.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders in the source of a function that build tools write to.
const WRITTEN_BY_TOOLS: &[&str] = &["__pycache__", "node_modules", "target"];

/// The modification time, size and inode of a file, which identify its state.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;
pub(crate) type Stamps = BTreeMap<PathBuf, Stamp>;

/// The source files of a project's functions, without files written by tools.
pub(crate) fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || WRITTEN_BY_TOOLS.contains(&name.as_ref()) {
            continue;
        }
        // A link to a folder may lead anywhere, even to a parent.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => source_files(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// A file, or a directory itself and the files directly in it.
pub(crate) fn flat(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.push(path.to_owned());
    files
}

/// A file, or everything below a directory. Links are not followed.
pub(crate) fn below(path: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
    files.push(path.to_owned());
}

pub(crate) fn stamps(files: Vec<PathBuf>) -> Stamps {
    let stamp = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file);
        let stamp = metadata.and_then(|m| Some((m.modified().ok()?, m.len(), m.ino())));
        (path, stamp)
    };
    files.into_iter().map(stamp).collect()
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
