//! Builds the Python environment of the peers once, in a cache outside the checkout.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use biplane_testkit::peers::{cache, lock, run, source};

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
