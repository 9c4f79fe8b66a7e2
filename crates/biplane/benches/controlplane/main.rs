//! Measures the control plane on a real API server: how long composite resources take to become
//! ready, what that costs, what happens at rest, and how long changes and deletions take.
//!
//! `just bench-controlplane` runs it. It starts etcd, kube-apiserver, kube-controller-manager and a
//! control plane, each a process of its own. Requests are counted in the audit log, CPU time and
//! memory are those of the kernel.
//!
//! The control plane is `biplane core start` with the functions of the box in process, then the same
//! with functions over gRPC, and then, if `BIPLANE_UPSTREAM_BIN` names a folder with it, upstream's
//! `crossplane`, which needs its definitions in `crds/` of that folder. The functions over gRPC are
//! the originals if they are there, else those of the box, served.

#![allow(clippy::disallowed_methods)] // benchmarks are configured by the environment
#![allow(clippy::print_stdout)]

mod controllers;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use biplane_cluster::{Change, Cluster as _, Delete, Query, Source, Subscribe, Write};
use biplane_devenv::{ApiServer, Part, Requests, User};
use biplane_kube::{Endpoint, KubeCluster, Options};
use biplane_model::condition::conditions;
use biplane_model::{Gvk, Object, ObjectId, Value};
use futures_util::{StreamExt as _, stream};
use serde_json::json;

use controllers::{Controller, Mode};

const USER: &str = "system:serviceaccount:crossplane-system:crossplane";
const FUNCTIONS: [&str; 2] = ["function-patch-and-transform", "function-auto-ready"];
const GROUP: &str = "bench.example.org";
const CORE: &str = "apiextensions.crossplane.io/v1";
/// Composed resources of each composite resource.
const RESOURCES: usize = 5;
/// Composed resources of the large one.
const MANY: usize = 200;
/// How many composite resources are made one after the other.
const SINGLE: usize = 20;
/// How many requests this program has under way.
const PARALLEL: usize = 16;
/// The composite resources are spread over so many namespaces.
const NAMESPACES: usize = 10;
/// What takes longer will not happen.
const PATIENCE: Duration = Duration::from_mins(15);
/// After this time without a request, everything that had to be done is done.
const SETTLED: Duration = Duration::from_secs(3);

fn main() {
    let given = |flag: &str| {
        let mut arguments = std::env::args().skip_while(|argument| argument != flag);
        arguments.nth(1).map(|value| value.parse::<usize>().expect("a number"))
    };
    // `cargo bench --workspace` measures what takes seconds.
    let Some(xrs) = given("--xrs") else {
        println!("control plane: not measured without --xrs NUMBER; see `just bench-controlplane`");
        return;
    };
    let rest = Duration::from_secs(given("--rest").unwrap_or(180) as u64);
    let only = std::env::args().skip_while(|argument| argument != "--only").nth(1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for mode in Mode::all() {
        if only.as_deref().is_none_or(|only| only == mode.name()) {
            runtime.block_on(measure(mode, xrs, rest));
        }
    }
}

/// An API server with a control plane.
struct World {
    server: ApiServer,
    cluster: KubeCluster,
    controller: Controller,
}

/// CPU seconds of all parts.
#[derive(Clone, Copy)]
struct Cpu {
    controller: f64,
    functions: f64,
    api_server: f64,
    etcd: f64,
}

impl Cpu {
    fn since(self, before: Self) -> Self {
        Self {
            controller: self.controller - before.controller,
            functions: self.functions - before.functions,
            api_server: self.api_server - before.api_server,
            etcd: self.etcd - before.etcd,
        }
    }
}

impl std::fmt::Display for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { controller, functions, api_server, etcd } = self;
        write!(
            f,
            "CPU: controller {controller:.1} s, functions {functions:.1} s, API server \
             {api_server:.1} s, etcd {etcd:.1} s"
        )
    }
}

/// CPU seconds of a process.
fn cpu_of(process: u32) -> f64 {
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name may contain spaces; it ends with the last bracket.
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let field = |at: usize| fields.get(at).and_then(|f| f.parse::<f64>().ok()).unwrap_or_default();
    (field(11) + field(12)) / TICKS
}

/// A line of a process's status, in MiB.
fn memory_of(process: u32, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
    let kib = found.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

fn soon() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_mins(1)
}

