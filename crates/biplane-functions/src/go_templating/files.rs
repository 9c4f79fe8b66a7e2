//! Reads templates from files below a configured folder.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// How much may be read for one template.
const MAX_BYTES: u64 = 16 << 20;
/// How many files and folders may be read for one template.
const MAX_ENTRIES: usize = 10_000;
/// How deeply folders may nest.
const MAX_DEPTH: usize = 64;

/// The files that templates may come from. By default there are none, as in an empty folder.
#[derive(Clone, Debug, Default)]
pub struct Files {
    root: Option<PathBuf>,
}

impl Files {
    /// The files below a folder. Every path begins there, and no link leads out.
    pub fn below(root: PathBuf) -> Self {
        Self { root: Some(root) }
    }

    /// Reads all files of a folder in the order of their names, or a single file. Hidden files and
    /// folders are skipped.
    pub(super) fn read(&self, folder: &str) -> Result<Vec<String>, String> {
        let path = clean(folder);
        if path == "/dev/null" {
            // An empty file that exists everywhere.
            return Ok(vec![String::new()]);
        }
        let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/");
        let is_hidden = name.starts_with('.');
        let Some(root) = &self.root else {
            return match path.as_str() {
                // The folder itself is there.
                "." | ".." | "/" => Ok(Vec::new()),
                _ => Err(describe("open", &path, &io::ErrorKind::NotFound.into())),
            };
        };
        let root = root.canonicalize().map_err(|error| describe("open", &path, &error))?;
        let mut reader = Reader { root, texts: Vec::new(), bytes: 0, entries: 0 };
        let start = reader.place(&path);
        let metadata = start.metadata().map_err(|error| describe("open", &path, &error))?;
        if !is_hidden {
            reader.visit(&path, &metadata, 0)?;
        }
        Ok(reader.texts)
    }
}

struct Reader {
    root: PathBuf,
    texts: Vec<String>,
    bytes: u64,
    entries: usize,
}

impl Reader {
    /// Where a path of the input is on this machine.
    fn place(&self, path: &str) -> PathBuf {
        let mut place = self.root.clone();
        let mut depth = 0_usize;
        for component in Path::new(path).components() {
            match component {
                Component::Normal(part) => {
                    place.push(part);
                    depth += 1;
                }
                Component::ParentDir if depth > 0 => {
                    place.pop();
                    depth -= 1;
                }
                _ => {}
            }
        }
        place
    }

    fn visit(&mut self, path: &str, metadata: &Metadata, depth: usize) -> Result<(), String> {
        if !metadata.is_dir() {
            return self.read(path);
        }
        if depth > MAX_DEPTH {
            return Err(format!("open {path}: folders are nested more than {MAX_DEPTH} deep"));
        }
        let place = self.inside(path)?;
        let entries = fs::read_dir(&place).map_err(|error| describe("open", path, &error))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| describe("readdirent", path, &error))?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(format!("open {path}: there are more than {MAX_ENTRIES} files"));
            }
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            let inner = match path {
                "." => name,
                "/" => format!("/{name}"),
                _ => format!("{path}/{name}"),
            };
            // A link to a folder is read like a file, which fails.
            let metadata = fs::symlink_metadata(self.place(&inner))
                .map_err(|error| describe("lstat", &inner, &error))?;
            self.visit(&inner, &metadata, depth + 1)?;
        }
        Ok(())
    }

    /// The real place of a path, which must be below the root.
    fn inside(&self, path: &str) -> Result<PathBuf, String> {
        let place =
            self.place(path).canonicalize().map_err(|error| describe("open", path, &error))?;
        if place.starts_with(&self.root) {
            Ok(place)
        } else {
            Err(format!("open {path}: path escapes from parent"))
        }
    }

    fn read(&mut self, path: &str) -> Result<(), String> {
        let place = self.inside(path)?;
        // Opening a pipe would wait for a writer, and a device may have no end.
        let metadata =
            fs::symlink_metadata(&place).map_err(|error| describe("open", path, &error))?;
        check_regular(path, &metadata)?;
        let file = fs::File::open(place).map_err(|error| describe("open", path, &error))?;
        let metadata = file.metadata().map_err(|error| describe("open", path, &error))?;
        check_regular(path, &metadata)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| describe("read", path, &error))?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(format!("read {path}: templates are larger than {MAX_BYTES} bytes"));
        }
        self.texts.push(String::from_utf8_lossy(&bytes).into_owned());
        Ok(())
    }
}

