//! Tests with watches that are late, cut off, expired or of an API server that hangs: what happens is
//! the same as without, with the same number of writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use biplane_controlplane::composite::Settings;
use biplane_devenv::proxy::{Action, Proxy};
use biplane_devenv::{Part, Replica};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{PureFunction, Status, request, response};
use biplane_functions::registry;
use biplane_kube::Endpoint;
use biplane_model::Value;
use serde_json::json;

use crate::quiet::{XRS, create, define, mark, of_reconciles, settle, settle_within, since};
use crate::world::{PATIENCE, Plane, Setup, World, condition, explained, wait_for};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How often the observed readiness changes.
const FLIPS: usize = 4;

/// Composes a ConfigMap. Its condition follows what the ConfigMap says of itself.
struct Follower;

impl PureFunction for Follower {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut answer = response::to(&request, response::DEFAULT_TTL);
        let observed = request::observed_composed(&request);
        let said = observed.get("map").map(|map| map.resource.str_at(&["data", "said"]).to_owned());
        match said.as_deref() {
            Some("yes") => response::condition_true(&mut answer, "Followed", "SaysYes"),
            _ => response::condition_false(&mut answer, "Followed", "SaysNo"),
        };
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
        let map =
            biplane_model::Object::from_value(map).ok_or_else(|| Status::internal("no map"))?;
        response::set_desired_resources(&mut answer, [("map".to_owned(), map)]);
        Ok(answer)
    }
}

fn define_follower(world: &World) {
    world.install("function-follower");
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "follower"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "quiet.example.org/v1", "kind": "Thing"},
            "mode": "Pipeline",
            "pipeline": [{"step": "follow", "functionRef": {"name": "function-follower"}}],
        },
    });
    world.create("/apis/apiextensions.crossplane.io/v1/compositions", &composition);
}

/// The ConfigMaps of a composite resource, by their names in the Composition.
fn maps_of(world: &World, xr: &str) -> BTreeMap<String, Value> {
    let name = |map: &Value| {
        let name = &map["metadata"]["annotations"]["crossplane.io/composition-resource-name"];
        name.as_str().unwrap_or_default().to_owned()
    };
    let is_of = |map: &Value| map["metadata"]["ownerReferences"][0]["name"] == xr;
    let maps = world.list(MAPS).into_iter().filter(is_of);
    maps.map(|map| (name(&map), map)).collect()
}

fn path_of(map: &Value) -> String {
    format!("{MAPS}/{}", map["metadata"]["name"].as_str().unwrap())
}

/// Waits until a composite resource and its ConfigMaps are as wanted.
fn wait_until(
    world: &World,
    xr: &str,
    what: &str,
    is: impl Fn(&Value, &BTreeMap<String, Value>) -> bool,
) {
    wait_for(&format!("{xr}: {what}"), PATIENCE, || {
        let object = world.get(&format!("{XRS}/{xr}")).unwrap();
        let maps = maps_of(world, xr);
        if is(&object, &maps) { Ok(()) } else { Err(format!("{object:#?}\n{maps:#?}")) }
    });
}

fn is_ready(xr: &Value) -> bool {
    condition(xr, "Ready") == "True" && condition(xr, "Synced") == "True"
}

