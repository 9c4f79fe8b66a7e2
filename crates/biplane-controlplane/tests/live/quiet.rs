//! Tests that count requests in the audit log: nothing is asked that a watch has answered, and
//! nothing is written that would change nothing.

use std::time::Duration;

use biplane_controlplane::composite::Settings;
use biplane_devenv::{Mark, Requests};
use biplane_model::Value;
use serde_json::json;

use crate::world::{PATIENCE, Plane, USER, World, condition, wait_for};

const GROUP: &str = "quiet.example.org";
pub(crate) const XRS: &str = "/apis/quiet.example.org/v1/namespaces/default/things";

/// A kind of composite resources, and a Composition that makes five ConfigMaps.
pub(crate) fn define(world: &World) {
    const API: &str = "/apis/apiextensions.crossplane.io";
    let string = json!({"type": "string"});
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("things.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"color": string}}},
            }}}],
        },
    });
    world.create(&format!("{API}/v2/compositeresourcedefinitions"), &xrd);
    let resource = |number: usize| {
        json!({
            "name": format!("map-{number}"),
            "base": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": number.to_string()}},
            "patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.color", "toFieldPath": "data.color"}],
        })
    };
    let resources: Vec<Value> = (0..5).map(resource).collect();
    let step = |name: &str, function: &str, input: Value| json!({"step": name, "functionRef": {"name": function}, "input": input});
    let maps = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources});
    let auto_ready = json!({"step": "ready", "functionRef": {"name": "function-auto-ready"}});
    let says = |response: Value| json!({"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": response});
    let map = json!({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}});
    let unready = says(json!({"desired": {"resources": {"map": map}}}));
    let ready = json!({"resource": map["resource"], "ready": "READY_TRUE"});
    let expiring = says(json!({"meta": {"ttl": "2s"}, "desired": {"resources": {"map": ready}}}));
    let fatal = says(json!({"results": [{"severity": "SEVERITY_FATAL", "message": "no"}]}));
    for (name, pipeline) in [
        ("ready", json!([step("maps", "function-patch-and-transform", maps), auto_ready])),
        ("unready", json!([step("map", "function-dummy", unready)])),
        ("failing", json!([step("fail", "function-dummy", fatal)])),
        ("expiring", json!([step("map", "function-dummy", expiring)])),
    ] {
        let composition = json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": {"name": name},
            "spec": {
                "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "Thing"},
                "mode": "Pipeline", "pipeline": pipeline,
            },
        });
        world.create(&format!("{API}/v1/compositions"), &composition);
        wait_for("a revision", PATIENCE, || {
            let revisions = world.list(&format!("{API}/v1/compositionrevisions"));
            let made = revisions.iter().any(|r| {
                r["metadata"]["labels"]["crossplane.io/composition-name"] == name
                    && condition(r, "ValidPipeline") == "True"
            });
            if made { Ok(()) } else { Err(format!("{revisions:#?}")) }
        });
    }
    wait_for("the definition", PATIENCE, || {
        let path = format!("{API}/v2/compositeresourcedefinitions/things.{GROUP}");
        let xrd = world.get(&path).unwrap();
        if condition(&xrd, "Established") == "True" { Ok(()) } else { Err(xrd.to_string()) }
    });
}

/// A kind of claims, and a Composition that makes five ConfigMaps for each.
fn define_claims(world: &World) {
    const API: &str = "/apis/apiextensions.crossplane.io/v1";
    let string = json!({"type": "string"});
    let names = |kind: &str| json!({"kind": kind, "plural": format!("{}s", kind.to_lowercase())});
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": format!("xorders.{GROUP}")},
        "spec": {
            "group": GROUP, "names": names("XOrder"), "claimNames": names("Order"),
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"color": string}}},
            }}}],
        },
    });
    world.create(&format!("{API}/compositeresourcedefinitions"), &xrd);
    let mut composition = world.get(&format!("{API}/compositions/ready")).unwrap();
    let mut spec = composition["spec"].take();
    spec["compositeTypeRef"]["kind"] = json!("XOrder");
    for resource in spec["pipeline"][0]["input"]["resources"].as_array_mut().unwrap() {
        resource["base"]["metadata"] = json!({"namespace": "default"});
    }
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "orders"}, "spec": spec,
    });
    world.create(&format!("{API}/compositions"), &composition);
    wait_for("the definition", PATIENCE, || {
        let xrd =
            world.get(&format!("{API}/compositeresourcedefinitions/xorders.{GROUP}")).unwrap();
        if condition(&xrd, "Offered") == "True" { Ok(()) } else { Err(xrd.to_string()) }
    });
}

