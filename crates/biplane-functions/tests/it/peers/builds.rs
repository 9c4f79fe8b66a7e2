//! Builds the programs in other languages once, in a cache outside the checkout.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns a file below `tests/peers`.
pub(super) fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(path)
}

pub(super) fn cache() -> PathBuf {
    #[allow(clippy::disallowed_methods)] // the build cache is shared with later runs
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME")
        .or_else(|| Some(folder("HOME")?.join(".cache")))
        .expect("neither XDG_CACHE_HOME nor HOME says where to build");
    let cache = cache.join("biplane/peers");
    fs::create_dir_all(&cache).unwrap();
    cache
}

/// Locks out other test runs until the file is dropped.
pub(super) fn lock(name: &str) -> File {
    let file = File::create(cache().join(format!(".{name}.lock"))).unwrap();
    file.lock().unwrap();
    file
}

fn run(what: &str, command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{what}: cannot run {}: {e}", command.get_program().display()));
    assert!(
        output.status.success(),
        "{what} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns a program of `function-go`.
pub(super) fn go(program: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let _lock = lock("go");
        let folder = cache().join("go");
        fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("go");
        command.arg("build").arg("-o").arg(&folder).arg("./...");
        run("building the Go peers", command.current_dir(source("function-go")));
        folder
    });
    folder.join(program)
}

/// Finds a Python of version 3.11 or later that can create environments. `cargo xtask test` tries
/// the same names in the same order.
fn interpreter() -> &'static str {
    const CHECK: &str = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))";
    let works = |name: &str| {
        Command::new(name).args(["-c", CHECK]).output().is_ok_and(|output| output.status.success())
    };
    ["python3.11", "python3.12", "python3.13", "python3"]
        .into_iter()
        .find(|name| works(name))
        .expect("no Python 3.11 or later with venv and ensurepip was found")
}

/// Returns a program of the environment that `function-python/requirements.txt` describes.
pub(super) fn python(program: &str) -> PathBuf {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    let folder = INSTALLED.get_or_init(|| {
        let _lock = lock("python");
        let folder = cache().join("python");
        let requirements = source("function-python/requirements.txt");
        let (wanted, installed) = (fs::read(&requirements).unwrap(), folder.join("installed.txt"));
        if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
            return folder;
        }
        let _ = fs::remove_dir_all(&folder);
        let mut command = Command::new(interpreter());
        run("making a Python environment", command.args(["-m", "venv"]).arg(&folder));
        let mut command = Command::new(folder.join("bin/pip"));
        command.args(["install", "--quiet", "--requirement"]).arg(&requirements);
        run("installing the Python peers", &mut command);
        fs::write(installed, wanted).unwrap();
        folder
    });
    folder.join("bin").join(program)
}
