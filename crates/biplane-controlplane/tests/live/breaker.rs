//! Tests of the circuit breaker on a real API server.

use biplane_controlplane::BreakerLimits;
use biplane_controlplane::composite::Settings;
use biplane_model::Value;
use serde_json::json;

use crate::quiet::{XRS, create, define, mark, of_reconciles, settle, since};
use crate::world::{PATIENCE, Plane, World, condition, explained, wait_for};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const API: &str = "/apis/apiextensions.crossplane.io/v1";

fn touch(world: &World, path: &str, number: usize) {
    let annotation = json!({"example.org/touch": number.to_string()});
    world.patch(path, &json!({"metadata": {"annotations": annotation}}));
}

fn wait_for_condition(world: &World, xr: &str, r#type: &str, status: &str) -> Value {
    wait_for(&format!("{xr} {type}={status}"), PATIENCE, || {
        let xr = world.get(&format!("{XRS}/{xr}"));
        let is = xr.as_ref().is_some_and(|xr| condition(xr, r#type) == status);
        if is { Ok(xr.unwrap()) } else { Err(format!("{xr:#?}")) }
    })
}

/// The names of the ConfigMaps of a composite resource.
fn maps_of(world: &World, xr: &str) -> Vec<String> {
    let maps = world.list(&format!("{MAPS}?labelSelector=crossplane.io%2Fcomposite%3D{xr}"));
    maps.iter().map(|map| map["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// A Composition of sixty ConfigMaps, and a thousand revisions of it that nobody uses.
fn define_sixty(world: &World) {
    let resource = |number: usize| {
        json!({"name": format!("map-{number}"),
            "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": number.to_string()}}})
    };
    let resources: Vec<Value> = (0..60).map(resource).collect();
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "sixty"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "quiet.example.org/v1", "kind": "Thing"},
            "mode": "Pipeline",
            "pipeline": [
                {"step": "maps", "functionRef": {"name": "function-patch-and-transform"}, "input": {
                    "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources}},
                {"step": "ready", "functionRef": {"name": "function-auto-ready"}},
            ],
        },
    });
    world.create(&format!("{API}/compositions"), &composition);
}

/// Revisions of a Composition that were made long ago.
fn make_revisions(world: &World, composition: &str, count: usize) {
    let path = format!("{API}/compositionrevisions");
    let revisions = world.list(&path);
    let label = "crossplane.io/composition-name";
    let newest = revisions.iter().find(|r| r["metadata"]["labels"][label] == composition).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for number in (thread..count).step_by(4) {
                    let name = format!("{composition}-{number:07x}");
                    let hash = format!("{number:063x}");
                    let mut revision = json!({
                        "apiVersion": newest["apiVersion"], "kind": newest["kind"],
                        "metadata": {"name": name, "ownerReferences": newest["metadata"]["ownerReferences"],
                            "labels": {label: composition, "crossplane.io/composition-hash": hash}},
                        "spec": newest["spec"],
                    });
                    revision["spec"]["revision"] = json!(number + 2);
                    revision["spec"]["pipeline"][0]["step"] = json!(format!("maps-{number}"));
                    world.create(path, &revision);
                }
            });
        }
    });
}

#[test]
fn only_what_keeps_changing_is_held_back() {
    let world = World::new();
    let limits = BreakerLimits { burst: 20.0, ..BreakerLimits::default() };
    let settings = Settings { breaker: limits, ..Settings::default() };
    let plane = Plane::start(world.endpoint(), settings.clone());
    define(&world);
    define_sixty(&world);

    // Sixty resources are made at once, and somebody changes all of them.
    create(&world, "sixty", "sixty", &json!({}));
    wait_for_condition(&world, "sixty", "Ready", "True");
    let maps = maps_of(&world, "sixty");
    assert_eq!(maps.len(), 60);
    for round in 0..3 {
        for map in &maps {
            touch(&world, &format!("{MAPS}/{map}"), round);
        }
    }
    settle(&world);
    wait_for_condition(&world, "sixty", "Responsive", "True");

    // Something that keeps changing is held back, and nothing is asked then.
    create(&world, "ready", "restless", &json!({}));
    wait_for_condition(&world, "restless", "Ready", "True");
    let path = format!("{XRS}/restless");
    let mut touches = 0;
    let restless = wait_for("the circuit", PATIENCE, || {
        for _ in 0..10 {
            touches += 1;
            touch(&world, &path, touches);
        }
        let xr = world.get(&path).unwrap();
        if condition(&xr, "Responsive") == "False" { Ok(xr) } else { Err(xr["status"].to_string()) }
    });
    let (reason, message) = explained(&restless, "Responsive");
    assert_eq!(reason, "WatchCircuitOpen");
    let source =
        "Too many watch events from Thing/restless (default). Allowing events periodically.";
    assert!(message.starts_with(source), "{message}");
    settle(&world);
    let before = mark(&world);
    for number in 0..50 {
        touch(&world, &path, 10_000 + number);
    }
    settle(&world);
    let asked = since(&world, &before).filter(|r| r.verb != "watch");
    assert!(asked.is_empty(), "something was asked while the circuit is open:\n{asked}");

    // Another object of the same name begins anew.
    world.delete(&path);
    wait_for("the end", PATIENCE, || match world.get(&path) {
        None => Ok(()),
        Some(xr) => Err(xr.to_string()),
    });
    create(&world, "ready", "restless", &json!({}));
    wait_for_condition(&world, "restless", "Ready", "True");
    let again = wait_for_condition(&world, "restless", "Responsive", "True");
    assert_ne!(again["metadata"]["uid"], restless["metadata"]["uid"]);
    for number in 0..5 {
        touch(&world, &path, number);
    }
    settle(&world);
    wait_for_condition(&world, "restless", "Responsive", "True");
    plane.stop();

    // A thousand revisions are no changes.
    make_revisions(&world, "sixty", 1_000);
    let before = mark(&world);
    let plane = Plane::start(world.endpoint(), settings);
    settle(&world);
    let sixty = world.get(&format!("{XRS}/sixty")).unwrap();
    assert_eq!(condition(&sixty, "Responsive"), "True");
    let written = of_reconciles(since(&world, &before)).writes();
    println!("{written}");
    let opened = world.list("/api/v1/namespaces/default/events");
    let is_open = |event: &&Value| event["message"].to_string().contains("Too many watch events");
    assert!(opened.iter().filter(is_open).count() <= 1, "{opened:#?}");
    plane.stop();
}
