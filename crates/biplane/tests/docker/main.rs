//! Tests functions and engines in containers, with a Docker engine that only the tests use.
//!
//! The tests run in their own namespaces, so that the engine's networks and processes do not mix
//! with those of the machine, and all of them are removed when the tests end.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions only, not their helpers

mod between;
mod daemon;
mod engines;
mod functions;
mod images;
mod interrupts;
mod project;
mod registry;
mod remote;
mod watch;
mod work;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use daemon::Daemon;

/// Set inside the namespaces.
const INSIDE: &str = "BIPLANE_DOCKER_TESTS_INSIDE";
const UNSHARE: [&str; 6] = ["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"];

/// The name of a test, and the test.
type Case = (&'static str, fn(&Daemon));

#[allow(clippy::print_stdout)] // in addition to the harness's output
fn main() {
    let mut arguments = Arguments::from_args();
    let cases = [
        functions::CASES,
        engines::CASES,
        interrupts::CASES,
        project::CASES,
        registry::CASES,
        remote::CASES,
        watch::CASES,
    ];
    let cases = cases.concat();
    if arguments.list {
        libtest_mimic::run(&arguments, trials(&cases, None)).exit();
    }
    // One at a time: they count what is left in the engine.
    arguments.test_threads = Some(1);
    #[allow(clippy::disallowed_methods)] // set by the process that started this one
    let started = if std::env::var_os(INSIDE).is_some() { Daemon::start() } else { go_inside() };
    let daemon = match started {
        Ok(daemon) => Some(Arc::new(daemon)),
        Err(reason) => {
            println!("\nskipped, since there is no Docker engine: {reason}");
            None
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials(&cases, daemon.as_ref()));
    drop(daemon);
    conclusion.exit();
}

/// Starts this program again in new namespaces. Returns only if that is impossible.
fn go_inside() -> Result<Daemon, String> {
    if !Daemon::is_installed() {
        return Err("dockerd is not installed (Debian: docker.io)".into());
    }
    let tried = Command::new("unshare").args(UNSHARE).arg("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return Err("namespaces cannot be made here, for which one must be root".into());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut inside = Command::new("unshare");
    inside.args(UNSHARE).arg(program).args(std::env::args_os().skip(1)).env(INSIDE, "1");
    Err(inside.exec().to_string())
}

fn trials(cases: &[Case], daemon: Option<&Arc<Daemon>>) -> Vec<Trial> {
    let trial = |&(name, run): &Case| {
        let (name, daemon) = (format!("needs_a_docker_engine::{name}"), daemon.cloned());
        let missing = daemon.is_none();
        let test = move || match daemon {
            None => Err(Failed::from("there is no Docker engine")),
            Some(daemon) => {
                daemon.clear();
                run(&daemon);
                daemon.assert_empty();
                Ok(())
            }
        };
        Trial::test(name, test).with_ignored_flag(missing)
    };
    cases.iter().map(trial).collect()
}
