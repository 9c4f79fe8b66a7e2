//! Recorded cases of area `engine`, composed in three ways: rendered, by a control plane in memory and
//! by one on a real API server. All composite resources have the UID that the real server gave them,
//! so that names are equal, and so are the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::ApiServer;
use biplane_controlplane::dispatcher::Limit;
use biplane_controlplane::{ControlPlane, Options, composite, definitions};
use biplane_engine::render::{RenderError, Settings, render};
use biplane_functions::registry;
use biplane_model::{Map, Object, Value};
use biplane_runner::InProcess;
use biplane_schema::own_kinds;
use biplane_testkit::Recording;
use serde_json::json;

use crate::side::differences;
use crate::world::{PATIENCE, Plane, World, condition, wait_for};

/// Cases that cannot be the same, and why. Those for which the engine was not called, or failed, are
/// not listed: nothing was composed then.
const EXCLUDED: &[(&str, &str)] = &[
    ("bootstrap-name-wins-over-labels", "a server refuses the Composition"),
    ("composed-status-and-uid", "no UID can be chosen on a server"),
    ("credentials-source-none", "a server refuses the Composition"),
    ("credentials-string-data", "a server makes data of it, which functions see then"),
    ("empty-pipeline", "a server refuses the Composition"),
    (
        "existing-refs-to-required-resources",
        "a resource without an owner is adopted by its reference",
    ),
    ("fatal-marks-custom-conditions-unknown", "nobody can create an object with a status"),
    ("input-status-kept-without-desired-status", "nobody can create an object with a status"),
    ("legacy-*", "claims and legacy composite resources are played in area live"),
    ("namespaced-xr-cluster-kind", "render does not know which kinds have no namespace"),
    ("observed-*", "what exists already is an input of render"),
    ("reconcile-requested", "render does not show which request was handled"),
    ("reference-order", "a Deployment without a namespace exists in render alone"),
    ("schema-*", "schemas are an input of render"),
    ("xrd-*", "definitions are an input of render"),
];

fn exclusion(case: &str) -> Option<&'static str> {
    let is = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => case.starts_with(prefix),
        None => case == pattern,
    };
    EXCLUDED.iter().find(|(pattern, _)| is(pattern)).map(|(_, reason)| *reason)
}

/// A recorded request, moved to a namespace of its own.
struct Case {
    name: String,
    input: Value,
}

impl Case {
    /// The cases that can be composed everywhere.
    fn all() -> Vec<Self> {
        let mut unused: BTreeSet<&str> = EXCLUDED.iter().map(|(pattern, _)| *pattern).collect();
        let mut cases = Vec::new();
        for recording in Recording::load_area("engine") {
            let Some(request) = recording.text("request.json") else { continue };
            let outcome = recording.json("outcome.json").unwrap();
            if outcome["engine"]["exit"] == 1 {
                continue;
            }
            if exclusion(&recording.name).is_some() {
                unused.retain(|pattern| !recording.name.starts_with(pattern.trim_end_matches('*')));
                continue;
            }
            // All cases are in the same namespace, and their kinds have many Compositions.
            let own = format!("\"namespace\": \"case-{}\"", recording.name);
            let text = request.replace("\"namespace\": \"streams\"", &own);
            let mut input: Value = serde_json::from_str(&text).unwrap();
            let mut input = input["composite"].take();
            input["composition"]["metadata"]["name"] = json!(recording.name);
            input["compositeResource"]["spec"]["crossplane"]["compositionRef"] =
                json!({"name": recording.name});
            cases.push(Self { name: recording.name, input });
        }
        assert!(unused.is_empty(), "these exclude nothing: {unused:?}");
        cases
    }

    fn xr(&self) -> &Value {
        &self.input["compositeResource"]
    }

    /// What must exist before the composite resource does.
    fn surroundings(&self) -> Vec<Value> {
        let list = |key: &str| self.input[key].as_array().cloned().unwrap_or_default();
        let mut objects = list("requiredResources");
        objects.extend(list("credentials"));
        objects.push(self.input["composition"].clone());
        objects
    }

    /// The namespaces of everything.
    fn namespaces(&self) -> BTreeSet<String> {
        fn collect(value: &Value, into: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    into.extend(fields.get("namespace").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| collect(value, into));
                }
                Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
                _ => {}
            }
        }
        let mut namespaces = BTreeSet::new();
        collect(&self.input, &mut namespaces);
        namespaces.remove("default");
        namespaces.retain(|namespace| !namespace.is_empty() && !namespace.starts_with("kube-"));
        namespaces
    }

    /// Whether it needs objects outside its namespace, where those of other cases are.
    fn is_alone(&self) -> bool {
        let is_given = |key: &str| self.input[key].is_array();
        is_given("requiredResources")
            || is_given("credentials")
            || self.xr()["metadata"]["namespace"].is_null()
    }
}

