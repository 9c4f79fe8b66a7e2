//! Tests that the audit log counts requests by user, verb, resource and code.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{CONFIG_MAPS, CROSSPLANE, NOBODY, SERVER, config_map};

#[test]
fn every_request_is_counted_once_it_is_answered() {
    let log = SERVER.audit_log().unwrap();
    let client = SERVER.client(CROSSPLANE).unwrap();
    let path = format!("{CONFIG_MAPS}/audited");
    let mark = log.mark().unwrap();
    // No other test sends requests about these objects, but other tests use the same user.
    let of_test = || {
        let requests = log.requests_since(&mark).unwrap();
        requests.filter(|request| request.name == "audited" || request.uri.ends_with("audited"))
    };

    let create = format!("{CONFIG_MAPS}?fieldManager=audited");
    assert_eq!(client.post(&create, &config_map("audited")).unwrap().code, 201);
    assert_eq!(of_test().count(), 1, "{}", of_test());
    assert_eq!(client.post(&create, &config_map("audited")).unwrap().code, 409);
    let patch = json!({"data": {"a": "b"}});
    assert_eq!(client.merge_patch(&format!("{path}?dryRun=All"), &patch).unwrap().code, 200);
    assert_eq!(client.merge_patch(&path, &patch).unwrap().code, 200);
    assert_eq!(client.get(&path).unwrap().code, 200);
    assert_eq!(SERVER.client(NOBODY).unwrap().get(&path).unwrap().code, 403);
    assert_eq!(client.delete(&path).unwrap().code, 200);

    let key = |user: &str, verb: &str, code| {
        (user.to_owned(), verb.to_owned(), "configmaps".to_owned(), code)
    };
    let tally = BTreeMap::from([
        (key(CROSSPLANE, "create", 201), 1),
        (key(CROSSPLANE, "create", 409), 1),
        (key(CROSSPLANE, "patch", 200), 2),
        (key(CROSSPLANE, "get", 200), 1),
        (key(NOBODY, "get", 403), 1),
        (key(CROSSPLANE, "delete", 200), 1),
    ]);
    assert_eq!(of_test().tally(), tally, "{}", of_test());
    assert_eq!(of_test().writes().count(), 4, "a dry run writes nothing");
}

#[test]
fn an_open_watch_is_counted() {
    let log = SERVER.audit_log().unwrap();
    let mark = log.mark().unwrap();
    let path = format!("{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dwatched");
    let watch = SERVER.client(CROSSPLANE).unwrap().watch(&path).unwrap();
    let requests = log.requests_since(&mark).unwrap().filter(|request| request.uri == path);
    assert_eq!(requests.iter().map(|request| request.complete).collect::<Vec<_>>(), [false]);
    drop(watch);
}
