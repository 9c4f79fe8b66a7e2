//! Tests of what the proxy does to requests and watches.

use std::io::{BufRead, BufReader, ErrorKind};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use biplane_devenv::proxy::{Action, Asked, Proxy};
use biplane_devenv::{Client, EnvError, Watch};
use serde_json::{Value, json};

use crate::{CONFIG_MAPS, CROSSPLANE, SERVER, config_map, eventually};

fn through(proxy: &Proxy) -> Client {
    proxy.client(CROSSPLANE).unwrap()
}

/// The client that the proxy does not disturb.
fn direct() -> Client {
    SERVER.client(CROSSPLANE).unwrap()
}

fn create(client: &Client, name: &str) {
    let answer = client.post(CONFIG_MAPS, &config_map(name)).unwrap();
    assert_eq!(answer.code, 201, "{}", answer.body);
}

fn change(client: &Client, name: &str, value: u32) {
    let patch = json!({"data": {"value": value.to_string()}});
    let answer = client.merge_patch(&format!("{CONFIG_MAPS}/{name}"), &patch).unwrap();
    assert_eq!(answer.code, 200, "{}", answer.body);
}

fn watch_path(name: &str) -> String {
    format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3D{name}")
}

/// An open watch of one ConfigMap that has shown the object as it is.
fn watch(proxy: &Proxy, name: &str) -> Watch {
    let mut watch = through(proxy).watch(&watch_path(name)).unwrap();
    let first = watch.next().unwrap().unwrap();
    assert_eq!(
        (&first["type"], &first["object"]["metadata"]["name"]),
        (&"ADDED".into(), &name.into())
    );
    watch
}

fn value(event: &Value) -> &str {
    event["object"]["data"]["value"].as_str().unwrap_or_default()
}

fn is_watch(asked: &Asked) -> bool {
    asked.watch && asked.resource == "configmaps"
}

#[test]
fn passes_everything_on_by_default() {
    let proxy = SERVER.proxy().unwrap();
    create(&through(&proxy), "passed");
    let mut watch = watch(&proxy, "passed");
    change(&through(&proxy), "passed", 1);
    assert_eq!(value(&watch.next().unwrap().unwrap()), "1");
    assert_eq!(proxy.watches(is_watch), 1);
    drop(watch);
    eventually("the watch is closed", || proxy.watches(|_| true) == 0);

    // kubectl speaks HTTP/2, and trusts the same CA.
    let kubeconfig = proxy.kubeconfig_of(CROSSPLANE).unwrap();
    let output = SERVER
        .kubectl()
        .unwrap()
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["auth", "whoami", "-o", "json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(CROSSPLANE), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// kubectl watches over HTTP/2.
#[test]
fn watches_over_http2_are_passed_on_and_ended() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "streamed");
    let mut kubectl = SERVER
        .kubectl()
        .unwrap()
        .arg("--kubeconfig")
        .arg(proxy.kubeconfig_of(CROSSPLANE).unwrap())
        .args(["get", "configmaps", "streamed", "--watch", "--output=jsonpath={.data.value}\n"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(kubectl.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "");
    eventually("kubectl watches", || proxy.watches(is_watch) == 1);
    change(&direct(), "streamed", 1);
    assert_eq!(lines.next().unwrap().unwrap(), "1");
    assert_eq!(proxy.end_watches(is_watch), 1);
    assert!(lines.next().is_none());
    assert!(kubectl.wait().unwrap().success());
}

#[test]
fn answers_410_to_new_watches() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "gone");
    proxy.add_times(1, is_watch, Action::GONE);
    let error = through(&proxy).watch(&watch_path("gone")).unwrap_err();
    let EnvError::Refused { code: 410, body, .. } = error else { panic!("{error}") };
    assert!(body.contains("\"reason\":\"Expired\""), "{body}");
    assert_eq!(through(&proxy).get(CONFIG_MAPS).unwrap().code, 200, "a list is not a watch");
    watch(&proxy, "gone");
}

#[test]
fn expires_open_watches() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "expired");
    let mut watch = watch(&proxy, "expired");
    assert_eq!(proxy.expire_watches(is_watch), 1);
    let last = watch.next().unwrap().unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&"ERROR".into(), &410.into()));
    assert!(watch.next().is_none(), "an expired watch ends in order");
    assert_eq!(proxy.watches(is_watch), 0);
}

#[test]
fn ends_and_cuts_open_watches() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "ended");
    let mut ended = watch(&proxy, "ended");
    assert_eq!(proxy.end_watches(is_watch), 1);
    assert!(ended.next().is_none());

    let mut cut = watch(&proxy, "ended");
    assert_eq!(proxy.cut_watches(is_watch), 1);
    assert_eq!(cut.next().unwrap().unwrap_err().kind(), ErrorKind::UnexpectedEof);

    let mut closed = watch(&proxy, "ended");
    proxy.cut_connections();
    assert!(closed.next().unwrap().is_err());
    watch(&proxy, "ended");
}

#[test]
fn holds_events_back_until_they_are_released() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "held");
    create(&direct(), "free");
    let (mut held, mut free) = (watch(&proxy, "held"), watch(&proxy, "free"));
    let rule = proxy.add(|asked| asked.query.contains("held"), Action::Hold);
    change(&direct(), "held", 1);
    change(&direct(), "held", 2);
    change(&direct(), "free", 3);
    // The event of the later change arrives, those of the earlier ones do not.
    assert_eq!(value(&free.next().unwrap().unwrap()), "3");
    let (events, event) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for _ in 0..2 {
            events.send(held.next().unwrap().unwrap()).unwrap();
        }
    });
    assert!(event.recv_timeout(Duration::from_millis(300)).is_err(), "an event got through");
    proxy.remove(rule);
    assert_eq!(value(&event.recv().unwrap()), "1");
    assert_eq!(value(&event.recv().unwrap()), "2");
    reader.join().unwrap();
}

#[test]
fn delays_events_and_answers_in_order() {
    let proxy = SERVER.proxy().unwrap();
    create(&direct(), "late");
    let mut late = watch(&proxy, "late");
    let delay = Duration::from_millis(300);
    proxy.add(|_| true, Action::Delay(delay));
    let start = std::time::Instant::now();
    change(&direct(), "late", 1);
    change(&direct(), "late", 2);
    assert_eq!(value(&late.next().unwrap().unwrap()), "1");
    assert!(start.elapsed() >= delay);
    assert_eq!(value(&late.next().unwrap().unwrap()), "2");
    let start = std::time::Instant::now();
    assert_eq!(through(&proxy).get("/version").unwrap().code, 200);
    assert!(start.elapsed() >= delay);
}

#[test]
fn refuses_and_loses_requests() {
    let proxy = SERVER.proxy().unwrap();
    let is_write = |asked: &Asked| asked.method == "POST";
    let post = |name: &str| through(&proxy).post(CONFIG_MAPS, &config_map(name));
    let exists = |name: &str| direct().get(&format!("{CONFIG_MAPS}/{name}")).unwrap().code == 200;

    proxy.add_times(1, is_write, Action::Respond { code: 429, retry_after: Some(1) });
    let throttled = post("throttled").unwrap();
    assert_eq!((throttled.code, &throttled.json()["reason"]), (429, &"TooManyRequests".into()));
    assert!(!exists("throttled"));

    proxy.add_times(1, is_write, Action::Cut);
    assert!(post("unsent").is_err());
    assert!(!exists("unsent"));

    proxy.add_times(1, is_write, Action::LoseAnswer);
    assert!(post("unanswered").is_err());
    assert!(exists("unanswered"));

    assert_eq!(post("answered").unwrap().code, 201);
}