/// A composite resource without what is different in each run.
fn state(world: &World, prefix: &str, name: &str) -> Value {
    let xr = world.get(&format!("{XRS}/{prefix}{name}")).unwrap();
    let conditions = ["Ready", "Synced", "Responsive", "Followed"]
        .map(|r#type| (condition(&xr, r#type).to_owned(), explained(&xr, r#type)));
    let maps = maps_of(world, &format!("{prefix}{name}"));
    let maps: BTreeMap<&String, (&Value, bool)> = maps
        .iter()
        .map(|(key, map)| {
            let label = &map["metadata"]["labels"]["crossplane.io/composite"];
            (key, (&map["data"], *label == format!("{prefix}{name}")))
        })
        .collect();
    let references = xr["spec"]["crossplane"]["resourceRefs"].as_array().map(Vec::len);
    json!({"color": xr["spec"]["color"], "conditions": conditions, "maps": maps, "references": references,
        "finalizers": xr["metadata"]["finalizers"]})
}

/// Users and others do this and that with composite resources. Returns how they end, and how often
/// the control plane has written what.
fn play(world: &World, prefix: &str) -> (Value, BTreeMap<String, usize>) {
    let before = mark(world);
    let name = |name: &str| format!("{prefix}{name}");
    let painted = |color: &'static str| {
        move |xr: &Value, maps: &BTreeMap<String, Value>| {
            is_ready(xr)
                && maps.len() == 5
                && maps.values().all(|map| map["data"]["color"] == color)
        }
    };
    for xr in ["one", "two", "three"] {
        create(world, "ready", &name(xr), &json!({}));
    }
    create(world, "follower", &name("follower"), &json!({}));
    for xr in ["one", "two", "three"] {
        wait_until(world, &name(xr), "is ready", painted("red"));
    }
    wait_until(world, &name("follower"), "follows", |xr, maps| {
        condition(xr, "Followed") == "False" && maps.len() == 1
    });
    for xr in ["one", "two"] {
        world.patch(&format!("{XRS}/{}", name(xr)), &json!({"spec": {"color": "green"}}));
    }
    for xr in ["one", "two"] {
        wait_until(world, &name(xr), "is green", painted("green"));
    }
    // Drift: a field, a label, the whole object.
    let one = maps_of(world, &name("one"));
    world.patch(&path_of(&one["map-0"]), &json!({"data": {"color": "grey"}}));
    wait_until(world, &name("one"), "is put back", painted("green"));
    let two = maps_of(world, &name("two"));
    let unlabelled = json!({"metadata": {"labels": {"crossplane.io/composite": null}}});
    world.patch(&path_of(&two["map-1"]), &unlabelled);
    let is_labelled =
        |map: &Value| map["metadata"]["labels"]["crossplane.io/composite"].is_string();
    wait_until(world, &name("two"), "is labelled", |_, maps| maps.values().all(is_labelled));
    world.delete(&path_of(&one["map-2"]));
    let uid = one["map-2"]["metadata"]["uid"].clone();
    wait_until(world, &name("one"), "has another one", |xr, maps| {
        painted("green")(xr, maps) && maps["map-2"]["metadata"]["uid"] != uid
    });
    // The condition follows.
    settle(world);
    let unflipped = mark(world);
    let follower = path_of(&maps_of(world, &name("follower"))["map"]);
    for flip in 0..FLIPS {
        let (said, wanted) = if flip % 2 == 0 { ("yes", "True") } else { ("no", "False") };
        world.patch(&follower, &json!({"data": {"said": said}}));
        wait_until(world, &name("follower"), said, |xr, _| condition(xr, "Followed") == wanted);
    }
    settle(world);
    let flipped = of_reconciles(since(world, &unflipped)).writes().count();
    world.delete(&format!("{XRS}/{}", name("three")));
    wait_for("the end", PATIENCE, || {
        let left = world.get(&format!("{XRS}/{}", name("three")));
        let maps = maps_of(world, &name("three"));
        if left.is_none() && maps.is_empty() { Ok(()) } else { Err(format!("{left:?} {maps:?}")) }
    });
    settle_within(world, Duration::from_secs(2));
    let states = ["one", "two", "follower"].map(|xr| state(world, prefix, xr));
    let mut writes = BTreeMap::from([("while a condition follows".to_owned(), flipped)]);
    for request in of_reconciles(since(world, &before)).writes().iter() {
        *writes.entry(format!("{} {}", request.verb, request.resource)).or_default() += 1;
    }
    (json!(states), writes)
}

/// Disturbs while something happens.
fn disturbed<T>(disturb: impl Fn() + Sync, meanwhile: impl FnOnce() -> T) -> T {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Ordering::SeqCst) {
                disturb();
            }
        });
        let result = meanwhile();
        end.store(true, Ordering::SeqCst);
        result
    })
}

fn cut_and_expire(proxy: &Proxy) {
    std::thread::sleep(Duration::from_millis(150));
    proxy.cut_watches(|_| true);
    std::thread::sleep(Duration::from_millis(150));
    proxy.expire_watches(|_| true);
    std::thread::sleep(Duration::from_millis(150));
    proxy.end_watches(|asked| asked.resource == "configmaps");
}

