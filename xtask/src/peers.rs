//! Builds the programs in other languages that tests talk to.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run;

/// Builds each Go module in `tests/peers` into `target/peers`, where tests look for it by the
/// name of its folder.
pub(crate) fn build(root: &Path) -> Result<()> {
    let mut folders = Vec::new();
    if let Ok(entries) = std::fs::read_dir(root.join("tests/peers")) {
        for entry in entries {
            folders.push(entry?.path());
        }
    }
    folders.retain(|folder| folder.join("go.mod").is_file());
    folders.sort();
    for folder in folders {
        let name = folder.file_name().context("a folder has a name")?;
        println!("building peer {}", name.to_string_lossy());
        run(Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"])
            .arg(root.join("target/peers").join(name))
            .arg(".")
            .current_dir(&folder)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off"))
        .context("cannot build a peer: Go 1.26 is needed")?;
    }
    Ok(())
}
