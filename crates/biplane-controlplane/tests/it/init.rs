//! Tests of the preparation of a cluster, in memory and on a real API server.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Cluster, List, Part, Patch, Query, Source, Write};
use biplane_controlplane::init::{self, Options, Packages};
use biplane_engine::{Clock, FixedClock, SystemClock};
use biplane_kube::{Endpoint, KubeCluster};
use biplane_model::{Gvk, Object, ObjectId};
use jiff::Timestamp;
use serde_json::json;

use crate::world::soon;

const NAMESPACE: &str = "crossplane-system";

fn clock(time: &str) -> FixedClock {
    FixedClock(time.parse::<Timestamp>().unwrap())
}

async fn run(cluster: &Arc<dyn Cluster>, clock: &dyn Clock) {
    init::run(Arc::clone(cluster), clock, &Options::default()).await.unwrap();
}

fn secret(name: &str) -> ObjectId {
    ObjectId::new(Gvk::new("v1", "Secret"), NAMESPACE, name)
}

async fn get(cluster: &Arc<dyn Cluster>, id: &ObjectId) -> Object {
    cluster.get(id, Source::Live, soon()).await.unwrap()
}

async fn patch(cluster: &Arc<dyn Cluster>, name: &str, patch: serde_json::Value) {
    let (how, patch) = (Write::by("kubectl"), Patch::Merge(patch));
    cluster.patch(&secret(name), Part::Main, &patch, &how, soon()).await.unwrap();
}

/// The fields of a Secret.
async fn data(cluster: &Arc<dyn Cluster>, name: &str) -> BTreeMap<String, Vec<u8>> {
    let secret = get(cluster, &secret(name)).await;
    let data = secret.get("data").and_then(|data| data.as_object()).cloned().unwrap_or_default();
    data.iter().map(|(k, v)| (k.clone(), STANDARD.decode(v.as_str().unwrap()).unwrap())).collect()
}

const CA: &str = "crossplane-root-ca";
const SERVER: &str = "crossplane-tls-server";
const CLIENT: &str = "crossplane-tls-client";

/// INIT-1, TLS-1: with everything that can be wrong with certificates, one after the other.
#[tokio::test]
async fn a_second_run_writes_nothing_and_what_is_broken_is_repaired() {
    let server = Arc::new(ApiServer::default());
    let cluster: Arc<dyn Cluster> = server.clone();
    // A chart creates Secrets without data.
    let empty = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": SERVER, "namespace": NAMESPACE, "labels": {"app": "crossplane"}}});
    let empty = Object::from_value(empty).unwrap();
    cluster.create(empty, &Write::by("helm"), soon()).await.unwrap();
    let then = clock("2026-01-01T00:00:00Z");
    run(&cluster, &then).await;

    let keys = |data: &BTreeMap<String, Vec<u8>>| data.keys().cloned().collect::<Vec<_>>();
    let authority = data(&cluster, CA).await;
    assert_eq!(keys(&authority), ["tls.crt", "tls.key"]);
    let (server_leaf, client_leaf) = (data(&cluster, SERVER).await, data(&cluster, CLIENT).await);
    for leaf in [&server_leaf, &client_leaf] {
        assert_eq!(keys(leaf), ["ca.crt", "tls.crt", "tls.key"]);
        assert_eq!(leaf["ca.crt"], authority["tls.crt"]);
    }
    assert_eq!(get(&cluster, &secret(SERVER)).await.label("app"), "crossplane");
    for (api_version, kind, name) in [
        ("v1", "Namespace", NAMESPACE),
        ("pkg.crossplane.io/v1beta1", "Lock", "lock"),
        ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", "default"),
    ] {
        get(&cluster, &ObjectId::new(Gvk::new(api_version, kind), "", name)).await;
    }

    let before = server.journal_len();
    run(&cluster, &then).await;
    assert_eq!(server.journal_len(), before, "the second run wrote something");

    // A half-filled leaf.
    patch(&cluster, CLIENT, json!({"data": {"tls.key": null, "mine": "a2VwdA=="}})).await;
    run(&cluster, &then).await;
    let repaired = data(&cluster, CLIENT).await;
    assert_eq!(keys(&repaired), ["ca.crt", "mine", "tls.crt", "tls.key"]);
    assert_ne!(repaired["tls.crt"], client_leaf["tls.crt"]);
    assert_eq!(data(&cluster, CA).await, authority);
    assert_eq!(data(&cluster, SERVER).await, server_leaf);

    // Leaves that end in two months.
    let later = clock("2035-11-01T00:00:00Z");
    run(&cluster, &later).await;
    assert_eq!(data(&cluster, CA).await, authority);
    let renewed = data(&cluster, SERVER).await;
    assert_ne!(renewed["tls.crt"], server_leaf["tls.crt"]);
    let before = server.journal_len();
    run(&cluster, &later).await;
    assert_eq!(server.journal_len(), before);

    // A new authority.
    cluster.delete(&secret(CA), &biplane_cluster::Delete::default(), soon()).await.unwrap();
    run(&cluster, &later).await;
    let authority = data(&cluster, CA).await;
    for name in [SERVER, CLIENT] {
        assert_eq!(data(&cluster, name).await["ca.crt"], authority["tls.crt"]);
    }
}

