//! Tests with others who work on the same objects: a field manager and a mutating webhook. At rest,
//! nothing is asked and nothing is written.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use biplane_cluster::Skipping;
use biplane_controlplane::composite::Settings;
use biplane_model::Value;
use serde_json::json;

use crate::quiet::{create, define, mark, settle_within, since, wait_until};
use crate::webhook::Webhook;
use crate::world::{PATIENCE, Plane, Setup, World, condition, wait_for};

/// The kinds that are composed, by their paths.
const KINDS: [&str; 5] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/gadgets.example.org/v1/namespaces/default/gadgets",
];
const OF_ZOOS: &str = "?labelSelector=zoo";
const API: &str = "/apis/apiextensions.crossplane.io/v1";

/// A kind with defaults and a quantity.
fn define_gadgets(world: &World) {
    let string = |default: &str| json!({"type": "string", "default": default});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "memory": {"x-kubernetes-int-or-string": true,
            "pattern": "^[0-9]+(Mi|Gi|m)?$", "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "mode": string("auto"),
        "nested": {"type": "object", "default": {}, "properties": {"level": string("low")}},
        "parts": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties":
                {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}}},
        },
    }}}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.gadgets.example.org"},
        "spec": {
            "group": "gadgets.example.org", "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    world.create(crds, &crd);
    wait_for("the kind", PATIENCE, || {
        let crd = world.get(&format!("{crds}/gadgets.gadgets.example.org")).unwrap();
        if condition(&crd, "Established") == "True" { Ok(()) } else { Err(crd.to_string()) }
    });
}

/// A Composition with a resource of each kind. The server stores some of their fields in another
/// form, and adds others.
fn define_zoo(world: &World) {
    let container = json!({"name": "main", "image": "registry.example.org/main", "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}, "env": [{"name": "A", "value": "b"}]});
    let bases = [
        ("map", "v1", "ConfigMap", json!({"data": {"loud": "quiet", "a": "b"}})),
        ("secret", "v1", "Secret", json!({"data": {"password": "c2VjcmV0"}})),
        ("written", "v1", "Secret", json!({"stringData": {"password": "secret"}})),
        (
            "service",
            "v1",
            "Service",
            json!({"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}),
        ),
        (
            "deployment",
            "apps/v1",
            "Deployment",
            json!({"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {
                "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}}}),
        ),
        (
            "gadget",
            "gadgets.example.org/v1",
            "Gadget",
            json!({"spec": {"memory": "1024Mi", "parts": [{"name": "one"}, {"name": "two", "size": 3}]}}),
        ),
    ];
    let resources = bases.into_iter().map(|(name, api_version, kind, mut base)| {
        base["apiVersion"] = json!(api_version);
        base["kind"] = json!(kind);
        base["metadata"] = json!({"labels": {"zoo": name}});
        json!({"name": name, "base": base})
    });
    let resources: Vec<Value> = resources.collect();
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "zoo"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "quiet.example.org/v1", "kind": "Thing"},
            "mode": "Pipeline",
            "pipeline": [
                {"step": "zoo", "functionRef": {"name": "function-patch-and-transform"}, "input": {
                    "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
                    "resources": resources}},
                {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
            ],
        },
    });
    world.create(&format!("{API}/compositions"), &composition);
}

/// What the other manager applies to everything that zoos are made of.
fn manage(world: &World, mark: &str) -> usize {
    let mut objects = 0;
    for kind in KINDS {
        for object in world.list(&format!("{kind}{OF_ZOOS}")) {
            let name = object["metadata"]["name"].as_str().unwrap();
            let mut fields = json!({
                "apiVersion": object["apiVersion"], "kind": object["kind"],
                "metadata": {"name": name, "labels": {"other.example.org/mark": mark}},
            });
            if object["kind"] == "ConfigMap" {
                fields["data"] = json!({"other": mark});
            }
            world.apply(&format!("{kind}/{name}"), "other", &fields);
            objects += 1;
        }
    }
    objects
}

/// Everything that zoos are made of.
fn composed(world: &World) -> Vec<Value> {
    let mut objects: Vec<Value> =
        KINDS.iter().flat_map(|kind| world.list(&format!("{kind}{OF_ZOOS}"))).collect();
    for object in &mut objects {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !matches!(key.as_str(), "managedFields" | "resourceVersion"));
    }
    objects
}

/// Lets the other manager apply something twice in each interval.
fn managed<T>(
    world: &World,
    interval: Duration,
    mark_of: impl Fn(usize) -> String + Sync,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if end.load(Ordering::SeqCst) {
                    break;
                }
                assert_eq!(manage(world, &mark_of(number)), 18);
                std::thread::sleep(interval / 2);
            }
        });
        let result = meanwhile();
        end.store(true, Ordering::SeqCst);
        result
    })
}

