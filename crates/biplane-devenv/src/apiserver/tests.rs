//! Tests of how the real programs fail when their port is taken. The retry in `apiserver` relies on
//! it.

use super::*;

fn binaries() -> Binaries {
    provision(&Places::from_env().unwrap(), &[Tool::Etcd, Tool::KubeApiserver], &mut say).unwrap()
}

/// Waits for a server whose port is taken and returns why the server stopped.
fn loses_its_port(program: &'static str, mut command: Command, dir: &Path, port: u16) -> String {
    let mut server = Server::spawn(program, &mut command, dir.join("log")).unwrap();
    // The process that holds the port never responds, so the wait ends only when the server stops.
    let probe = Probe::Plain { port, path: "/" };
    match server.wait_ready(&probe, ETCD_PATIENCE).unwrap_err() {
        EnvError::Stopped { log, .. } => log,
        other => panic!("{program}: {other}"),
    }
}

#[test]
fn a_server_that_lost_its_port_stops_and_says_so() {
    let binaries = binaries();
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Closes every connection at once, so that no probe waits for a response. The thread ends with
    // the test.
    std::thread::spawn(move || listener.incoming().for_each(drop));

    let etcd = etcd_command(&binaries.path(Tool::Etcd).unwrap(), dir.path(), port);
    let log = loses_its_port("etcd", etcd, dir.path(), port);
    assert!(log.contains(PORT_IS_TAKEN), "{log}");

    let identity = Identity::generate().unwrap();
    let files = Files::write(dir.path(), &identity, "token").unwrap();
    let program = binaries.path(Tool::KubeApiserver).unwrap();
    let apiserver = apiserver_command(&program, &files, port, port);
    let log = loses_its_port("kube-apiserver", apiserver, dir.path(), port);
    assert!(log.contains(PORT_IS_TAKEN), "{log}");
}

#[test]
fn tokens_differ() {
    assert_ne!(token().unwrap(), token().unwrap());
}
