//! Tests with an API server that restarts and watches that end: the same end state is reached.

use biplane_controlplane::composite::Settings;
use biplane_devenv::Part;
use biplane_devenv::proxy::Action;
use biplane_kube::Endpoint;
use biplane_model::Value;
use serde_json::json;

use crate::quiet::{create, define, maps, settle, wait_until};
use crate::world::{PATIENCE, Plane, World, wait_for};

const XR: &str = "/apis/quiet.example.org/v1/namespaces/default/things/xr-0";

/// Waits until the ConfigMaps of the first composite resource have a color.
fn wait_for_color(world: &World, color: &str) {
    let path =
        "/api/v1/namespaces/default/configmaps?labelSelector=crossplane.io%2Fcomposite%3Dxr-0";
    wait_for(color, PATIENCE, || {
        let maps = world.list(path);
        let are = maps.iter().filter(|map| map["data"]["color"] == color).count();
        if are == 5 { Ok(()) } else { Err(format!("{maps:#?}")) }
    });
}

fn paint(world: &World, color: &str) {
    world.patch(XR, &json!({"spec": {"color": color}}));
}

#[test]
fn restarts_and_lost_watches_change_nothing_in_the_end() {
    let world = World::new();
    let proxy = world.server.proxy().unwrap();
    let endpoint = Endpoint { url: proxy.url.clone(), ..world.endpoint() };
    let plane = Plane::start(endpoint, Settings::default());
    define(&world);
    for number in 0..5 {
        create(&world, "ready", &format!("xr-{number}"), &json!({}));
    }
    wait_until(&world, 5, ("Ready", "True"));

    // What changes while watches are cut is noticed afterwards.
    assert!(proxy.cut_watches(|_| true) > 0);
    paint(&world, "green");
    wait_for_color(&world, "green");

    // Also if the server does not remember where they were.
    assert!(proxy.expire_watches(|_| true) > 0);
    paint(&world, "blue");
    wait_for_color(&world, "blue");
    proxy.cut_connections();
    let map = maps(&world).remove(0).0;
    let answer = world.client.delete(&format!("/api/v1/namespaces/default/configmaps/{map}"));
    assert_eq!(answer.unwrap().code, 200);
    wait_for("the deleted ConfigMap", PATIENCE, || {
        let names: Vec<String> = maps(&world).into_iter().map(|(name, _)| name).collect();
        if names.contains(&map) { Ok(()) } else { Err(format!("{names:?}")) }
    });

    // Requests that are refused for now, and answers that are lost.
    let throttled = Action::Respond { code: 429, retry_after: Some(1) };
    proxy.add_times(10, |asked| asked.method == "PATCH", throttled);
    paint(&world, "black");
    wait_for_color(&world, "black");
    proxy.add_times(5, |asked| asked.method == "PATCH", Action::LoseAnswer);
    paint(&world, "white");
    wait_for_color(&world, "white");
    proxy.clear();

    world.server.restart(Part::ApiServer).unwrap();
    paint(&world, "brown");
    wait_for_color(&world, "brown");
    create(&world, "ready", "xr-5", &json!({}));
    wait_until(&world, 6, ("Ready", "True"));
    settle(&world);
    wait_until(&world, 6, ("Synced", "True"));
    assert_eq!(maps(&world).len(), 30);
    let xr: Value = world.get(XR).unwrap();
    assert_eq!(xr["spec"]["crossplane"]["resourceRefs"].as_array().unwrap().len(), 5);
    plane.stop();
}