fn object(value: Value) -> Object {
    Object::from_value(value).expect("an object")
}

fn is_ready(xr: &Object) -> bool {
    conditions(xr).iter().any(|c| c.r#type == "Ready" && c.status == "True")
}

impl World {
    async fn start(mode: Mode) -> Self {
        let server = ApiServer::options()
            .controllers()
            .audit_log()
            .user(User::service_account("crossplane-system", "crossplane").cluster_admin())
            .start()
            .expect("an API server");
        let kubeconfig = server.kubeconfig_of(USER).expect("a kubeconfig");
        let endpoint = Endpoint {
            url: server.url.clone(),
            ca_pem: server.ca_pem.clone(),
            token: server.token_of("admin").expect("a token"),
        };
        let cluster = KubeCluster::at(&endpoint, &Options::default()).expect("a client");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "crossplane-system"}});
        let created = cluster.create(object(namespace), &Write::by("bench"), soon()).await;
        created.expect("a namespace");
        mode.init(&kubeconfig);
        let controller = Controller::start(mode, &kubeconfig, &cluster).await;
        Self { server, cluster, controller }
    }

    fn cpu(&self) -> Cpu {
        let of = |part| cpu_of(self.server.process_id(part).expect("a process"));
        Cpu {
            controller: cpu_of(self.controller.id()),
            functions: self.controller.functions().map(cpu_of).sum(),
            api_server: of(Part::ApiServer),
            etcd: of(Part::Etcd),
        }
    }

    /// The memory of the control plane. The system can drop pages of files when it needs room.
    fn memory(&self) -> String {
        let of = |line| memory_of(self.controller.id(), line);
        let (now, most, files) = (of("VmRSS"), of("VmHWM"), of("RssFile"));
        format!("{now:.1} MiB, at most {most:.1} MiB; {files:.1} MiB are pages of files")
    }

    async fn create(&self, value: Value) {
        let created = self.cluster.create(object(value), &Write::by("bench"), soon()).await;
        created.expect("it is created");
    }

    async fn create_all(&self, all: impl Iterator<Item = Value>) {
        stream::iter(all).for_each_concurrent(PARALLEL, |value| self.create(value)).await;
    }

    async fn delete_all(&self, all: impl Iterator<Item = ObjectId>) {
        let delete = async |id: ObjectId| {
            let deleted = self.cluster.delete(&id, &Delete::default(), soon()).await;
            deleted.expect("it is deleted");
        };
        stream::iter(all).for_each_concurrent(PARALLEL, delete).await;
    }

    /// Watches a kind until so many objects fulfil a condition.
    async fn until(&self, gvk: &Gvk, query: Query, count: usize, is: impl Fn(&Object) -> bool) {
        let how = Subscribe { capacity: 100_000, ..Subscribe::default() };
        let mut changes = loop {
            // The kind may be new.
            match self.cluster.subscribe(gvk, &query, &how, soon()).await {
                Ok(changes) => break changes,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let (mut these, mut synced) = (BTreeSet::new(), false);
        let watched = async {
            while !synced || these.len() != count {
                match changes.next().await.expect("the watch goes on") {
                    Change::Changed { object, .. } if is(&object) => {
                        these.insert(object.id());
                    }
                    Change::Changed { object: gone, .. } | Change::Gone { last: gone } => {
                        these.remove(&gone.id());
                    }
                    Change::Synced => synced = true,
                    Change::Missed => {}
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, watched).await;
        assert!(ended.is_ok(), "{gvk}: {} of {count}", these.len());
    }

    /// What the control plane asked since a mark.
    fn asked(&self, mark: &biplane_devenv::Mark) -> Requests {
        let log = self.server.audit_log().expect("an audit log");
        log.requests_since(mark).expect("requests").of_user(USER)
    }

    fn mark(&self) -> biplane_devenv::Mark {
        self.server.audit_log().and_then(|log| log.mark()).expect("an audit log")
    }

    /// Waits until the control plane asks nothing any more. Returns how long it went on.
    async fn settle(&self) -> Duration {
        let began = Instant::now();
        loop {
            let mark = self.mark();
            tokio::time::sleep(SETTLED).await;
            if self.asked(&mark).filter(|r| r.verb != "watch").is_empty() {
                return began.elapsed().saturating_sub(SETTLED);
            }
        }
    }

    /// The kinds, Compositions and functions of this benchmark.
    async fn define(&self) {
        for object in self.controller.function_objects() {
            self.create(object).await;
        }
        self.controller.locate_functions(&self.cluster).await;
        for (kind, resources) in [("Thing", RESOURCES), ("Crowd", MANY)] {
            let plural = format!("{}s", kind.to_lowercase());
            let text = json!({"type": "string"});
            self.create(json!({
                "apiVersion": "apiextensions.crossplane.io/v2",
                "kind": "CompositeResourceDefinition",
                "metadata": {"name": format!("{plural}.{GROUP}")},
                "spec": {
                    "group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                    "versions": [{"name": "v1", "served": true, "referenceable": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                            "spec": {"type": "object", "properties": {"color": text}}}}}}],
                },
            }))
            .await;
            self.create(json!({
                "apiVersion": CORE, "kind": "Composition",
                "metadata": {"name": plural}, "spec": composition(kind, resources, "1"),
            }))
            .await;
        }
        let established = |xrd: &Object| {
            conditions(xrd).iter().any(|c| c.r#type == "Established" && c.status == "True")
        };
        let definitions = Gvk::new("apiextensions.crossplane.io/v2", "CompositeResourceDefinition");
        self.until(&definitions, Query::default(), 2, established).await;
        let revisions = Gvk::new(CORE, "CompositionRevision");
        self.until(&revisions, Query::default(), 2, |_| true).await;
        let namespaces = (0..NAMESPACES).map(|number| {
            json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": format!("bench-{number}")}})
        });
        self.create_all(namespaces).await;
    }
}

/// The spec of a Composition that makes ConfigMaps.
fn composition(kind: &str, resources: usize, version: &str) -> Value {
    let resources: Vec<Value> = (0..resources)
        .map(|number| {
            json!({
                "name": format!("map-{number}"),
                "base": {"apiVersion": "v1", "kind": "ConfigMap",
                    "data": {"number": number.to_string(), "version": version}},
                "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.color",
                    "toFieldPath": "data.color"}],
            })
        })
        .collect();
    json!({
        "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1"), "kind": kind},
        "mode": "Pipeline",
        "pipeline": [
            {"step": "compose", "functionRef": {"name": "function-patch-and-transform"},
                "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
                    "resources": resources}},
            {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
        ],
    })
}

