//! Builds the programs of `tests/peers/function-rust`, next to those of other languages.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use biplane_testkit::peers::{cache, lock, source};

/// Builds one of the programs. The first build takes minutes, so cargo's output is shown.
pub(super) fn program(name: &str) -> PathBuf {
    // Locked while the tests run: the programs of another checkout would have the same names.
    static BUILT: OnceLock<(File, PathBuf)> = OnceLock::new();
    let (_, folder) = BUILT.get_or_init(|| {
        let lock = lock("rust");
        let folder = cache().join("rust");
        // Not with a macro, whose output the test harness captures.
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
