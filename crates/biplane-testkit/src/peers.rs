//! Builds the programs of `tests/peers` that are written in Go, once, in a cache outside the
//! checkout.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns a file below `tests/peers`.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers").join(path)
}

/// The folder in which peers are built.
pub fn cache() -> PathBuf {
    #[allow(clippy::disallowed_methods)] // the build cache is shared with later runs
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME")
        .or_else(|| Some(folder("HOME")?.join(".cache")))
        .expect("neither XDG_CACHE_HOME nor HOME says where to build");
    let cache = cache.join("biplane/peers");
    fs::create_dir_all(&cache).expect("a folder for peers");
    cache
}

/// Locks out other test runs until the file is dropped.
pub fn lock(name: &str) -> File {
    let file = File::create(cache().join(format!(".{name}.lock"))).expect("a lock");
    file.lock().expect("a lock");
    file
}

/// Runs a command that prepares a peer. Panics with what it said if it fails.
pub fn run(what: &str, command: &mut Command) {
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

/// Returns a program of `function-go`: `server`, `client` or `emitter`.
pub fn go(program: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let _lock = lock("go");
        let folder = cache().join("go");
        fs::create_dir_all(&folder).expect("a folder for the Go peers");
        let mut command = Command::new("go");
        command.arg("build").arg("-o").arg(&folder).arg("./...");
        run("building the Go peers", command.current_dir(source("function-go")));
        folder
    });
    folder.join(program)
}