fn check_regular(path: &str, metadata: &Metadata) -> Result<(), String> {
    if metadata.is_dir() {
        return Err(describe("read", path, &io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(format!("open {path}: not a regular file"));
    }
    Ok(())
}

/// The shortest path that means the same, like Go's `filepath.Clean`.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(last) if *last != ".." => drop(parts.pop()),
                _ if path.starts_with('/') => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (path.starts_with('/'), joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".to_owned(),
        (false, false) => joined,
    }
}

/// An error of the operating system as Go words it.
fn describe(operation: &str, path: &str, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "not a directory".to_owned(),
        io::ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    };
    format!("{operation} {path}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("t/.git")).unwrap();
        fs::create_dir_all(root.join("t/b")).unwrap();
        for (path, text) in [
            ("secret", "no"),
            ("t/c.yaml", "c"),
            ("t/a.tpl", "a"),
            ("t/b/x", "b"),
            ("t/.hidden", "no"),
            ("t/.git/config", "no"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        folder
    }

    /// GT-F11
    #[test]
    fn files_are_read_in_the_order_of_their_names_without_hidden_ones() {
        let folder = folder();
        let files = Files::below(folder.path().to_owned());
        for path in ["t", "/t", "./t/", "/x/../t", "../t"] {
            assert_eq!(files.read(path).unwrap(), ["a", "b", "c"], "{path}");
        }
        assert_eq!(files.read("/t/a.tpl").unwrap(), ["a"]);
        for hidden in [".", "..", "/t/.git", "t/.hidden"] {
            assert!(files.read(hidden).unwrap().is_empty(), "{hidden}");
        }
        let nothing = files.read("./nope.yaml").unwrap_err();
        assert_eq!(nothing, "open nope.yaml: no such file or directory");
    }

    #[test]
    fn no_path_and_no_link_leads_out_of_the_root() {
        let folder = folder();
        let files = Files::below(folder.path().join("t"));
        assert!(files.read("../secret").unwrap_err().contains("no such file"));
        assert!(files.read("/../secret").unwrap_err().contains("no such file"));
        let link = |name: &str, target: &str| {
            std::os::unix::fs::symlink(target, folder.path().join("t").join(name)).unwrap();
        };
        link("in", "a.tpl");
        assert_eq!(files.read("/").unwrap(), ["a", "b", "c", "a"]);
        link("out", "../secret");
        assert_eq!(files.read("/out").unwrap_err(), "open /out: path escapes from parent");
        assert_eq!(files.read("/").unwrap_err(), "open /out: path escapes from parent");
        fs::remove_file(folder.path().join("t/out")).unwrap();
        link("folder", "b");
        assert_eq!(files.read("/").unwrap_err(), "read /folder: is a directory");
    }

    #[test]
    fn only_regular_files_are_opened_and_not_too_many() {
        let folder = folder();
        let files = Files::below(folder.path().to_owned());
        let socket = folder.path().join("t/b/socket");
        let _socket = std::os::unix::net::UnixListener::bind(socket).unwrap();
        assert_eq!(files.read("/t").unwrap_err(), "open /t/b/socket: not a regular file");
        let many = folder.path().join("many");
        fs::create_dir(&many).unwrap();
        for number in 0..=MAX_ENTRIES {
            fs::File::create(many.join(number.to_string())).unwrap();
        }
        assert_eq!(files.read("/many").unwrap_err(), "open /many: there are more than 10000 files");
        fs::remove_file(many.join("0")).unwrap();
        assert_eq!(files.read("/many").unwrap().len(), MAX_ENTRIES);
    }

    #[test]
    fn without_a_root_there_are_no_files() {
        let files = Files::default();
        for path in ["/etc/passwd", "/no/such", "Cargo.toml", "src"] {
            let error = files.read(path).unwrap_err();
            assert_eq!(error, format!("open {path}: no such file or directory"));
        }
        assert!(files.read(".").unwrap().is_empty());
        assert_eq!(files.read("/dev/null").unwrap(), [""]);
    }
}
