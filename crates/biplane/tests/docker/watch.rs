//! Tests that containers keep running while a command watches its files.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Stdio};

use crate::Case;
use crate::daemon::Daemon;
use crate::images::{ENGINE, FUNCTION};
use crate::work::{Work, stop};

pub(crate) const CASES: &[Case] = &[(
    "only_the_container_of_the_function_that_changes_is_replaced",
    only_the_container_of_the_function_that_changes_is_replaced,
)];

/// Reads until a line contains a text.
fn until_line(lines: &mut BufReader<impl Read>, wanted: &str) {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        assert_ne!(lines.read_line(&mut seen).unwrap(), 0, "no {wanted:?} in\n{seen}");
    }
}

fn until_rendered(stdout: &mut BufReader<ChildStdout>) {
    until_line(stdout, "Pipeline step \"second\": hello");
}

/// The ids of all containers.
fn ids(daemon: &Daemon) -> Vec<String> {
    let mut ids: Vec<_> = daemon.containers().into_iter().map(|c| c.id.unwrap()).collect();
    ids.sort();
    ids
}

/// How many of the containers still exist.
fn kept(before: &[String], after: &[String]) -> usize {
    before.iter().filter(|id| after.contains(id)).count()
}

fn only_the_container_of_the_function_that_changes_is_replaced(daemon: &Daemon) {
    let engine = format!("--crossplane-image={ENGINE}");
    for flags in [&["--watch"][..], &["--watch", &engine]] {
        let work = Work::with(daemon, FUNCTION, &[("runtime-docker-env", "A=1")]).and(
            "second",
            FUNCTION,
            &[("runtime-docker-env", "B=1")],
        );
        let mut command = work.command(flags);
        let list = std::fs::read_to_string(work.path("functions.yaml")).unwrap();
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child: Child = piped.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        until_rendered(&mut stdout);
        let first = ids(daemon);
        assert_eq!(first.len(), 2);

        work.write("functions.yaml", &list.replace("A=1", "A=2"));
        until_rendered(&mut stdout);
        let second = ids(daemon);
        assert_eq!((second.len(), kept(&first, &second)), (2, 1));

        // A function that fails to start does not affect the others.
        let never = "A=2'\n    render.crossplane.io/runtime-docker-pull-policy: Never\n    render.crossplane.io/runtime-docker-image: 'biplane.example/none";
        work.write("functions.yaml", &list.replace("A=1", never));
        until_line(&mut stderr, "not found and pull policy is \"Never\"");
        work.write("functions.yaml", &list);
        until_rendered(&mut stdout);
        let third = ids(daemon);
        assert_eq!((third.len(), kept(&first, &third), kept(&second, &third)), (2, 1, 1));

        child.stderr = Some(stderr.into_inner());
        assert_eq!(stop(child, "-INT").0, Some(130));
        daemon.assert_empty();
    }
}
