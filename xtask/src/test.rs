//! The one command that decides whether a change is good.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{cargo, env, output, tidy};

/// A program that the run needs, and the Debian package that brings it.
const NEEDS: &[(&str, &str)] = &[("git", "git")];
/// The same of programs without which some tests are skipped and say so.
const WANTS: &[(&str, &str)] =
    &[("dockerd", "docker.io"), ("ip", "iproute2"), ("zsh", "zsh"), ("fish", "fish")];

type Step<'a> = (&'static str, Box<dyn Fn() -> Result<()> + 'a>);

/// Runs every step up to the first that fails, then says how long each took.
fn run_steps(steps: &[Step<'_>]) -> Result<()> {
    let start = Instant::now();
    let mut took: Vec<(&str, Duration, &str)> = Vec::new();
    let mut failure = None;
    for (name, step) in steps {
        println!("==> {name}");
        let begun = Instant::now();
        let outcome = step();
        took.push((*name, begun.elapsed(), if outcome.is_ok() { "ok" } else { "FAILED" }));
        if let Err(error) = outcome {
            failure = Some((name, error));
            break;
        }
    }
    println!("\nsummary");
    for (name, time, outcome) in &took {
        println!("  {name:<10} {:>8.1} s  {outcome}", time.as_secs_f64());
    }
    for (name, _) in &steps[took.len()..] {
        println!("  {name:<10} {:>10}  not run", "");
    }
    println!("  {:<10} {:>8.1} s", "total", start.elapsed().as_secs_f64());
    match failure {
        Some((name, error)) => Err(error.context(format!("step {name} failed"))),
        None => Ok(()),
    }
}

pub(crate) fn run(root: &Path, args: &[String]) -> Result<()> {
    run_steps(&[
        ("packages", Box::new(packages)),
        ("fmt", Box::new(|| run_cargo(&["fmt", "--all", "--check"]))),
        ("clippy", Box::new(clippy)),
        ("tidy", Box::new(|| tidy::run(root, true))),
        ("env", Box::new(|| env::run(false))),
        ("test", Box::new(|| cargo_test(args))),
    ])
}

fn clippy() -> Result<()> {
    run_cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
}

fn cargo_test(args: &[String]) -> Result<()> {
    crate::run(cargo().args(["test", "--workspace", "--locked", "--"]).args(args))
}

fn run_cargo(args: &[&str]) -> Result<()> {
    crate::run(cargo().args(args))
}

/// Installs what is missing where that is possible, else says what to install.
fn packages() -> Result<()> {
    let (needed, wanted) = (missing(NEEDS), missing(WANTS));
    if !needed.is_empty() {
        install(&needed)?;
    }
    if !wanted.is_empty()
        && let Err(error) = install(&wanted)
    {
        println!("tests that use {} will be skipped: {error:#}", wanted.join(" and "));
    }
    Ok(())
}

fn missing(programs: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    let missing = programs.iter().filter(|(program, _)| !exists(program));
    missing.map(|(_, package)| *package).collect()
}

/// Whether there is such a program, whatever it says to an unknown flag.
fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn install(packages: &[&str]) -> Result<()> {
    let root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || !exists("apt-get") {
        bail!("missing packages that cannot be installed from here: {}", packages.join(" "));
    }
    println!("installing {}", packages.join(" "));
    crate::run(Command::new("apt-get").args(["update", "-q"]))?;
    crate::run(
        Command::new("apt-get")
            .args(["install", "-qy", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn stops_at_the_first_failure_and_names_it() {
        let ran = RefCell::new(Vec::new());
        let step = |name: &'static str, good: bool| -> Step<'_> {
            let ran = &ran;
            (
                name,
                Box::new(move || {
                    ran.borrow_mut().push(name);
                    if good { Ok(()) } else { bail!("broken") }
                }),
            )
        };
        let error =
            run_steps(&[step("one", true), step("two", false), step("three", true)]).unwrap_err();
        assert_eq!(format!("{error:#}"), "step two failed: broken");
        assert_eq!(*ran.borrow(), ["one", "two"]);
    }

    #[test]
    fn the_readme_names_what_continuous_integration_runs() {
        let read = |name| std::fs::read_to_string(crate::root().join(name)).unwrap();
        let script = read(".ci/run");
        let command = script.lines().find_map(|line| line.strip_prefix("exec ")).unwrap();
        assert!(read("README.md").contains(&format!("```sh\n{command}\n```")), "{command}");
    }
}
