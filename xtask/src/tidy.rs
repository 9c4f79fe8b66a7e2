//! House rules that no lint knows.

mod files;
mod graph;
mod licences;
mod links;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{cargo, codegen, output};

/// A workspace of its own that uses ours: what ours depends on is in its lock file too.
const PEERS: &str = "tests/peers/function-rust/Cargo.toml";

/// Checks every rule and reports all that is wrong at once; without `check` first writes what
/// can be written.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    if !check {
        codegen::run(root, false)?;
        crate::run(cargo().args(["fmt", "--all"]))?;
        output(cargo().args(["fetch", "--manifest-path", PEERS]))?;
    }
    let mut findings = Vec::new();
    if let Err(stale) = codegen::run(root, true) {
        findings.push(format!("{stale:#}"));
    }
    let metadata = output(cargo().args(["metadata", "--format-version=1", "--locked"]))?;
    let metadata = serde_json::from_str(&metadata).context("cannot read cargo metadata")?;
    findings.extend(graph::check(&metadata));
    findings.extend(licences::check(&metadata));
    findings.extend(files::check(root)?);
    if let Err(stale) = output(cargo().args(["fetch", "--locked", "--manifest-path", PEERS])) {
        findings.push(format!("{PEERS}: {stale:#}"));
    }
    if findings.is_empty() {
        println!("tidy");
        return Ok(());
    }
    for finding in &findings {
        println!("{finding}");
    }
    bail!("{} to put right", count(findings.len(), "thing"));
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
