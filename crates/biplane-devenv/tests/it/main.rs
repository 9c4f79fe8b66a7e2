//! Tests of the launcher with the real programs.

#![allow(clippy::unwrap_used)] // clippy.toml covers test functions, not their helpers

mod apiserver;
mod audit;
mod controllers;
mod faults;
mod kubectl;
mod proxy;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use biplane_devenv::{ApiServer, User};
use serde_json::{Value, json};

/// The user that Crossplane's controllers are in a cluster.
const CROSSPLANE: &str = "system:serviceaccount:crossplane-system:crossplane";

/// A user that nobody has given permissions.
const NOBODY: &str = "nobody";

/// A server for all tests that neither stop nor pause it. It ends with the process.
static SERVER: LazyLock<ApiServer> = LazyLock::new(|| {
    ApiServer::options()
        .controllers()
        .audit_log()
        .user(User::service_account("crossplane-system", "crossplane").cluster_admin())
        .user(User::new(NOBODY))
        .start()
        .unwrap()
});

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Waits until `done` is true. Servers do not say when they have done something.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}
