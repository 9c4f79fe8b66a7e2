//! Tests commands that are interrupted while the Docker engine creates something for them.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::Stdio;

use crate::Case;
use crate::between::{Between, Fate};
use crate::daemon::Daemon;
use crate::images::{DEAF, ENGINE, FUNCTION};
use crate::work::{Work, end, send, stop, until};

pub(crate) const CASES: &[Case] = &[
    ("a_container_that_is_just_made_is_removed", a_container_that_is_just_made_is_removed),
    ("a_container_nobody_heard_of_is_removed", a_container_nobody_heard_of_is_removed),
    ("a_container_that_comes_late_is_removed", a_container_that_comes_late_is_removed),
    ("a_network_that_comes_late_is_removed", a_network_that_comes_late_is_removed),
    ("containers_are_removed_while_nobody_reads", containers_are_removed_while_nobody_reads),
    ("what_a_killed_command_left_is_removed", what_a_killed_command_left_is_removed),
];

/// A part of the request that creates the engine's container, and of that for a function's
/// container.
const ENGINE_BODY: &str = r#""Image":"biplane.example/tests:engine""#;
const FUNCTION_BODY: &str = r#""Image":"biplane.example/tests:function""#;
/// The path that removes containers named by the program. Other containers have ids.
const REMOVAL: &str = "/containers/crossplane-render-";
const NETWORK_REMOVAL: &str = "/networks/crossplane-render-";

/// Interrupts a command once a request has arrived.
fn interrupt(daemon: &Daemon, text: &'static str, fate: Fate, flags: &[&str]) {
    let between = Between::new(daemon, text, fate);
    let work = Work::with(daemon, FUNCTION, &[]);
    let mut command = work.command(flags);
    command.env("DOCKER_HOST", between.host());
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    between.meet();
    send(&child, "-INT");
    if let Fate::Waits = fate {
        between.let_through();
    }
    let (code, stderr) = end(child);
    assert_eq!((code, stderr.as_str()), (Some(130), "biplane: error: interrupted\n"));
    daemon.assert_empty();
}

/// RX-13
fn a_container_that_is_just_made_is_removed(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    interrupt(daemon, ENGINE_BODY, Fate::Waits, &[&engine]);
}

/// RX-13
fn a_container_nobody_heard_of_is_removed(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    interrupt(daemon, ENGINE_BODY, Fate::StaysUnanswered, &[&engine]);
    interrupt(daemon, FUNCTION_BODY, Fate::StaysUnanswered, &[]);
}

/// RX-13
fn a_container_that_comes_late_is_removed(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    interrupt(daemon, ENGINE_BODY, Fate::WaitsFor(REMOVAL), &[&engine]);
}

/// RX-13, ENG-4
fn a_network_that_comes_late_is_removed(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    interrupt(daemon, "/networks/create", Fate::WaitsFor(NETWORK_REMOVAL), &[&engine]);
}

/// A command that is killed cannot clean up, so the next one does. What belongs to a command that
/// still runs stays.
fn what_a_killed_command_left_is_removed(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    let work = Work::with(daemon, FUNCTION, &[]).and("second", DEAF, &[]);
    let start = || {
        let mut command = work.command(&[&engine]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut killed = start();
    until("three containers", || daemon.containers().len() == 3);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ids = || daemon.containers().into_iter().map(|c| c.id).collect::<BTreeSet<_>>();
    let (strays, networks) = (ids(), daemon.networks());
    let running = start();
    until("three other containers", || {
        let ids = ids();
        ids.len() == 3 && ids.is_disjoint(&strays)
    });
    until("another network", || {
        let found = daemon.networks();
        found.len() == 1 && found != networks
    });
    let theirs = ids();
    Work::with(daemon, FUNCTION, &[]).render(&[]).assert_rendered();
    assert_eq!(ids(), theirs, "they are still needed");
    let (code, _) = stop(running, "-INT");
    assert_eq!(code, Some(130));
}

/// The output is larger than a pipe's buffer, so that the command blocks.
fn containers_are_removed_while_nobody_reads(daemon: &Daemon) {
    for flags in [&["-x"][..], &["-x", "--watch"]] {
        let work = Work::with(daemon, FUNCTION, &[]);
        let mut command = work.command(flags);
        let text = "x".repeat(1 << 20);
        let composite =
            "apiVersion: streams.example.org/v1\nkind: Queue\nmetadata:\n  name: orders\n";
        work.write("xr.yaml", &format!("{composite}spec:\n  text: {text}\n"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let (code, _) = stop(child, "-TERM");
        assert_eq!(code, Some(130), "{flags:?}");
        daemon.assert_empty();
    }
}
