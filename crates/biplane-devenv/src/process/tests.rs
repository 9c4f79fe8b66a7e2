//! Tests that servers are supervised while they start and reaped when their owner ends.

use super::*;

/// A server that runs the given shell script.
fn server(dir: &Path, script: &str) -> Server {
    let mut command = Command::new("sh");
    Server::spawn("sh", command.args(["-c", script]), dir.join("log")).unwrap()
}

/// A probe of a port on which no server listens.
fn nobody() -> Probe {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    Probe::Plain { port: listener.local_addr().unwrap().port(), path: "/" }
}

#[test]
fn a_server_that_stops_leaves_its_last_words() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(dir.path(), "for i in $(seq 20); do echo line $i; done; exit 3");
    let error = server.wait_ready(&nobody(), Duration::from_mins(1)).unwrap_err();
    let EnvError::Stopped { status, log, .. } = error else { panic!("{error}") };
    assert_eq!(status.code(), Some(3));
    assert!(log.starts_with("line 6\n") && log.ends_with("line 20"), "{log}");
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(dir.path(), "exec sleep 600");
    let error = server.wait_ready(&nobody(), Duration::ZERO).unwrap_err();
    let EnvError::NotReady { reason, .. } = error else { panic!("{error}") };
    assert!(reason.contains("refused"), "{reason}");
}

#[test]
fn the_reaper_cleans_up_when_its_owner_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("servers");
    std::fs::create_dir(&place).unwrap();
    let mut server = server(&place, "exec sleep 600");
    let mut reaper = Reaper::watch(&place, &[&server]).unwrap();
    server.still_runs().unwrap();
    // The kernel closes the pipe when a process ends, however it ends.
    drop(reaper.0.stdin.take());
    reaper.0.wait().unwrap();
    assert!(!server.child.wait().unwrap().success());
    assert!(!place.exists());
}

#[test]
fn an_orderly_owner_needs_no_reaper() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = server(dir.path(), "exec sleep 600");
    drop(Reaper::watch(dir.path(), &[&server]).unwrap());
    server.still_runs().unwrap();
    assert!(dir.path().exists());
}