/// Creates a claim, and waits until it is ready.
fn claim(world: &World, name: &str) {
    let path = format!("/apis/{GROUP}/v1/namespaces/default/orders");
    let claim = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Order",
        "metadata": {"name": name, "namespace": "default"}, "spec": {"color": "red"},
    });
    world.create(&path, &claim);
    wait_for("the claim", PATIENCE, || {
        let claim = world.get(&format!("{path}/{name}")).unwrap();
        if condition(&claim, "Ready") == "True" { Ok(()) } else { Err(claim.to_string()) }
    });
}

/// Creates a composite resource of a Composition.
pub(crate) fn create(world: &World, composition: &str, name: &str, annotations: &Value) {
    let xr = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Thing",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"color": "red", "crossplane": {"compositionRef": {"name": composition}}},
    });
    world.create(XRS, &xr);
}

/// Waits until so many composite resources have a condition.
pub(crate) fn wait_until(world: &World, count: usize, wanted: (&str, &str)) {
    wait_for(&format!("{count} with {wanted:?}"), PATIENCE, || {
        let xrs = world.list(XRS);
        let are = xrs.iter().filter(|xr| condition(xr, wanted.0) == wanted.1).count();
        if are == count { Ok(()) } else { Err(format!("{are}: {xrs:#?}")) }
    });
}

/// The ConfigMaps that were composed, without what a write changes.
pub(crate) fn maps(world: &World) -> Vec<(String, String)> {
    let maps =
        world.list("/api/v1/namespaces/default/configmaps?labelSelector=crossplane.io%2Fcomposite");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    maps.iter()
        .map(|m| (text(&m["metadata"]["name"]), text(&m["metadata"]["resourceVersion"])))
        .collect()
}

pub(crate) fn since(world: &World, mark: &Mark) -> Requests {
    world.server.audit_log().unwrap().requests_since(mark).unwrap().of_user(USER)
}

/// Everything but watches, dry runs and events.
pub(crate) fn of_reconciles(requests: Requests) -> Requests {
    requests.filter(|r| r.verb != "watch" && !r.dry_run && r.resource != "events")
}

pub(crate) fn mark(world: &World) -> Mark {
    world.server.audit_log().unwrap().mark().unwrap()
}

/// Waits until nothing has been asked for a second. Dry runs do not count: they verify.
pub(crate) fn settle(world: &World) {
    settle_within(world, Duration::from_secs(1));
}

/// Waits until nothing has been asked for some time.
pub(crate) fn settle_within(world: &World, time: Duration) {
    wait_for("rest", PATIENCE, || {
        let before = mark(world);
        std::thread::sleep(time);
        let asked = since(world, &before).filter(|r| r.verb != "watch" && !r.dry_run);
        if asked.is_empty() { Ok(()) } else { Err(asked.to_string()) }
    });
}

