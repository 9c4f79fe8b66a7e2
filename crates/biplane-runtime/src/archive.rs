//! Packs folders into tar archives, to be copied into containers.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use tar::{Builder, EntryType, Header};

use biplane_console::os::reason;

/// A tar archive.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Archive(pub Vec<u8>);

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Archive({} bytes)", self.0.len())
    }
}

/// Packs files, each at its own path.
pub(crate) struct Packer {
    archive: Builder<Vec<u8>>,
    owner: Option<u64>,
}

impl Packer {
    pub(crate) fn new() -> Self {
        Self { archive: Builder::new(Vec::new()), owner: None }
    }

    /// Sets the owner of all files to a user and the group of the same number.
    pub(crate) fn owned_by(mut self, owner: u64) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Adds the content of a folder, except paths that begin with `except`. Links are replaced by
    /// their targets, also outside the folder. Broken links are skipped.
    pub(crate) fn folder(mut self, folder: &Path, at: &str, except: Option<&str>) -> Result<Self> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o777);
        header.set_size(0);
        for set in [Header::set_uid, Header::set_gid] {
            set(&mut header, self.owner.unwrap_or(0));
        }
        let added = self.archive.append_data(&mut header, at, io::empty());
        added.context("failed to create prefix directory in tar archive")?;
        let packed = self.below(folder, Path::new(at), except, &mut Vec::new());
        packed.context("failed to populate tar archive")?;
        Ok(self)
    }

    /// Adds an executable.
    pub(crate) fn program(mut self, file: &Path, at: &str) -> Result<Self> {
        let content = std::fs::read(file).map_err(|error| cannot("read", file, &error))?;
        let mut header = Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        self.archive.append_data(&mut header, at, content.as_slice())?;
        Ok(self)
    }

    pub(crate) fn finish(self) -> Result<Archive> {
        Ok(Archive(self.archive.into_inner().context("failed to close tar archive")?))
    }

    fn below(
        &mut self,
        folder: &Path,
        at: &Path,
        except: Option<&str>,
        above: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let real = folder.canonicalize().map_err(|error| cannot("open", folder, &error))?;
        if above.contains(&real) {
            bail!("{} leads to a folder that it is in", folder.display());
        }
        above.push(real);
        let entries = std::fs::read_dir(folder).map_err(|error| cannot("open", folder, &error))?;
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(|error| cannot("read", folder, &error))?.file_name());
        }
        names.sort();
        for name in names {
            if except.is_some_and(|except| name.to_string_lossy().starts_with(except)) {
                continue;
            }
            let (path, at) = (folder.join(&name), at.join(&name));
            let metadata = match std::fs::metadata(&path) {
                Ok(metadata) => metadata,
                Err(_) if path.is_symlink() => continue,
                Err(error) => return Err(cannot("open", &path, &error)),
            };
            self.entry(&path, &at, &metadata)?;
            if metadata.is_dir() {
                self.below(&path, &at, None, above)?;
            }
        }
        above.pop();
        Ok(())
    }

    fn entry(&mut self, path: &Path, at: &Path, metadata: &Metadata) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(metadata.mode() & 0o7777);
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        header.set_uid(self.owner.unwrap_or_else(|| metadata.uid().into()));
        header.set_gid(self.owner.unwrap_or_else(|| metadata.gid().into()));
        let content = if metadata.is_dir() {
            header.set_entry_type(EntryType::Directory);
            Vec::new()
        } else if metadata.is_file() {
            std::fs::read(path).map_err(|error| cannot("read", path, &error))?
        } else {
            bail!("{} is neither a file nor a folder", path.display());
        };
        header.set_size(content.len() as u64);
        Ok(self.archive.append_data(&mut header, at, content.as_slice())?)
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("{what} {}: {}", path.display(), reason(error))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Path, mode and owner of the files in an archive, with their text.
    fn unpacked(archive: &Archive) -> Vec<(String, u32, u64, String)> {
        let mut archive = tar::Archive::new(archive.0.as_slice());
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let (path, header) = (entry.path().unwrap().display().to_string(), entry.header());
            (path, header.mode().unwrap(), header.uid().unwrap(), text)
        });
        entries.collect()
    }

    #[test]
    fn what_links_lead_to_is_packed_in_their_place() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in ["fn/.venv/bin", "fn/more", "schemas/kcl"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        let long = format!("{}.k", "n".repeat(120));
        for file in ["fn/main.k", "fn/.venv/bin/python", &format!("schemas/kcl/{long}")] {
            std::fs::write(at(file), file).unwrap();
        }
        std::fs::set_permissions(at("fn/main.k"), PermissionsExt::from_mode(0o640)).unwrap();
        symlink("../../schemas/kcl", at("fn/more/model")).unwrap();
        symlink("nowhere", at("fn/broken")).unwrap();
        let packed = Packer::new().owned_by(2000).folder(&at("fn"), "src", Some(".venv"));
        let found = unpacked(&packed.unwrap().finish().unwrap());
        let folder = |path: &str| std::fs::metadata(at(path)).unwrap().mode() & 0o7777;
        let file = folder(&format!("schemas/kcl/{long}"));
        let want = [
            ("src".to_owned(), 0o777, 2000, String::new()),
            ("src/main.k".to_owned(), 0o640, 2000, "fn/main.k".to_owned()),
            ("src/more".to_owned(), folder("fn/more"), 2000, String::new()),
            ("src/more/model".to_owned(), folder("schemas/kcl"), 2000, String::new()),
            (format!("src/more/model/{long}"), file, 2000, format!("schemas/kcl/{long}")),
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_folder_in_itself_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        symlink(root.path(), root.path().join("again")).unwrap();
        let error = Packer::new().folder(root.path(), "src", None).err().unwrap();
        let text = format!("{error:#}");
        assert!(text.contains("again leads to a folder that it is in"), "{text}");
    }
}