fn kind(kind: &str) -> Gvk {
    Gvk::new(&format!("{GROUP}/v1"), kind)
}

fn thing(number: usize) -> ObjectId {
    let namespace = format!("bench-{}", number % NAMESPACES);
    ObjectId::new(kind("Thing"), &namespace, &format!("thing-{number}"))
}

fn xr(id: &ObjectId) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": id.gvk.kind,
        "metadata": {"name": id.name, "namespace": id.namespace}, "spec": {"color": "red"},
    })
}

fn composed() -> Query {
    Query { labelled: BTreeSet::from(["crossplane.io/composite".to_owned()]), ..Query::default() }
}

async fn measure(mode: Mode, xrs: usize, rest: Duration) {
    println!("{}: {xrs} composite resources of {RESOURCES} ConfigMaps", mode.name());
    let mut world = World::start(mode).await;
    world.define().await;
    if mode.comes_to_rest() {
        world.settle().await;
    }
    println!("- no composite resource: {}", world.memory());

    one_by_one(&world, mode).await;
    let (things, maps) = (kind("Thing"), Gvk::new("v1", "ConfigMap"));

    let (mark, cpu, began) = (world.mark(), world.cpu(), Instant::now());
    let ready = world.until(&things, Query::default(), xrs, is_ready);
    let create = world.create_all((0..xrs).map(|number| xr(&thing(number))));
    tokio::join!(ready, create);
    let took = began.elapsed();
    let more = if mode.comes_to_rest() { world.settle().await } else { Duration::ZERO };
    let spent = world.cpu().since(cpu);
    let asked = world.asked(&mark).filter(|r| r.verb != "watch" && r.resource != "leases");
    let events = asked.clone().of_resource("events").writes().count();
    let others = asked.clone().filter(|r| r.resource != "events");
    let (writes, all) = (others.clone().writes().count(), others.count());
    let at_rest = if mode.comes_to_rest() {
        format!(", at rest {:.1} s later", more.as_secs_f64())
    } else {
        String::new()
    };
    println!("- all ready after {:.1} s{at_rest}", took.as_secs_f64());
    println!(
        "  {:.2} writes and {:.3} reads each, {events} writes of events; {spent}",
        writes as f64 / xrs as f64,
        (all - writes) as f64 / xrs as f64
    );
    println!("  {}", world.memory());

    let (mark, cpu) = (world.mark(), world.cpu());
    tokio::time::sleep(rest).await;
    let asked = world.asked(&mark);
    let watches = asked.clone().of_verbs(&["watch"]).count();
    let others = asked.filter(|r| r.verb != "watch" && r.resource != "leases");
    println!(
        "- {} s at rest: {} requests, {watches} watches renewed; {}",
        rest.as_secs(),
        others.count(),
        world.cpu().since(cpu)
    );

    if mode.comes_to_rest() {
        let (mark, began) = (world.mark(), Instant::now());
        world.controller.restart();
        world.settle().await;
        let asked = world.asked(&mark).filter(|r| r.resource != "leases");
        let writes = asked.clone().writes().count();
        let took = began.elapsed().saturating_sub(SETTLED).as_secs_f64();
        println!(
            "- a restart: {writes} writes, {} requests, at rest after {took:.1} s",
            asked.count()
        );
    }

    let (cpu, began) = (world.cpu(), Instant::now());
    let id = ObjectId::new(Gvk::new(CORE, "Composition"), "", "things");
    let mut changed = world.cluster.get(&id, Source::Live, soon()).await.expect("a Composition");
    changed.set_at(&["spec"], composition("Thing", RESOURCES, "2")).expect("a spec");
    let part = biplane_cluster::Part::Main;
    let updated = world.cluster.update(&changed, part, &Write::by("bench"), soon()).await;
    updated.expect("a changed Composition");
    let is_new = |map: &Object| map.str_at(&["data", "version"]) == "2";
    world.until(&maps, composed(), xrs * RESOURCES, is_new).await;
    let took = began.elapsed().as_secs_f64();
    println!("- a changed Composition reached all after {took:.1} s; {}", world.cpu().since(cpu));

    let began = Instant::now();
    let crowd = ObjectId::new(kind("Crowd"), "bench-0", "crowd");
    world.create(xr(&crowd)).await;
    world.until(&kind("Crowd"), Query::default(), 1, is_ready).await;
    let took = began.elapsed().as_secs_f64();
    println!("- one of {MANY} ConfigMaps ready after {took:.2} s");
    world.delete_all([crowd].into_iter()).await;
    world.until(&kind("Crowd"), Query::default(), 0, |_| true).await;

    let (cpu, began) = (world.cpu(), Instant::now());
    world.delete_all((0..xrs).map(thing)).await;
    world.until(&things, Query::default(), 0, |_| true).await;
    let took = began.elapsed().as_secs_f64();
    world.until(&maps, composed(), 0, |_| true).await;
    println!(
        "- all deleted after {took:.1} s, what they composed after {:.1} s; {}",
        began.elapsed().as_secs_f64(),
        world.cpu().since(cpu)
    );
}

/// Makes composite resources one after the other.
async fn one_by_one(world: &World, mode: Mode) {
    let mut times = Vec::new();
    let ids: Vec<_> = (0..SINGLE)
        .map(|number| ObjectId::new(kind("Thing"), "default", &format!("single-{number}")))
        .collect();
    for id in &ids {
        let query =
            Query { namespace: "default".into(), name: id.name.clone(), ..Query::default() };
        let gvk = kind("Thing");
        let ready = world.until(&gvk, query, 1, is_ready);
        tokio::pin!(ready);
        // The watch begins first.
        let _ = tokio::time::timeout(Duration::from_millis(50), &mut ready).await;
        let began = Instant::now();
        let create = async { world.create(xr(id)).await };
        tokio::join!(ready, create);
        times.push(began.elapsed());
    }
    times.sort();
    println!(
        "- one alone ready after {} ms (median), {} ms (slowest of {SINGLE})",
        times[SINGLE / 2].as_millis(),
        times[SINGLE - 1].as_millis()
    );
    world.delete_all(ids.into_iter()).await;
    world.until(&kind("Thing"), Query::default(), 0, |_| true).await;
    if mode.comes_to_rest() {
        world.settle().await;
    }
}
