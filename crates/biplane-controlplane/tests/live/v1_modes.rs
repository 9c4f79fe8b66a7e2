//! Compositions of mode Resources and environments on a real API server.

use biplane_controlplane::composite::Settings;
use biplane_controlplane::init::Features;
use biplane_model::Value;
use serde_json::json;

use crate::world::{PATIENCE, Plane, World, condition, wait_for};

const API: &str = "/apis/apiextensions.crossplane.io";
const XR: &str = "/apis/modes.example.org/v1/xapps/shop";
const MAPS: &str =
    "/api/v1/namespaces/default/configmaps?labelSelector=crossplane.io%2Fcomposite%3Dshop";

fn define(world: &World) {
    let text = json!({"type": "string"});
    let spec = json!({"type": "object", "properties": {"stage": text, "tier": text}});
    let status = json!({"type": "object", "properties": {"map": text}});
    let xrd = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xapps.modes.example.org"},
        "spec": {
            "group": "modes.example.org", "names": {"kind": "XApp", "plural": "xapps"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec, "status": status},
            }}}],
        },
    });
    world.create(&format!("{API}/v1/compositeresourcedefinitions"), &xrd);
    for (version, name, stage, data) in [
        ("v1beta1", "base", "", json!({"region": "eu", "tier": "silver"})),
        ("v1alpha1", "prod", "prod", json!({"tier": "gold"})),
    ] {
        let config = json!({
            "apiVersion": format!("apiextensions.crossplane.io/{version}"), "kind": "EnvironmentConfig",
            "metadata": {"name": name, "labels": {"stage": stage}}, "data": data,
        });
        world.create(&format!("{API}/{version}/environmentconfigs"), &config);
    }
    wait_for("the definition", PATIENCE, || {
        let path = format!("{API}/v1/compositeresourcedefinitions/xapps.modes.example.org");
        let xrd = world.get(&path).unwrap();
        if condition(&xrd, "Established") == "True" { Ok(()) } else { Err(xrd.to_string()) }
    });
}

fn patch(r#type: &str, from: &str, to: &str) -> Value {
    json!({"type": r#type, "fromFieldPath": from, "toFieldPath": to})
}

fn composition() -> Value {
    let template = |name: &str| {
        json!({
            "name": name,
            "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"of": name}}},
            "patches": [
                patch("FromEnvironmentFieldPath", "namespace", "metadata.namespace"),
                patch("FromEnvironmentFieldPath", "region", "data.region"),
                patch("FromCompositeFieldPath", "spec.tier", "data.tier"),
                patch("ToCompositeFieldPath", "metadata.name", "status.map"),
            ],
            "readinessChecks": [{"type": "NonEmpty", "fieldPath": "metadata.uid"}],
        })
    };
    let stage = json!({"key": "stage", "valueFromFieldPath": "spec.stage"});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "app"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "modes.example.org/v1", "kind": "XApp"},
            "mode": "Resources",
            "environment": {
                "defaultData": {"namespace": "default"},
                "environmentConfigs": [
                    {"type": "Reference", "ref": {"name": "base"}},
                    {"type": "Selector", "selector": {"matchLabels": [stage]}},
                ],
                "patches": [patch("ToCompositeFieldPath", "tier", "spec.tier")],
            },
            "resources": [template("one"), template("two")],
        },
    })
}

/// Waits until there are so many ConfigMaps, all of a region.
fn wait_for_maps(world: &World, count: usize, region: &str) -> Vec<Value> {
    wait_for(region, PATIENCE, || {
        let maps = world.list(MAPS);
        let are = maps.iter().filter(|map| map["data"]["region"] == region).count();
        if are == count && maps.len() == count { Ok(maps) } else { Err(format!("{maps:#?}")) }
    })
}

#[test]
fn templates_and_environments_are_composed_on_a_real_server() {
    let world = World::with(Features { resources_mode: true, environments: true });
    let settings = Settings { resources_mode: true, environments: true, ..Settings::default() };
    let plane = Plane::start(world.endpoint(), settings);
    define(&world);
    let compositions = format!("{API}/v1/compositions");
    let mut empty = composition();
    empty["spec"].as_object_mut().unwrap().remove("resources");
    let refused = world.client.post(&compositions, &empty).unwrap();
    assert_eq!(refused.code, 422, "{}", refused.body);
    assert!(refused.body.contains("an array of resources is required in Resources mode"));
    world.create(&compositions, &composition());
    let xr = json!({
        "apiVersion": "modes.example.org/v1", "kind": "XApp", "metadata": {"name": "shop"},
        "spec": {"stage": "prod"},
    });
    world.create("/apis/modes.example.org/v1/xapps", &xr);
    let shop = wait_for("readiness", PATIENCE, || {
        let xr = world.get(XR).unwrap();
        let is_done = condition(&xr, "Ready") == "True" && condition(&xr, "Synced") == "True";
        if is_done { Ok(xr) } else { Err(xr.to_string()) }
    });
    let names: Vec<_> = shop["spec"]["environmentConfigRefs"].as_array().unwrap().iter().collect();
    assert_eq!((&names[0]["name"], &names[1]["name"]), (&json!("base"), &json!("prod")));
    assert_eq!(shop["spec"]["tier"], "gold");
    let maps = wait_for_maps(&world, 2, "eu");
    assert!(maps.iter().all(|map| map["data"]["tier"] == "gold"), "{maps:#?}");
    // References are in the order of templates, and the last patch wins.
    let named = |of: &str| {
        let map = maps.iter().find(|map| map["metadata"]["labels"]["of"] == of).unwrap();
        map["metadata"]["name"].clone()
    };
    let references = shop["spec"]["resourceRefs"].as_array().unwrap();
    assert_eq!(
        references.iter().map(|r| r["name"].clone()).collect::<Vec<_>>(),
        [named("one"), named("two")]
    );
    assert_eq!(shop["status"]["map"], named("two"));

    // At rest nothing is written: the versions stay while something else happens.
    let versions = || {
        let mut all = vec![world.get(XR).unwrap()];
        all.extend(world.list(MAPS));
        all.into_iter()
            .map(|object| object["metadata"]["resourceVersion"].clone())
            .collect::<Vec<_>>()
    };
    let before = wait_for("rest", PATIENCE, || {
        let before = versions();
        std::thread::sleep(std::time::Duration::from_millis(500));
        if versions() == before { Ok(before) } else { Err(format!("{before:?}")) }
    });

    // An environment that changes, and a template that goes.
    world.patch(
        &format!("{API}/v1beta1/environmentconfigs/base"),
        &json!({"data": {"region": "us"}}),
    );
    wait_for_maps(&world, 2, "us");
    assert_ne!(versions(), before);
    let mut fewer = composition()["spec"]["resources"].clone();
    fewer.as_array_mut().unwrap().remove(0);
    world.patch(&format!("{compositions}/app"), &json!({"spec": {"resources": fewer}}));
    let left = wait_for_maps(&world, 1, "us");
    assert_eq!(left[0]["metadata"]["name"], named("two"));
    plane.stop();
}
