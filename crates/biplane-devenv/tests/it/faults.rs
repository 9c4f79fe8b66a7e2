//! Tests of programs that crash, hang and come back, and of owners that are killed.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use biplane_devenv::{ApiServer, Client, EnvError, Part};

use crate::{CONFIG_MAPS, config_map, eventually};

fn created(client: &Client, name: &str) -> u16 {
    client.post(CONFIG_MAPS, &config_map(name)).unwrap().code
}

fn exists(client: &Client, name: &str) -> bool {
    client.get(&format!("{CONFIG_MAPS}/{name}")).unwrap().code == 200
}

/// Sends a request while a program is paused, and checks that it is answered only afterwards.
fn is_answered_after(
    client: &Client,
    name: &'static str,
    pause: impl FnOnce(),
    resume: impl FnOnce(),
) {
    pause();
    let (answers, answer) = mpsc::channel();
    let client = client.clone();
    let thread = std::thread::spawn(move || answers.send(created(&client, name)).unwrap());
    // A process that stands still cannot answer, however long one waits.
    let early = answer.recv_timeout(Duration::from_millis(300));
    resume();
    assert!(early.is_err(), "{name}: answered {early:?} while paused");
    assert_eq!(answer.recv().unwrap(), 201, "{name}");
    thread.join().unwrap();
}

#[test]
fn objects_survive_crashes_and_requests_survive_pauses() {
    let server = ApiServer::start().unwrap();
    let client = server.client("admin").unwrap();
    assert_eq!(created(&client, "first"), 201);

    let before = server.process_id(Part::ApiServer).unwrap();
    server.restart(Part::ApiServer).unwrap();
    assert_ne!(server.process_id(Part::ApiServer).unwrap(), before);
    assert!(exists(&client, "first"), "the API server came back on another port or etcd");

    server.stop(Part::ApiServer).unwrap();
    assert!(client.get("/version").is_err(), "the API server was not stopped");
    server.restart(Part::Etcd).unwrap();
    server.start_again(Part::ApiServer).unwrap();
    assert!(exists(&client, "first"), "etcd came back without its data");

    for part in [Part::ApiServer, Part::Etcd] {
        let name = if part == Part::Etcd { "etcd" } else { "api-server" };
        let pause = || server.pause(part).unwrap();
        is_answered_after(&client, name, pause, || server.resume(part).unwrap());
    }

    let error = server.restart(Part::Controllers).unwrap_err();
    assert!(matches!(error, EnvError::NotRunning { .. }), "{error}");
}

#[test]
fn a_second_api_server_shows_the_same_objects() {
    let server = ApiServer::options().audit_log().start().unwrap();
    let replica = server.replica().unwrap();
    let (first, second) = (server.client("admin").unwrap(), replica.client("admin").unwrap());
    assert_eq!(created(&first, "one"), 201);
    assert_eq!(created(&second, "two"), 201);
    assert!(exists(&second, "one") && exists(&first, "two"));

    // One hangs, the other goes on.
    let pause = || {
        replica.pause().unwrap();
        assert_eq!(created(&first, "three"), 201);
    };
    is_answered_after(&second, "four", pause, || replica.resume().unwrap());
    assert!(exists(&second, "three") && exists(&first, "four"));

    let proxy = server.proxy().unwrap();
    replica.answer_watches_of(&proxy);
    let through = proxy.client("admin").unwrap();
    let watch = || through.watch("/api/v1/namespaces?watch=true");
    assert!(watch().is_ok());

    replica.stop().unwrap();
    assert!(second.get("/version").is_err());
    assert!(through.get("/version").is_ok() && watch().is_err());
    replica.start_again().unwrap();
    assert!(exists(&second, "three"));

    let requests = server.audit_log().unwrap().requests().unwrap().of_user("admin");
    assert_eq!(requests.of_verbs(&["create"]).count(), 4, "both servers count");
    drop(replica);
    assert!(exists(&first, "three"));
}

#[test]
fn kept_data_is_there_the_next_time() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let start = || ApiServer::options().data(&data).start();
    let server = start().unwrap();
    let (url, token) = (server.url.clone(), server.token.clone());
    assert_eq!(created(&server.client("admin").unwrap(), "kept"), 201);
    let error = start().unwrap_err();
    assert!(matches!(error, EnvError::InUse { .. }), "{error}");
    drop(server);

    let kubeconfig = data.join("kubeconfig.yaml");
    assert!(kubeconfig.exists(), "the folder was removed");
    let server = start().unwrap();
    assert_eq!((&server.url, &server.token), (&url, &token));
    assert_eq!(server.kubeconfig, kubeconfig);
    assert!(exists(&server.client("admin").unwrap(), "kept"));
}

/// The owner of another test. It runs in a process of its own.
#[test]
#[ignore = "started by another test, which kills it"]
fn owner_of_temporary_data() {
    let server = ApiServer::start().unwrap();
    println!("OWNS {} {}", server.url, server.folder().display());
    std::thread::sleep(Duration::from_mins(10));
}

/// The owner of another test. Its data is in the folder in which it was started.
#[test]
#[ignore = "started by another test, which kills it"]
fn owner_of_kept_data() {
    let server = ApiServer::options().controllers().data("data").start().unwrap();
    assert_eq!(created(&server.client("admin").unwrap(), "kept"), 201);
    println!("OWNS {} {}", server.url, server.folder().display());
    std::thread::sleep(Duration::from_mins(10));
}

/// Starts an owner in a process of its own and kills it when it is ready. Returns the address of
/// the server and its folder.
fn killed_owner(name: &str, current: &Path) -> (String, PathBuf) {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([&format!("faults::{name}"), "--exact", "--ignored", "--nocapture"])
        .current_dir(current)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    // The line may follow the name of the test.
    let owned = lines.map(Result::unwrap).find_map(|line| {
        let (_, owned) = line.split_once("OWNS https://")?;
        let (address, folder) = owned.split_once(' ')?;
        Some((address.to_owned(), PathBuf::from(folder)))
    });
    let (address, folder) = owned.unwrap();
    assert!(TcpStream::connect(&address).is_ok() && folder.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    (address, folder)
}

#[test]
fn everything_ends_with_an_owner_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (address, folder) = killed_owner("owner_of_temporary_data", dir.path());
    eventually("the API server ends", || TcpStream::connect(&address).is_err());
    eventually("the folder is removed", || !folder.exists());
}

#[test]
fn kept_data_survives_an_owner_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (address, folder) = killed_owner("owner_of_kept_data", dir.path());
    eventually("the API server ends", || TcpStream::connect(&address).is_err());
    let server = ApiServer::options().data(folder).start().unwrap();
    assert_eq!(server.url, format!("https://{address}"));
    assert!(exists(&server.client("admin").unwrap(), "kept"));
}
