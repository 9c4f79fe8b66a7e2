//! Tests with functions that are slow, silent or dead, or whose certificates have expired: the reason
//! is in the condition and in an event, and everything recovers by itself.

use std::time::Duration;

use biplane_controlplane::init::certificates::Purpose;
use biplane_model::Value;
use serde_json::json;

use crate::peer::{Peer, Signer, with_mutual_tls};
use crate::quiet::{XRS, create, define};
use crate::world::{PATIENCE, Plane, Setup, World, condition, explained, wait_for};

/// Waits until the composite resource says what is wrong, and an event does too.
fn wait_for_reason(world: &World, texts: &[&str]) {
    let is_said = |message: &str| texts.iter().all(|text| message.contains(text));
    wait_for(&format!("{texts:?}"), PATIENCE, || {
        let xr = world.get(&format!("{XRS}/xr")).unwrap();
        let (reason, message) = explained(&xr, "Synced");
        let failed = condition(&xr, "Synced") == "False" && reason == "ReconcileError";
        if failed && is_said(&message) { Ok(()) } else { Err(xr["status"].to_string()) }
    });
    wait_for("an event", PATIENCE, || {
        let events = world.list("/api/v1/namespaces/default/events");
        let is = |event: &&Value| {
            event["type"] == "Warning"
                && event["reason"] == "ComposeResources"
                && event["involvedObject"]["name"] == "xr"
                && is_said(event["message"].as_str().unwrap_or_default())
        };
        if events.iter().any(|event| is(&event)) { Ok(()) } else { Err(format!("{events:#?}")) }
    });
}

/// Waits until the composite resource is synced, after a function had a problem.
fn wait_for_recovery(world: &World) {
    wait_for("recovery", PATIENCE, || {
        let xr = world.get(&format!("{XRS}/xr")).unwrap();
        if condition(&xr, "Synced") == "True" { Ok(()) } else { Err(xr["status"].to_string()) }
    });
}

#[test]
fn functions_that_fail_are_named_and_recover() {
    let world = World::new();
    let signer = Signer::of(&world);
    let valid = signer.valid(Purpose::Server);
    let mut peer = Peer::start(&signer, &valid);
    world.locate("function-dummy", &peer.target());
    let functions = with_mutual_tls(Some(Duration::from_secs(2)));
    let setup = Setup { functions: Some(functions), ..Setup::default() };
    let plane = Plane::start_with(world.endpoint(), setup);
    define(&world);
    // Its answers are good for two seconds.
    create(&world, "expiring", "xr", &json!({}));
    wait_for_recovery(&world);

    // It is silent.
    peer.hang();
    let late = "cannot compose resources: cannot run Composition pipeline step \"map\": step \"map\" did not end in \
         time: Function \"function-dummy\" did not answer within 2 seconds (--function-timeout)";
    wait_for_reason(&world, &[late]);
    peer.go_on();
    wait_for_recovery(&world);

    // It dies.
    peer.kill();
    wait_for_reason(&world, &[late, "connection refused"]);
    peer.start_again(&signer, &signer.expired(Purpose::Server));

    // Its certificate has expired.
    wait_for_reason(&world, &[late, "certificate", "expired"]);
    peer.start_again(&signer, &valid);
    wait_for_recovery(&world);

    // Our own certificate has expired.
    let ours = signer.valid(Purpose::Client);
    signer.give(&world, &signer.expired(Purpose::Client));
    wait_for_reason(&world, &[late, "certificate", "expired"]);
    signer.give(&world, &ours);
    wait_for_recovery(&world);

    // It is slow, but not too slow.
    let pipeline = json!([{"step": "map", "functionRef": {"name": "function-dummy"}, "input": {
        "apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "milliseconds": 1000,
        "response": {"meta": {"ttl": "2s"}, "desired": {"resources": {"map": {"ready": "READY_TRUE", "resource":
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "slow"}}}}}},
    }}]);
    let composition = "/apis/apiextensions.crossplane.io/v1/compositions/expiring";
    world.patch(composition, &json!({"spec": {"pipeline": pipeline}}));
    wait_for("the slow answer", PATIENCE, || {
        let maps = world.list(
            "/api/v1/namespaces/default/configmaps?labelSelector=crossplane.io%2Fcomposite%3Dxr",
        );
        if maps.iter().any(|map| map["data"]["a"] == "slow") {
            Ok(())
        } else {
            Err(format!("{maps:?}"))
        }
    });
    wait_for_recovery(&world);
    plane.stop();
}
