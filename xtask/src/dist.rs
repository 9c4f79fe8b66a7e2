//! Builds the release archive: `dist/biplane-VERSION-TARGET.tar.gz`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use sha2::{Digest, Sha256};

use crate::program::{self, Program};
use crate::tar::{self, File};
use crate::{output, run as run_command};

/// The file name that each shell expects, below `completions/`.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "biplane.bash"), ("fish", "biplane.fish"), ("zsh", "_biplane")];

/// The example that the archived program must render without anything else.
const EXAMPLE: &str = "examples/first-composition";

/// Mode and content by path in the archive.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// Builds the program, packs it and tests the archive.
pub(crate) fn run(root: &Path, program: Option<PathBuf>) -> Result<()> {
    let program = match program {
        Some(path) => program::read(path.canonicalize().unwrap_or(path))?,
        None => program::build(root)?,
    };
    if !program::is_position_independent(&program.bytes) {
        bail!("{} can only be loaded at a fixed address", program.path.display());
    }
    let name = format!("biplane-{}-{}", env!("CARGO_PKG_VERSION"), program::target());
    let files = collect(root, &name, program)?;
    let archive = pack(&files, time(root)?)?;
    let folder = root.join("dist");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.tar.gz"));
    let sum = folder.join(format!("{name}.tar.gz.sha256"));
    write(&path, &archive)?;
    write(&sum, format!("{}  {name}.tar.gz\n", hex(&archive)).as_bytes())?;
    verify(root, &folder, &name)?;
    println!("{}\n{}", path.display(), sum.display());
    Ok(())
}

/// All files of the archive.
fn collect(root: &Path, name: &str, program: Program) -> Result<Files> {
    let scratch = tempfile::tempdir()?;
    // The output depends on user settings, so run the program without any.
    let ask = |args: &[&str]| {
        let mut command = Command::new(&program.path);
        output(command.args(args).env_clear().current_dir(scratch.path()))
    };
    let mut files = Files::new();
    let mut add = |path: String, mode: u32, content: Vec<u8>| {
        files.insert(format!("{name}/{path}"), (mode, content));
    };
    for (shell, file) in COMPLETIONS {
        add(format!("completions/{file}"), 0o644, ask(&["completions", shell])?.into_bytes());
    }
    ask(&["man", "--output-dir", "man1"])?;
    for page in fs::read_dir(scratch.path().join("man1"))? {
        let page = page?;
        let file = page.file_name().to_string_lossy().into_owned();
        add(format!("man/man1/{file}"), 0o644, fs::read(page.path())?);
    }
    for file in ["LICENSE", "README.md"] {
        let content = fs::read(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        add(file.to_owned(), 0o644, content);
    }
    add("biplane".to_owned(), 0o755, program.bytes);
    Ok(files)
}

/// A compressed archive that depends only on the files and the time.
fn pack(files: &Files, time: u64) -> Result<Vec<u8>> {
    let files: Vec<File<'_>> =
        files.iter().map(|(name, (mode, content))| File { name, mode: *mode, content }).collect();
    tar::gzip(&tar::archive(&files, time)?, Compression::best())
}

/// The modification time of the files: set by the builder, or else the time of the commit.
fn time(root: &Path) -> Result<u64> {
    let set = std::env::var_os("SOURCE_DATE_EPOCH").map(|text| text.to_string_lossy().into_owned());
    let text = match set {
        Some(text) => text,
        None => output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?,
    };
    text.trim().parse().with_context(|| format!("cannot read the time {text:?}"))
}

/// Unpacks the archive into an empty folder and renders the example there. If allowed, that folder
/// is the root of the file system.
fn verify(root: &Path, folder: &Path, name: &str) -> Result<()> {
    let file = format!("{name}.tar.gz");
    run_command(
        Command::new("sha256sum")
            .args(["--check", "--quiet"])
            .arg(format!("{file}.sha256"))
            .current_dir(folder),
    )?;
    let empty = tempfile::tempdir()?;
    run_command(
        Command::new("tar").arg("-xzf").arg(folder.join(file)).arg("-C").arg(empty.path()),
    )?;
    let inputs = ["xr.yaml", "composition.yaml", "functions.yaml"];
    for input in inputs {
        fs::copy(root.join(EXAMPLE).join(input), empty.path().join(input))
            .with_context(|| format!("cannot copy {EXAMPLE}/{input}"))?;
    }
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    let mut command = if is_root {
        let mut command = Command::new("chroot");
        command.arg(empty.path()).arg(format!("/{name}/biplane"));
        command
    } else {
        Command::new(empty.path().join(name).join("biplane"))
    };
    // The path is for finding chroot. These folders do not exist in the new root.
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir(empty.path());
    let rendered = output(command.arg("render").args(inputs))
        .context("the archive's program cannot render the example")?;
    for kind in ["kind: Website", "kind: ConfigMap", "kind: Service"] {
        if !rendered.lines().any(|line| line == kind) {
            bail!("the archive's program rendered no `{kind}`:\n{rendered}");
        }
    }
    let place = if is_root { "an empty root folder" } else { "an empty folder" };
    println!("{EXAMPLE} renders in {place}");
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let mut files = Files::new();
        files.insert("a/program".into(), (0o755, b"x".to_vec()));
        files.insert("a/LICENSE".into(), (0o644, b"y".to_vec()));
        files
    }

    #[test]
    fn the_same_files_and_time_make_the_same_archive() {
        assert_eq!(pack(&files(), 1).unwrap(), pack(&files(), 1).unwrap());
        assert_ne!(pack(&files(), 1).unwrap(), pack(&files(), 2).unwrap());
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "text").unwrap();
        let sum = output(Command::new("sha256sum").arg("a").current_dir(folder.path())).unwrap();
        assert_eq!(sum, format!("{}  a\n", hex(b"text")));
    }

    /// Packs a shell script in place of the program, and verifies the archive.
    fn archived(script: &str) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::new();
        files.insert("a/biplane".into(), (0o755, script.as_bytes().to_vec()));
        let archive = pack(&files, 0).unwrap();
        fs::write(folder.path().join("a.tar.gz"), &archive).unwrap();
        let sum = format!("{}  a.tar.gz\n", hex(&archive));
        fs::write(folder.path().join("a.tar.gz.sha256"), sum).unwrap();
        verify(&crate::root(), folder.path(), "a")
    }

    #[test]
    fn a_program_that_cannot_start_in_an_empty_folder_is_refused() {
        // This interpreter does not exist.
        let error = archived("#!/no/such/interpreter\n").unwrap_err();
        assert_eq!(error.to_string(), "the archive's program cannot render the example");
    }

    #[test]
    fn the_time_of_the_last_commit_counts() {
        if std::env::var_os("SOURCE_DATE_EPOCH").is_none() {
            assert!(time(&crate::root()).unwrap() > 1_700_000_000);
        }
    }
}