/// Everything that a run writes, with its version.
async fn versions(cluster: &Arc<dyn Cluster>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (api_version, kind) in [
        ("v1", "Namespace"),
        ("v1", "Secret"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("pkg.crossplane.io/v1beta1", "Lock"),
        ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig"),
        ("pkg.crossplane.io/v1", "Function"),
        ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"),
    ] {
        let gvk = Gvk::new(api_version, kind);
        let page = cluster.list(&gvk, &Query::default(), &List::live(), soon()).await.unwrap();
        for object in page.objects {
            all.insert(object.id().to_string(), object.resource_version().to_owned());
        }
    }
    all
}

#[tokio::test]
async fn a_real_server_is_prepared_once() {
    let server = biplane_devenv::ApiServer::start().unwrap();
    let endpoint = Endpoint {
        url: server.url.clone(),
        ca_pem: server.ca_pem.clone(),
        token: server.token.clone(),
    };
    let packages = Packages {
        functions: vec!["xpkg.example.org/org/function-auto-ready:v0.6.0".into()],
        ..Packages::default()
    };
    let activate = vec!["*.example.org".to_owned()];
    let options = Options { packages, activate, ..Options::default() };
    let mut before = BTreeMap::new();
    for number in 1..=3 {
        // Each run is a process of its own.
        let connection = biplane_kube::Options::default();
        let cluster = KubeCluster::at(&endpoint, &connection).unwrap();
        let cluster: Arc<dyn Cluster> = Arc::new(cluster);
        init::run(Arc::clone(&cluster), &SystemClock, &options).await.unwrap();
        let after = versions(&cluster).await;
        if number > 1 {
            assert_eq!(after, before, "run {number} changed something");
            let writes = writes(&connection.counters);
            assert_eq!(writes, [""; 0], "run {number} wrote");
        }
        before = after;
    }
    let names: Vec<&str> = before.keys().map(String::as_str).collect();
    for part in ["lock", "org-function-auto-ready", CA, SERVER, CLIENT] {
        assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
    }
}

/// The write requests that were sent.
fn writes(counters: &biplane_kube::metrics::Counters) -> Vec<String> {
    let mut registry = prometheus_client::registry::Registry::default();
    counters.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let is_write = |line: &&str| {
        ["create", "update", "patch", "apply", "delete"]
            .iter()
            .any(|verb| line.contains(&format!("verb=\"{verb}\"")))
    };
    text.lines().filter(is_write).map(str::to_owned).collect()
}
