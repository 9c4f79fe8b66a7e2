//! Recorded scenarios played in other ways: with a function in Go that is called with mutual TLS, and
//! without skipping writes. The end states are the same.

use biplane_cluster::Skipping;
use biplane_controlplane::init::certificates::Purpose;

use crate::peer::{Peer, Signer, with_mutual_tls};
use crate::scenarios::play_some;
use crate::world::{Plane, Setup, World};

#[test]
fn scenarios_with_a_function_in_go_over_mutual_tls() {
    let world = World::new();
    let signer = Signer::of(&world);
    let peer = Peer::start(&signer, &signer.valid(Purpose::Server));
    world.locate("function-dummy", &peer.target());
    let setup = Setup { functions: Some(with_mutual_tls(None)), ..Setup::default() };
    let plane = Plane::start_with(world.endpoint(), setup);
    play_some(&world, &["credentials", "invalid-composed", "unready"]);
    plane.stop();
}

#[test]
fn scenarios_without_skipping_end_the_same() {
    let world = World::new();
    let setup = Setup { skipping: Skipping::Send, ..Setup::default() };
    let plane = Plane::start_with(world.endpoint(), setup);
    play_some(
        &world,
        &[
            "cluster-resource-from-namespaced",
            "credentials",
            "delete-orphan",
            "drift",
            "environment-config",
            "fatal-later",
            "invalid-composed",
            "legacy-claim",
            "resource-removed",
            "unready",
            "update-automatic",
            "v2-namespaced-basic",
        ],
    );
    assert_eq!(plane.skipped(), 0);
    plane.stop();
}
