//! Checks project rules that no lint checks.

mod files;
mod graph;
mod licences;
mod links;
mod modules;
mod rules;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{cargo, codegen, output};

/// A separate workspace that uses ours. Its lock file contains our dependencies.
const PEERS: &str = "tests/peers/function-rust/Cargo.toml";

/// Checks every rule and reports all violations at once. Without `check` it first formats and
/// generates.
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
    let files = files::read(root)?;
    findings.extend(files::check(root, &files));
    findings.extend(cited(&files)?);
    findings.extend(cycles(&files)?);
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

/// Citations of rules that no page of `spec/` defines.
fn cited(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let texts = || files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let rules = rules::Rules::read(texts())?;
    Ok(texts().flat_map(|(name, text)| rules.check(name, text)).collect())
}

/// Cycles between the modules of each crate.
fn cycles(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut crates: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for (name, text) in files.iter().filter(|(name, _)| files::has_extension(name, "rs")) {
        // Other workspaces, examples and tests are not checked.
        if let Some((krate, file)) = name.split_once("/src/")
            && (krate == "xtask" || krate.strip_prefix("crates/").is_some_and(|k| !k.contains('/')))
        {
            crates.entry(krate).or_default().push((file.to_owned(), text.clone()));
        }
    }
    let mut findings = Vec::new();
    for (krate, files) in crates {
        findings.extend(modules::check(krate, &files)?);
    }
    Ok(findings)
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
