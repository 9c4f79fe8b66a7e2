//! Runs every test in its own process, in random order.
//!
//! A test that passes only after or together with another one fails here. Test binaries are built
//! once, and each test is then selected by its exact name. This includes the cases of recordings,
//! which are separate tests. Documentation tests are left out, because they always run in their own
//! processes.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo;

/// The arguments of `cargo xtask test-alone`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Repeat the order of an earlier run.
    #[arg(long)]
    seed: Option<u64>,
    /// Only tests of this package. Can be given several times.
    #[arg(long, short)]
    package: Vec<String>,
    /// Only tests whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Number of tests that run at the same time. The default is one for each processor.
    #[arg(long, short)]
    jobs: Option<usize>,
}

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    /// Its name in messages.
    label: String,
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
}

/// Builds all tests, runs each alone, and lists those that failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let seed = args.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let mut tests = Vec::new();
    for binary in build(&args.package)? {
        tests.extend(list(&binary)?.into_iter().map(|name| (binary.clone(), name)));
    }
    if let Some(filter) = &args.filter {
        tests.retain(|(_, name)| name.contains(filter));
    }
    shuffle(&mut tests, seed);
    let all = tests.len();
    println!("{all} tests, each alone, with --seed {seed}");
    let begun = Instant::now();
    let failed = run_all(tests, args.jobs);
    println!("{all} tests in {:.1} s", begun.elapsed().as_secs_f64());
    if all == 0 {
        bail!("there is no such test");
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!("{} of {all} tests failed alone (--seed {seed})\n  {}", failed.len(), failed.join("\n  "))
}

fn build(packages: &[String]) -> Result<Vec<Binary>> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--locked", "--message-format=json-render-diagnostics"]);
    match packages {
        [] => command.arg("--workspace"),
        packages => command.args(packages.iter().flat_map(|package| ["--package", package])),
    };
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(child.stdout.take().context("cargo has no output")?).lines() {
        let message = serde_json::from_str(&line?).context("cannot read what cargo says")?;
        binaries.extend(binary(&message));
    }
    if !child.wait()?.success() {
        bail!("the tests do not compile");
    }
    Ok(binaries)
}

/// The test program that a message of cargo describes, if any.
fn binary(message: &Value) -> Option<Binary> {
    let path = PathBuf::from(message["executable"].as_str()?);
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let kind = message["target"]["kind"][0].as_str()?;
    let name = message["target"]["name"].as_str()?;
    let label = match kind {
        "lib" => format!("-p {package} --lib"),
        kind => format!("-p {package} --{kind} {name}"),
    };
    Some(Binary { label, path, folder })
}

impl Binary {
    /// The program as cargo would start it.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

fn list(binary: &Binary) -> Result<Vec<String>> {
    let listing = crate::output(binary.command().args(["--list", "--format", "terse"]))
        .with_context(|| format!("cannot list the tests of {}", binary.label))?;
    Ok(listing.lines().filter_map(listed).map(str::to_owned).collect())
}

/// The name of a test in a listing. Some harnesses print its kind in brackets before it.
fn listed(line: &str) -> Option<&str> {
    let name = line.strip_suffix(": test")?;
    match name.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((_, name)) => Some(name),
        None => Some(name),
    }
}

/// Fisher–Yates shuffle with the SplitMix64 generator. The same seed gives the same order on every
/// machine.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for end in (1..items.len()).rev() {
        items.swap(end, (next() % (end as u64 + 1)) as usize);
    }
}

/// Runs the tests and returns the failures, sorted.
fn run_all(tests: Vec<(Binary, String)>, jobs: Option<usize>) -> Vec<String> {
    let default = std::thread::available_parallelism().map_or(1, usize::from);
    let all = tests.len();
    let (queue, failed) = (Mutex::new(VecDeque::from(tests)), Mutex::new(Vec::new()));
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let done = all - queue.len();
        if done > 0 && done.is_multiple_of(100) {
            println!("{done} of {all}");
        }
        queue.pop_front()
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or(default).max(1) {
            scope.spawn(|| {
                while let Some((binary, name)) = next() {
                    if let Err(why) = run_one(&binary, &name) {
                        println!("FAILED {} {name}\n{why:#}", binary.label);
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(format!("{} {name}", binary.label));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    failed
}

fn run_one(binary: &Binary, name: &str) -> Result<()> {
    let output = binary.command().args([name, "--exact"]).stdin(Stdio::null()).output();
    judge(&output.context("cannot start it")?)
}

fn judge(output: &Output) -> Result<()> {
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{}{}{}", printed, errors, output.status);
    }
    // A name that matches no test would pass.
    if !printed.lines().any(|line| line.starts_with("running ") && line != "running 0 tests") {
        bail!("{printed}no test ran");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(1);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        shuffle::<u32>(&mut [], 1);
    }

    #[test]
    fn test_programs_are_told_from_others() {
        let message = |kind: &str, test: bool, executable: Value| {
            binary(&json!({
                "reason": "compiler-artifact",
                "manifest_path": "/tree/crates/a/Cargo.toml",
                "target": {"kind": [kind], "name": "it"},
                "profile": {"test": test},
                "executable": executable,
            }))
        };
        let found = message("test", true, json!("/tree/target/it-1")).unwrap();
        assert_eq!(found.label, "-p a --test it");
        assert_eq!(found.path, PathBuf::from("/tree/target/it-1"));
        assert_eq!(found.folder, PathBuf::from("/tree/crates/a"));
        assert_eq!(message("lib", true, json!("/tree/target/a-1")).unwrap().label, "-p a --lib");
        assert_eq!(message("bin", false, json!("/tree/target/a")), None);
        assert_eq!(message("lib", false, Value::Null), None);
    }

    #[test]
    fn listings_of_both_harnesses_are_read() {
        assert_eq!(listed("a::b: test"), Some("a::b"));
        assert_eq!(listed("[docker] a::b: test"), Some("a::b"));
        assert_eq!(listed("a::b: benchmark"), None);
        assert_eq!(listed(""), None);
    }

    #[test]
    fn a_test_must_run_and_pass() {
        let judge =
            |script: &str| judge(&Command::new("sh").args(["-c", script]).output().unwrap());
        assert!(judge("echo; echo running 1 test").is_ok());
        let error = judge("echo running 1 test; echo reason >&2; exit 101").unwrap_err();
        assert!(error.to_string().contains("reason"), "{error}");
        let error = judge("echo running 0 tests").unwrap_err();
        assert!(error.to_string().ends_with("no test ran"), "{error}");
    }

    #[test]
    fn every_test_runs_once_and_failures_are_listed() {
        // A shell replaces the test program. It runs the file that its argument names.
        let folder = tempfile::tempdir().unwrap();
        for (name, ends) in [("one", "true"), ("bad", "false"), ("two", "true")] {
            let script = format!("echo {name} >> ran\necho running 1 test\n{ends}\n");
            std::fs::write(folder.path().join(name), script).unwrap();
        }
        let folder_path = folder.path().to_owned();
        let binary = Binary { label: "-p a".into(), path: "sh".into(), folder: folder_path };
        let tests = ["one", "bad", "two"].map(|name| (binary.clone(), name.to_owned())).to_vec();
        assert_eq!(run_all(tests, Some(2)), ["-p a bad"]);
        let ran = std::fs::read_to_string(folder.path().join("ran")).unwrap();
        let mut ran: Vec<&str> = ran.lines().collect();
        ran.sort_unstable();
        assert_eq!(ran, ["bad", "one", "two"]);
    }
}
