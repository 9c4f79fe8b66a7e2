//! Builds the programs of `tests/peers/function-rust` beside those of other languages.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::builds::{cache, lock, source};

/// One of the programs. Minutes pass when nothing of it is there yet, so that cargo says
/// what it does.
pub(super) fn program(name: &str) -> PathBuf {
    // Kept for as long as the tests run: another checkout's programs would have the same names.
    static BUILT: OnceLock<(File, PathBuf)> = OnceLock::new();
    let (_, folder) = BUILT.get_or_init(|| {
        let lock = lock("rust");
        let folder = cache().join("rust");
        // Not through a macro, whose words tests swallow.
        let _ = writeln!(std::io::stderr(), "building the Rust peers in {}", folder.display());
        #[allow(clippy::disallowed_methods)] // set by Cargo
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["build", "--locked", "--bins", "--target-dir"]).arg(&folder);
        let status = command.current_dir(source("function-rust")).status().unwrap();
        assert!(
            status.success(),
            "building the Rust peers failed; `cargo xtask tidy` brings their lock file up to date"
        );
        (lock, folder.join("debug"))
    });
    folder.join(name)
}