/// Asserts that nothing is asked for ten intervals while the other manager works.
fn assert_rest(
    world: &World,
    plane: &Plane,
    interval: Duration,
    mark_of: impl Fn(usize) -> String + Sync,
) {
    let (before, skipped) = (mark(world), plane.skipped());
    managed(world, interval, mark_of, || std::thread::sleep(interval * 10));
    let asked = since(world, &before).filter(|r| r.verb != "watch" && !r.dry_run);
    assert!(asked.is_empty(), "something was asked at rest:\n{asked}");
    assert!(plane.skipped() > skipped, "nothing was reconciled");
}

/// Asserts that each event was told once.
fn assert_no_event_twice(world: &World) {
    let mut told = BTreeSet::new();
    for event in world.list("/api/v1/namespaces/default/events") {
        let about = &event["involvedObject"];
        let what = [&about["kind"], &about["name"], &event["reason"], &event["message"]];
        let what = what.map(ToString::to_string);
        assert!(event["count"].as_u64().unwrap_or(1) <= 1, "{event:#?}");
        assert!(told.insert(what), "told twice: {event:#?}");
    }
    assert!(told.len() > 10, "{told:?}");
}

#[test]
fn nothing_is_asked_while_others_work_on_the_same_objects() {
    let interval = Duration::from_secs(1);
    let world = World::new();
    let webhook = Webhook::start(&world);
    let polling = Settings { realtime: false, poll_interval: interval, ..Settings::default() };
    let plane = Plane::start(world.endpoint(), polling);
    define(&world);
    define_gadgets(&world);
    define_zoo(&world);
    let paused = json!({"crossplane.io/paused": "true"});
    for number in 0..3 {
        for composition in ["zoo", "ready", "unready", "failing"] {
            create(&world, composition, &format!("{composition}-{number}"), &json!({}));
        }
        create(&world, "zoo", &format!("paused-{number}"), &paused);
    }
    // A Deployment is not ready without its controller.
    wait_until(&world, 3, ("Ready", "True"));
    wait_until(&world, 9, ("Synced", "True"));
    wait_until(&world, 6, ("Synced", "False"));
    manage(&world, "same");
    settle_within(&world, interval * 3);
    let before = composed(&world);
    assert_rest(&world, &plane, interval, |_| "same".to_owned());
    assert_eq!(composed(&world), before);
    assert_no_event_twice(&world);
    // Both have left their traces.
    let map = before.iter().find(|object| object["kind"] == "ConfigMap").unwrap();
    let data = json!({"a": "b", "defaulted": "by the webhook", "loud": "QUIET", "other": "same"});
    assert_eq!(map["data"], data);
    let deployment = before.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["hostname"], "defaulted");
    assert!(webhook.asked() > 100, "{}", webhook.asked());
    plane.stop();

    // Also if each change of the other manager is noticed.
    let setup = Setup { skipping: Skipping::Skip, ..Setup::default() };
    let stored = composed(&world);
    let (before, plane) = (mark(&world), Plane::start_with(world.endpoint(), setup));
    settle_within(&world, interval * 3);
    // What the server stores in another form is applied once per process. It changes nothing.
    let written = since(&world, &before).writes().filter(|r| r.resource != "events");
    let applied = |resource: &str| written.clone().of_resource(resource).count();
    let zoo = ["configmaps", "deployments", "services", "secrets", "gadgets"].map(applied);
    assert_eq!(zoo.iter().sum::<usize>(), written.count(), "{written}");
    assert!(zoo.iter().all(|count| *count <= 3), "{written}");
    assert_eq!(composed(&world), stored);
    let changing = |number: usize| format!("changed-{}", number / 2);
    assert_rest(&world, &plane, interval, changing);
    plane.stop();

    // What is skipped meanwhile would have changed nothing.
    let plane = Plane::start(world.endpoint(), Settings::default());
    let skipped = plane.skipped();
    managed(
        &world,
        interval / 5,
        |number| number.to_string(),
        || {
            wait_for("reconciles", PATIENCE, || match plane.skipped() - skipped {
                0..200 => Err(format!("{} applies skipped", plane.skipped() - skipped)),
                _ => Ok(()),
            });
        },
    );
    plane.stop();
}
