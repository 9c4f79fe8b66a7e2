//! Packs folders into tar archives, to be copied into containers.
//!
//! Everything that is packed lies below one folder, the root of the project. A link that leads
//! elsewhere is an error, because the files of a project must not decide which other files of the
//! machine get into a container.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use tar::{Builder, EntryType, Header};

use biplane_console::os::reason;
use biplane_console::{Deadline, files};

/// The largest archive: all files, and their number.
const LARGEST: u64 = 512 * 1024 * 1024;
const MOST_FILES: usize = 100_000;

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
    /// Where all files must be.
    root: PathBuf,
    owner: Option<u64>,
    /// How many bytes and files may still be added.
    bytes_left: u64,
    files_left: usize,
    deadline: Option<Deadline>,
}

impl Packer {
    /// An empty archive for files below a root.
    pub(crate) fn below(root: &Path) -> Result<Self> {
        Ok(Self {
            archive: Builder::new(Vec::new()),
            root: real(root)?,
            owner: None,
            bytes_left: LARGEST,
            files_left: MOST_FILES,
            deadline: None,
        })
    }

    /// Fails if files are still to be added after a deadline.
    pub(crate) fn until(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the owner of all files to a user and the group of the same number.
    pub(crate) fn owned_by(mut self, owner: u64) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Adds the content of a folder, except paths that begin with `except`. Links are replaced by
    /// their targets, also outside the folder but not outside the root. Broken links are skipped.
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
        let packed = self.content(folder, Path::new(at), except, &mut Vec::new());
        packed.context("failed to populate tar archive")?;
        Ok(self)
    }

    /// Adds an executable, which was just built and may be anywhere.
    pub(crate) fn program(mut self, file: &Path, at: &str) -> Result<Self> {
        let content = self.read(file)?;
        let mut header = Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        self.archive.append_data(&mut header, at, content.as_slice())?;
        Ok(self)
    }

    pub(crate) fn finish(self) -> Result<Archive> {
        Ok(Archive(self.archive.into_inner().context("failed to close tar archive")?))
    }

    fn content(
        &mut self,
        folder: &Path,
        at: &Path,
        except: Option<&str>,
        above: &mut Vec<PathBuf>,
    ) -> Result<()> {
        let real = check_inside(&self.root, folder)?;
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
            if path.is_symlink() {
                check_inside(&self.root, &path)?;
            }
            self.entry(&path, &at, &metadata)?;
            if metadata.is_dir() {
                self.content(&path, &at, None, above)?;
            }
        }
        above.pop();
        Ok(())
    }

    /// Reads a file, if there is still room for it.
    fn read(&mut self, file: &Path) -> Result<Vec<u8>> {
        let content = files::read_regular(file, self.bytes_left).map_err(|error| {
            if error.kind() == io::ErrorKind::FileTooLarge {
                let largest = LARGEST / (1024 * 1024);
                return anyhow!("with {}, it is more than {largest} MiB", file.display());
            }
            cannot("read", file, &error)
        })?;
        self.bytes_left = self.bytes_left.saturating_sub(content.len() as u64);
        Ok(content)
    }

    fn entry(&mut self, path: &Path, at: &Path, metadata: &Metadata) -> Result<()> {
        if let Some(deadline) = self.deadline {
            deadline.check()?;
        }
        let Some(left) = self.files_left.checked_sub(1) else {
            bail!("with {}, it is more than {MOST_FILES} files", path.display());
        };
        self.files_left = left;
        let mut header = Header::new_gnu();
        header.set_mode(metadata.mode() & 0o7777);
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        header.set_uid(self.owner.unwrap_or_else(|| metadata.uid().into()));
        header.set_gid(self.owner.unwrap_or_else(|| metadata.gid().into()));
        let content = if metadata.is_dir() {
            header.set_entry_type(EntryType::Directory);
            Vec::new()
        } else if metadata.is_file() {
            self.read(path)?
        } else {
            bail!("{} is neither a file nor a folder", path.display());
        };
        header.set_size(content.len() as u64);
        Ok(self.archive.append_data(&mut header, at, content.as_slice())?)
    }
}

/// The path of a file without links, if it lies below a root.
pub(crate) fn check_inside(root: &Path, path: &Path) -> Result<PathBuf> {
    let found = real(path)?;
    if found.starts_with(real(root)?) {
        return Ok(found);
    }
    bail!("{} leads to {}, which is outside of the project", path.display(), found.display())
}

/// A path without links.
fn real(path: &Path) -> Result<PathBuf> {
    // The folder of a file without a folder is the current one.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().map_err(|error| cannot("open", path, &error))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("{what} {}: {}", path.display(), reason(error))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

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
        let packed = Packer::below(root.path()).unwrap().owned_by(2000).folder(
            &at("fn"),
            "src",
            Some(".venv"),
        );
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
        let text = refused(root.path(), root.path());
        assert!(text.contains("again leads to a folder that it is in"), "{text}");
    }

    /// Why a folder cannot be packed.
    fn refused(root: &Path, folder: &Path) -> String {
        let packed = Packer::below(root).unwrap().folder(folder, "src", None);
        format!("{:#}", packed.err().unwrap())
    }

    /// `fn/passwd` might lead to any file of the machine.
    #[test]
    fn what_leaves_the_project_is_an_error_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in ["project/fn", "project/fn2", "elsewhere"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("elsewhere/secret"), "hunter2").unwrap();
        symlink("../../elsewhere/secret", at("project/fn/passwd")).unwrap();
        symlink(at("elsewhere"), at("project/fn2/more")).unwrap();
        symlink(at("elsewhere"), at("project/fn3")).unwrap();
        for (folder, link, target) in [
            ("fn", "fn/passwd", "elsewhere/secret"),
            ("fn2", "fn2/more", "elsewhere"),
            ("fn3", "fn3", "elsewhere"),
        ] {
            let text = refused(&at("project"), &at("project").join(folder));
            let target = at(target).canonicalize().unwrap();
            let want = format!(
                "{} leads to {}, which is outside of the project",
                at("project").join(link).display(),
                target.display()
            );
            assert!(text.ends_with(&want), "{text}");
        }
    }

    #[test]
    fn packing_ends_at_the_deadline() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "a").unwrap();
        let packer = Packer::below(root.path()).unwrap();
        let packed = packer.until(Deadline::after(Duration::ZERO)).folder(root.path(), "src", None);
        let text = format!("{:#}", packed.err().unwrap());
        assert_eq!(text, "failed to populate tar archive: context deadline exceeded");
    }

    #[test]
    fn a_pipe_and_a_huge_file_are_errors_that_name_them() {
        let root = tempfile::tempdir().unwrap();
        let huge = root.path().join("huge");
        // A hole takes no space.
        std::fs::File::create(&huge).unwrap().set_len(LARGEST + 1).unwrap();
        let text = refused(root.path(), root.path());
        assert!(text.ends_with(&format!("with {}, it is more than 512 MiB", huge.display())));
        std::fs::remove_file(huge).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.path().join("s")).unwrap();
        let text = refused(root.path(), root.path());
        assert!(text.ends_with("s is neither a file nor a folder"), "{text}");
    }
}