/// The API server of the watches hangs for a while, again and again.
fn hang(replica: &Replica) {
    replica.pause().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    replica.resume().unwrap();
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
fn late_and_lost_watches_cause_no_other_writes() {
    let world = World::new();
    let replica = world.server.replica().unwrap();
    let proxy = world.server.proxy().unwrap();
    let endpoint = Endpoint { url: proxy.url.clone(), ..world.endpoint() };
    let setup =
        Setup { in_process: registry().with("function-follower", Follower), ..Setup::default() };
    let plane = Plane::start_with(endpoint, setup);
    define(&world);
    define_follower(&world);
    // The kind is known to the garbage collector, and everything is watched.
    world.restart_controllers();
    create(&world, "ready", "first", &json!({}));
    wait_until(&world, "first", "is ready", |xr, _| is_ready(xr));

    let (states, writes) = play(&world, "calm-");
    assert_eq!(writes["while a condition follows"], FLIPS, "{writes:?}");
    println!("{writes:?}");
    let check = |how: &str, (end, count): (Value, BTreeMap<String, usize>)| {
        assert_eq!(end, states, "{how}");
        assert_eq!(count, writes, "{how}");
    };

    let late = proxy.add(|asked| asked.watch, Action::Delay(Duration::from_millis(300)));
    check("late", play(&world, "late-"));
    proxy.remove(late);
    check("lost", disturbed(|| cut_and_expire(&proxy), || play(&world, "lost-")));
    // From now on, all watches are those of the other server.
    replica.answer_watches_of(&proxy);
    wait_for("watches", PATIENCE, || match proxy.cut_watches(|_| true) {
        0 => Err("none is open".to_owned()),
        _ => Ok(()),
    });
    check("stale", disturbed(|| hang(&replica), || play(&world, "stale-")));
    plane.stop();
}

/// Another controller takes a composed resource over, and gives it back.
#[test]
fn a_composed_resource_is_taken_over() {
    let world = World::new();
    let plane = Plane::start(world.endpoint(), Settings::default());
    define(&world);
    create(&world, "ready", "xr", &json!({}));
    wait_until(&world, "xr", "is ready", |xr, maps| is_ready(xr) && maps.len() == 5);
    let map = maps_of(&world, "xr").remove("map-3").unwrap();
    let boss = world.create(
        MAPS,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "boss"}}),
    );
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "boss",
        "uid": boss["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true});
    let taken = json!({"metadata": {"ownerReferences": [owner]}, "data": {"number": "mine now"}});
    world.patch(&path_of(&map), &taken);
    wait_for("the reason", PATIENCE, || {
        let xr = world.get(&format!("{XRS}/xr")).unwrap();
        let said = explained(&xr, "Synced");
        let wanted = ("ReconcileError".to_owned(), "Unsynced resources: map-3".to_owned());
        if said == wanted { Ok(()) } else { Err(xr["status"].to_string()) }
    });
    let events = world.list("/api/v1/namespaces/default/events");
    let refused = "Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/boss and Thing/xr";
    let is = |event: &Value| event["message"].as_str().is_some_and(|m| m.ends_with(refused));
    assert!(events.iter().any(is), "{events:#?}");
    let stays = |map: &Value| {
        map["data"]["number"] == "mine now"
            && map["metadata"]["ownerReferences"].as_array().is_some_and(|o| o.len() == 1)
    };
    assert!(stays(&world.get(&path_of(&map)).unwrap()));
    // The others are still looked after.
    world.patch(&format!("{XRS}/xr"), &json!({"spec": {"color": "green"}}));
    let is_green = |map: &Value| map["data"]["color"] == "green";
    wait_until(&world, "xr", "is green", |_, maps| maps.len() == 4 && maps.values().all(is_green));
    assert!(stays(&world.get(&path_of(&map)).unwrap()));
    // It is given back.
    world.patch(&path_of(&map), &json!({"metadata": {"ownerReferences": null}}));
    wait_until(&world, "xr", "is whole again", |xr, maps| {
        is_ready(xr)
            && maps.len() == 5
            && maps["map-3"]["data"]["number"] == "3"
            && maps.values().all(is_green)
    });
    plane.stop();
}

/// A server that does not answer is no reason to do anything else afterwards.
#[test]
fn what_was_meant_happens_after_etcd_hung() {
    let world = World::new();
    let plane = Plane::start(world.endpoint(), Settings::default());
    define(&world);
    for xr in ["one", "two"] {
        create(&world, "ready", xr, &json!({}));
        wait_until(&world, xr, "is ready", |xr, maps| is_ready(xr) && maps.len() == 5);
    }
    for (turn, color) in ["green", "blue"].into_iter().enumerate() {
        world.patch(&format!("{XRS}/one"), &json!({"spec": {"color": color}}));
        world.server.pause(Part::Etcd).unwrap();
        // Someone changes the other one meanwhile, and is answered afterwards.
        std::thread::scope(|scope| {
            let other = json!({"spec": {"color": color}});
            let waiting = scope.spawn({
                let client = world.client.clone();
                move || client.merge_patch(&format!("{XRS}/two"), &other).unwrap().code
            });
            std::thread::sleep(Duration::from_secs(2 + 2 * turn as u64));
            world.server.resume(Part::Etcd).unwrap();
            let code = waiting.join().unwrap();
            assert!(code == 200 || code >= 500, "{code}");
        });
        // It may have been refused.
        world.patch(&format!("{XRS}/two"), &json!({"spec": {"color": color}}));
        for xr in ["one", "two"] {
            wait_until(&world, xr, color, |xr, maps| {
                is_ready(xr)
                    && maps.len() == 5
                    && maps.values().all(|map| map["data"]["color"] == color)
            });
        }
    }
    plane.stop();
}