#[test]
fn nothing_is_read_or_written_twice_until_ready_and_a_restart_writes_nothing() {
    let world = World::new();
    let plane = Plane::start(world.endpoint(), Settings::default());
    define(&world);
    // The first one starts the watches.
    create(&world, "ready", "first", &json!({}));
    wait_until(&world, 1, ("Ready", "True"));
    settle(&world);

    let before = mark(&world);
    create(&world, "ready", "second", &json!({}));
    wait_until(&world, 2, ("Ready", "True"));
    settle(&world);
    let requests = since(&world, &before);
    let asked = of_reconciles(requests.clone());
    let (writes, all) = (asked.clone().writes().count(), asked.count());
    assert!(writes <= 9, "{writes} writes:\n{asked}");
    assert_eq!(all, writes, "there were reads:\n{asked}");
    let events = requests.of_resource("events").writes().count();

    define_claims(&world);
    claim(&world, "first");
    settle(&world);
    let before = mark(&world);
    claim(&world, "second");
    settle(&world);
    let asked = of_reconciles(since(&world, &before));
    let claimed = asked.clone().writes().count();
    assert!(claimed <= writes + 5, "{claimed} writes for a claim:\n{asked}");
    assert_eq!(asked.count(), claimed, "there were reads:\n{asked}");

    for number in 2..50 {
        create(&world, "ready", &format!("xr-{number}"), &json!({}));
    }
    wait_until(&world, 50, ("Ready", "True"));
    settle(&world);
    let skipped = plane.skipped();
    plane.stop();

    let (before, composed) = (mark(&world), maps(&world));
    let plane = Plane::start(world.endpoint(), Settings::default());
    wait_for("all to be reconciled", PATIENCE, || {
        let skipped = plane.skipped();
        if skipped >= 250 { Ok(()) } else { Err(format!("{skipped} applies skipped")) }
    });
    settle(&world);
    let requests = since(&world, &before);
    let written = requests.clone().writes();
    assert!(written.is_empty(), "a restart writes nothing:\n{written}");
    let asked = requests.filter(|r| !r.dry_run);
    assert!(asked.count() <= 60, "{asked}");
    assert_eq!(maps(&world), composed);
    println!(
        "{writes} writes and {events} events to Ready; {claimed} writes for a claim; {skipped} applies skipped; {} requests of a restart",
        asked.count()
    );
    plane.stop();
}

/// Ten intervals of polling, in which nothing but the renewal of watches may be asked.
#[test]
fn at_rest_nothing_is_asked() {
    let interval = Duration::from_secs(2);
    let world = World::new();
    let settings = Settings { realtime: false, poll_interval: interval, ..Settings::default() };
    let plane = Plane::start(world.endpoint(), settings);
    define(&world);
    let paused = json!({"crossplane.io/paused": "true"});
    for number in 0..25 {
        for composition in ["ready", "unready", "failing"] {
            create(&world, composition, &format!("{composition}-{number}"), &json!({}));
        }
        create(&world, "ready", &format!("paused-{number}"), &paused);
    }
    wait_until(&world, 25, ("Ready", "True"));
    // Paused and failing ones.
    wait_until(&world, 50, ("Synced", "False"));
    settle(&world);

    let (before, skipped) = (mark(&world), plane.skipped());
    std::thread::sleep(interval * 10);
    let requests = since(&world, &before);
    let asked = requests.filter(|r| r.verb != "watch" && !r.dry_run);
    assert!(asked.is_empty(), "something was asked at rest:\n{asked}");
    let skipped = plane.skipped() - skipped;
    println!("{skipped} applies skipped at rest");
    assert!(skipped > 0, "nothing was reconciled");
    plane.stop();
}

/// The same as above, when functions say how long their answers are good.
#[test]
fn answers_that_expire_cause_no_requests() {
    let world = World::new();
    let plane = Plane::start(world.endpoint(), Settings::default());
    define(&world);
    for number in 0..50 {
        create(&world, "expiring", &format!("expiring-{number}"), &json!({}));
        create(&world, "ready", &format!("ready-{number}"), &json!({}));
    }
    wait_until(&world, 100, ("Ready", "True"));
    settle(&world);
    let (before, skipped) = (mark(&world), plane.skipped());
    // Each of the fifty is reconciled again ten times, with one resource each.
    wait_for("ten reconciles", PATIENCE, || {
        let skipped = plane.skipped() - skipped;
        if skipped >= 500 { Ok(()) } else { Err(format!("{skipped} applies skipped")) }
    });
    let asked = since(&world, &before).filter(|r| r.verb != "watch" && !r.dry_run);
    assert!(asked.is_empty(), "something was asked at rest:\n{asked}");
    plane.stop();
}
