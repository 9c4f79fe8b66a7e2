//! Tests that servers are supervised while they start and reaped when their owner ends.

use super::*;

/// A server that runs the given shell script, with its group.
fn server(dir: &Path, script: &str) -> (Server, Group) {
    let group = Group::start(Some(dir)).unwrap();
    let mut command = Command::new("sh");
    let server = Server::spawn("sh", command.args(["-c", script]), dir.join("log"), &group);
    (server.unwrap(), group)
}

fn never() -> Result<(), String> {
    Err("connection refused".into())
}

#[test]
fn a_server_that_stops_leaves_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, _group) =
        server(dir.path(), "for i in $(seq 20); do echo line $i; done; exit 3");
    let error = server.wait_ready(never, Duration::from_mins(1), &mut |_| ()).unwrap_err();
    let EnvError::Stopped { status, log, .. } = error else { panic!("{error}") };
    assert_eq!(status, "exit status: 3");
    assert!(log.starts_with("line 6\n") && log.ends_with("line 20"), "{log}");
}

#[test]
fn last_words_are_those_of_the_last_process() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("log"), "first\n").unwrap();
    let (mut second, _group) = server(dir.path(), "echo second; exit 1");
    let error = second.wait_ready(never, Duration::from_mins(1), &mut |_| ()).unwrap_err();
    let EnvError::Stopped { log, .. } = error else { panic!("{error}") };
    assert_eq!(log, "second");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, _group) = server(dir.path(), "exec sleep 600");
    let error = server.wait_ready(never, Duration::ZERO, &mut |_| ()).unwrap_err();
    let EnvError::NotReady { reason, .. } = error else { panic!("{error}") };
    assert_eq!(reason, "connection refused");
}

#[test]
fn a_paused_server_stands_still_until_it_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, _group) = server(dir.path(), "exec sleep 600");
    server.pause().unwrap();
    server.pause().unwrap();
    // A stopped process does not notice that it shall end.
    server.signal(Signal::SIGTERM).unwrap();
    server.still_runs().unwrap();
    server.resume().unwrap();
    assert!(!server.child.wait().unwrap().success());
}

#[test]
fn a_server_that_ignores_the_request_to_end_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (server, _group) = server(dir.path(), "trap '' TERM; while :; do sleep 600; done");
    let id = server.pid().unwrap();
    server.end(Duration::ZERO);
    assert_eq!(kill(id, None), Err(nix::errno::Errno::ESRCH));
}

#[test]
fn everything_ends_with_an_owner_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("servers");
    std::fs::create_dir(&place).unwrap();
    let (mut one, mut group) = server(&place, "exec sleep 600");
    let mut command = Command::new("sh");
    command.args(["-c", "exec sleep 600"]);
    let mut paused = Server::spawn("sh", &mut command, place.join("log"), &group).unwrap();
    paused.pause().unwrap();
    one.still_runs().unwrap();
    // The system closes the pipe when a process ends, however it ends.
    drop(group.alive.take());
    group.reaper.wait().unwrap();
    assert!(!one.child.wait().unwrap().success());
    assert!(!paused.child.wait().unwrap().success());
    assert!(!place.exists());
}

#[test]
fn an_orderly_owner_keeps_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, group) = server(dir.path(), "exec sleep 600");
    drop(group);
    assert!(!server.child.wait().unwrap().success(), "the group outlives its owner");
    assert!(dir.path().exists());
}