/// The definitions of all kinds of composite resources, and of the kinds that they are made of.
fn kinds() -> Vec<Value> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    // What functions say of composite resources.
    let said = ["a", "b", "brokers", "endpoint", "nested", "nothing", "phase", "ready", "seen"];
    let anything = json!({"x-kubernetes-preserve-unknown-fields": true});
    let said: Map<String, Value> =
        said.into_iter().map(|field| (field.to_owned(), anything.clone())).collect();
    let status = json!({"type": "object", "properties": said});
    let xrd = |group: &str, version: &str, kind: &str, plural: &str, scope: &str| {
        json!({
            "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
                "versions": [{"name": version, "served": true, "referenceable": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": status}}}}],
            },
        })
    };
    let crd = |group: &str, kind: &str, plural: &str, scope: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": scope,
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}],
            },
        })
    };
    vec![
        crd("conf.cumulus.example", "Probe", "probes", "Namespaced"),
        crd("broker.cumulus.example", "Topic", "topics", "Namespaced"),
        crd("broker.cumulus.example", "BrokerClass", "brokerclasses", "Cluster"),
        xrd("streams.tidepool.example", "v1", "MessageQueue", "messagequeues", "Namespaced"),
        xrd("compute.kestrel.example", "v1", "KubeCluster", "kubeclusters", "Cluster"),
        xrd("deep.sub.domain.tidepool.example", "v2beta11", "Widget", "widgets", "Namespaced"),
    ]
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The path of an object, or of all objects of its kind in its namespace.
fn path(object: &Value, name: &str) -> String {
    let (api_version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let plural = match kind {
        "BrokerClass" => "brokerclasses".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    let api = if api_version.contains('/') { "apis" } else { "api" };
    let namespace = match text(object, "/metadata/namespace") {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("/{api}/{api_version}{namespace}/{plural}{name}")
}

/// A composite resource and what it is made of, without what differs between servers.
fn comparable(xr: &Value, composed: &[Value]) -> Value {
    let mut all = Map::new();
    let mut status = xr["status"].clone();
    if let Some(Value::Array(conditions)) = status.get_mut("conditions").map(Value::take) {
        status["conditions"] = conditions
            .into_iter()
            .map(|mut condition| {
                let fields = condition.as_object_mut().unwrap();
                fields.remove("lastTransitionTime");
                fields.remove("observedGeneration");
                (text(&condition, "/type").to_owned(), condition)
            })
            .collect();
    }
    all.insert("status".to_owned(), stored(status));
    all.insert("references".to_owned(), xr["spec"]["crossplane"]["resourceRefs"].clone());
    for object in composed {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"]
        {
            metadata.remove(field);
        }
        if object["kind"] == "Namespace" {
            // Only a real server adds these.
            let fields = object.as_object_mut().unwrap();
            fields.retain(|key, _| !matches!(key.as_str(), "spec" | "status"));
            if let Some(Value::Object(labels)) = object["metadata"].get_mut("labels") {
                labels.remove("kubernetes.io/metadata.name");
            }
        }
        let key = format!(
            "{} {}/{}",
            text(&object, "/kind"),
            text(&object, "/metadata/namespace"),
            text(&object, "/metadata/name")
        );
        all.insert(key, stored(object));
    }
    Value::Object(all)
}

/// A value as a server stores it: without fields that are null, and whole numbers without a fraction.
fn stored(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, stored(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(stored).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e18 => json!(float as i64),
            _ => Value::Number(number),
        },
        value => value,
    }
}

/// Renders a case for a composite resource that exists.
fn rendered(case: &Case, uid: &str) -> Value {
    let mut input = case.input.clone();
    input["compositeResource"]["metadata"]["uid"] = json!(uid);
    let request = serde_json::from_value(json!({"composite": input})).unwrap();
    let runner = Arc::new(InProcess::new(registry()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let response = match runtime.block_on(render(request, runner, &Settings::default())) {
        Ok(response) => response,
        Err(RenderError::Fatal { partial, .. }) => *partial,
        Err(error) => panic!("{}: {error}", case.name),
    };
    let response = serde_json::to_value(response).unwrap();
    let output = &response["composite"];
    let composed = output["composedResources"].as_array().cloned().unwrap_or_default();
    comparable(&output["compositeResource"], &composed)
}

/// Composes a case with a control plane in memory.
fn in_memory(case: &Case, uid: &str) -> Value {
    let server = Arc::new(ApiServer::default());
    for definition in own_kinds::definitions() {
        server.register(&definition).unwrap();
    }
    let mut xr = case.xr().clone();
    xr["metadata"]["uid"] = json!(uid);
    let mut objects: Vec<Value> = kinds();
    for namespace in case.namespaces() {
        objects.push(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        );
    }
    objects.extend(case.surroundings());
    objects.push(xr.clone());
    for function in ["function-dummy", "function-go-templating"] {
        objects.push(json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
            "metadata": {"name": format!("{function}-live"), "labels": {"pkg.crossplane.io/package": function}},
            "spec": {"image": function, "desiredState": "Active", "revision": 1},
            "status": {"capabilities": ["composition"]}}));
    }
    server.seed(objects.into_iter().map(|object| Object::from_value(object).unwrap()));
    let options =
        Options { runner: Some(Arc::new(InProcess::new(registry()))), ..Options::default() };
    let mut plane = ControlPlane::new(server.clone(), server.clone(), options).unwrap();
    plane.add_definitions(&definitions::Options::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limit = Limit { reconciles: 200, time: Duration::from_mins(1) };
    // One that fails is never stable.
    runtime.block_on(plane.run_until_stable(&limit)).unwrap();
    let stored: Vec<Value> = server.objects().iter().map(Object::to_value).collect();
    let is_xr = |object: &&Value| object["metadata"]["uid"] == uid;
    let xr = stored.iter().find(is_xr).unwrap();
    let is_composed = |object: &Value| object["metadata"]["ownerReferences"][0]["uid"] == uid;
    let composed: Vec<Value> =
        stored.iter().filter(|object| is_composed(object)).cloned().collect();
    comparable(xr, &composed)
}

/// What the real server has of a case.
fn on_server(world: &World, case: &Case) -> Value {
    let xr = world.get(&path(case.xr(), text(case.xr(), "/metadata/name"))).unwrap();
    let references = xr["spec"]["crossplane"]["resourceRefs"].as_array();
    let composed = references.into_iter().flatten().filter_map(|reference| {
        let namespace = case.xr()["metadata"]["namespace"].as_str();
        let namespace = reference["namespace"].as_str().or(namespace).unwrap_or_default();
        let of = json!({"apiVersion": reference["apiVersion"], "kind": reference["kind"],
            "metadata": {"namespace": namespace}});
        world.get(&path(&of, text(reference, "/name")))
    });
    let composed: Vec<Value> = composed.collect();
    comparable(&xr, &composed)
}

/// Creates an object, or says why the server refuses it.
fn create(world: &World, object: &Value) -> Result<Value, String> {
    let answer = world.client.post(&path(object, ""), object).unwrap();
    if answer.code == 201 { Ok(answer.json()) } else { Err(answer.body) }
}

/// Composes a case in all three ways, and returns the differences.
fn check(world: &World, case: &Case) -> Vec<String> {
    for object in case.surroundings() {
        if let Err(refused) = create(world, &object) {
            return vec![format!("{}: {refused}", case.name)];
        }
    }
    wait_for("the revision", PATIENCE, || {
        let revisions = world.list("/apis/apiextensions.crossplane.io/v1/compositionrevisions");
        let is = |r: &Value| {
            r["metadata"]["labels"]["crossplane.io/composition-name"] == case.name.as_str()
        };
        let made = revisions.iter().any(|r| is(r) && condition(r, "ValidPipeline") == "True");
        if made { Ok(()) } else { Err(format!("{}: {} revisions", case.name, revisions.len())) }
    });
    let xr = match create(world, case.xr()) {
        Ok(xr) => xr,
        Err(refused) => return vec![format!("{}: {refused}", case.name)],
    };
    let uid = text(&xr, "/metadata/uid");
    let (rendered, in_memory) = (rendered(case, uid), in_memory(case, uid));
    let mut lines = Vec::new();
    differences(&format!("{}: rendered, in memory", case.name), &rendered, &in_memory, &mut lines);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let mut live = Vec::new();
        let there = on_server(world, case);
        differences(&format!("{}: rendered, on a server", case.name), &rendered, &there, &mut live);
        if live.is_empty() || std::time::Instant::now() > until {
            lines.extend(live);
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    if case.is_alone() {
        world.delete(&path(&xr, text(&xr, "/metadata/name")));
        for object in case.surroundings() {
            world.delete(&path(&object, text(&object, "/metadata/name")));
        }
    }
    lines
}

#[test]
fn rendered_is_what_a_control_plane_composes() {
    let world = World::new();
    let plane = Plane::start(world.endpoint(), composite::Settings::default());
    for kind in kinds() {
        world.create(&path(&kind, ""), &kind);
    }
    for xrd in kinds().iter().filter(|kind| kind["kind"] == "CompositeResourceDefinition") {
        wait_for("a definition", PATIENCE, || {
            let xrd = world.get(&path(xrd, text(xrd, "/metadata/name"))).unwrap();
            if condition(&xrd, "Established") == "True" { Ok(()) } else { Err(xrd.to_string()) }
        });
    }
    let cases = Case::all();
    println!("{} cases", cases.len());
    assert!(cases.len() > 50, "{}", cases.len());
    let namespaces: BTreeSet<String> = cases.iter().flat_map(Case::namespaces).collect();
    for namespace in namespaces {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        world.create("/api/v1/namespaces", &object);
    }
    let (alone, together): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.is_alone());
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let world = &world;
        let threads: Vec<_> = together
            .chunks(together.len().div_ceil(8))
            .map(|cases| {
                scope.spawn(move || {
                    cases
                        .iter()
                        .map(|case| (case.name.as_str(), check(world, case)))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        lines.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
    });
    lines.extend(alone.iter().map(|case| (case.name.as_str(), check(&world, case))));
    let lines: Vec<String> = lines.into_values().flatten().collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
    plane.stop();
}
