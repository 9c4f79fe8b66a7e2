//! The tasks of this workspace. `cargo xtask help` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::disallowed_methods)] // tasks read the environment of a developer or of CI

mod codegen;
mod dist;
mod env;
mod machine;
mod package;
mod program;
mod tar;
mod test;
mod tidy;
mod torture;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks of this workspace")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Generate the Rust code of the wire contracts in proto/.
    Codegen {
        /// Fail if the committed code is out of date, write nothing.
        #[arg(long)]
        check: bool,
    },
    /// Build the release archive, and test it.
    Dist {
        /// A static program to pack instead of building one.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Provide etcd, kube-apiserver, kube-controller-manager and kubectl: found, cached or built.
    Env,
    /// Build packages of the built-in functions, for a registry or for Docker.
    Package {
        /// A static program to pack instead of building one.
        #[arg(long)]
        program: Option<PathBuf>,
        /// Where to write the packages.
        #[arg(long, default_value = "target/packages")]
        out: PathBuf,
    },
    /// Format, generate, and check the project rules that no lint checks.
    Tidy {
        /// Only check, write nothing.
        #[arg(long)]
        check: bool,
    },
    /// Run everything that must pass, and list all failures.
    Test {
        /// Arguments for `cargo test` after `--`, such as `--skip NAME`.
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run every test in its own process, in random order.
    TestAlone(test::alone::Args),
    /// Give the built-in functions inputs that hurt, in a release build, and print what they cost.
    Torture {
        /// How long to go on with damaged copies of the inputs.
        #[arg(long, default_value_t = 180)]
        seconds: u64,
    },
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// A command of the cargo that started us, in the workspace.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Cargo's variables about this package would make build scripts that read them run again, and
    // everything that depends on them compile again.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_about_us) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets a variable to describe the package that it runs.
fn is_about_us(variable: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// Runs a command that prints its own output.
fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    if !status.success() {
        bail!("{program} failed with {status}");
    }
    Ok(())
}

/// Runs a command and returns its output.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed other than text"))
}

fn main() -> ExitCode {
    let outcome = match Args::parse().task {
        Task::Codegen { check } => codegen::run(&root(), check),
        Task::Dist { program } => dist::run(&root(), program),
        Task::Env => env::run(),
        Task::Package { program, out } => package::run(&root(), program, &out),
        Task::Tidy { check } => tidy::run(&root(), check),
        Task::Test { args } => test::run(&root(), &args),
        Task::TestAlone(args) => test::alone::run(&args),
        Task::Torture { seconds } => torture::torture(seconds),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_not_told_about_the_package_that_starts_it() {
        assert!(is_about_us("CARGO_MANIFEST_DIR") && is_about_us("CARGO_PKG_VERSION"));
        assert!(!is_about_us("CARGO_HOME") && !is_about_us("CARGO_TARGET_DIR"));
        let command = cargo();
        // Cargo also starts the tests.
        assert!(command.get_envs().any(|env| env == ("CARGO_MANIFEST_DIR".as_ref(), None)));
    }
}
