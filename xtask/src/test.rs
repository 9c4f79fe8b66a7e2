//! `cargo xtask test`: runs all checks that a change must pass.

pub(crate) mod alone;
mod report;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cargo, env, machine, tidy};
use report::Report;

type Step<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

/// Runs all checks and lists the failures.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    println!("==> machine");
    machine::prepare(root)?;
    run_steps(&[
        ("fmt", Box::new(|| run_cargo(&["fmt", "--all", "--check"]))),
        ("clippy", Box::new(clippy)),
        ("tidy", Box::new(|| tidy::run(root, true))),
        ("env", Box::new(env::run)),
        ("test", Box::new(|| cargo_test(args))),
    ])
}

/// Runs every step, then reports how long each took and which failed.
fn run_steps(steps: &[Step<'_>]) -> Result<()> {
    let start = Instant::now();
    let mut took: Vec<(&str, Duration, Result<()>)> = Vec::new();
    for (name, step) in steps {
        println!("==> {name}");
        let begun = Instant::now();
        let outcome = step();
        if let Err(error) = &outcome {
            println!("{name} failed: {error:#}");
        }
        took.push((name, begun.elapsed(), outcome));
    }
    println!("\nsummary");
    for (name, time, outcome) in &took {
        let outcome = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("  {name:<10} {:>8.1} s  {outcome}", time.as_secs_f64());
    }
    println!("  {:<10} {:>8.1} s", "total", start.elapsed().as_secs_f64());
    let failures: Vec<String> = took
        .iter()
        .filter_map(|(name, _, outcome)| Some(format!("{name}: {:#}", outcome.as_ref().err()?)))
        .collect();
    if failures.is_empty() {
        return Ok(());
    }
    bail!("not everything passed\n{}", failures.join("\n"))
}

fn clippy() -> Result<()> {
    run_cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

fn cargo_test(args: &[String]) -> Result<()> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast", "--"]).args(args);
    let (success, report) = watch(&mut command)?;
    if success {
        return Ok(());
    }
    bail!("{report}")
}

/// Shows the output of a command while it runs, and parses it.
fn watch(command: &mut Command) -> Result<(bool, Report)> {
    // One pipe for both streams keeps cargo's lines about a test binary next to the output of the
    // binary.
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("cannot start cargo")?;
    // The command holds the write end of the pipe until it is replaced. Otherwise reading would
    // never end.
    command.stdout(std::process::Stdio::inherit()).stderr(std::process::Stdio::inherit());
    let mut report = Report::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        report.line(&line);
    }
    Ok((child.wait()?.success(), report))
}

fn run_cargo(args: &[&str]) -> Result<()> {
    crate::run(cargo().args(args))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn all_steps_run_and_all_failures_are_listed() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str, good: bool| -> Step<'_> {
            let ran = &ran;
            (
                name,
                Box::new(move || {
                    ran.borrow_mut().push(name);
                    if good { Ok(()) } else { bail!("broken {name}") }
                }),
            )
        };
        let steps = [step("one", false), step("two", true), step("three", false)];
        let error = run_steps(&steps).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "not everything passed\none: broken one\nthree: broken three"
        );
        assert_eq!(*ran.borrow(), ["one", "two", "three"]);
        assert!(run_steps(&[step("four", true)]).is_ok());
    }

    #[test]
    fn both_streams_are_read_in_order() {
        let script = "echo 'test a ... FAILED'; \
                      echo 'error: test failed, to rerun pass `-p one --lib`' >&2; \
                      echo 'test b ... FAILED'; \
                      echo 'error: test failed, to rerun pass `-p two --lib`' >&2; exit 101";
        let (success, report) = watch(Command::new("sh").args(["-c", script])).unwrap();
        assert!(!success);
        assert_eq!(
            report.to_string(),
            "2 tests failed\n  -p one --lib\n    a\n  -p two --lib\n    b"
        );
    }

    #[test]
    fn the_readme_names_what_continuous_integration_runs() {
        let read = |name| std::fs::read_to_string(crate::root().join(name)).unwrap();
        let script = read(".ci/run");
        let command = script.lines().find_map(|line| line.strip_prefix("exec ")).unwrap();
        assert!(read("README.md").contains(&format!("```sh\n{command}\n```")), "{command}");
    }
}
