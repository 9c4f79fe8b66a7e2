//! The recorded scenarios, played on a real API server.

use crate::player::{Scenario, play, play_in};
use crate::world::World;

/// The garbage collector did not know the kind yet when this was recorded.
const COLLECTED: &str = r"^2-held/composed\.ConfigMap/g-delete-background/.*(: one\}: expected \{|\.metadata\.deletion(Timestamp|GracePeriodSeconds): expected nothing)";
/// A request that was handled is in the status, because the schema declares the field.
const HANDLED: &str = r"lastHandledReconcileAt: expected nothing got";
/// The condition also says who keeps changing what.
const CHANGING: &str =
    r"Responsive\.message: .* got .*Allowing events periodically\. Field manager";

const SCENARIO: Scenario = Scenario { name: "", stages: &[], collects: false, but: &[] };

/// A test for each scenario.
macro_rules! scenarios {
    ($($test:ident: $scenario:expr;)*) => {
        $(#[test]
        fn $test() {
            play(&$scenario);
        })*

        /// The scenarios that are played.
        const PLAYED: &[Scenario] = &[$($scenario),*];
    };
}

scenarios! {
    bootstrap_requirements: Scenario { name: "bootstrap-requirements", ..SCENARIO };
    cluster_resource_from_namespaced: Scenario { name: "cluster-resource-from-namespaced", ..SCENARIO };
    crd_legacy_rich: Scenario { name: "crd-legacy-rich", ..SCENARIO };
    crd_rich: Scenario { name: "crd-rich", ..SCENARIO };
    crd_v2_cluster: Scenario { name: "crd-v2-cluster", ..SCENARIO };
    credentials: Scenario { name: "credentials", stages: &[6, 8], ..SCENARIO };
    default_composition_ref: Scenario { name: "default-composition-ref", ..SCENARIO };
    default_revision_selector: Scenario { name: "default-revision-selector", ..SCENARIO };
    delete_background: Scenario { name: "delete-background", stages: &[7, 8, 11], collects: true, but: &[COLLECTED] };
    delete_orphan: Scenario { name: "delete-orphan", stages: &[7, 8, 10], collects: true, ..SCENARIO };
    drift: Scenario { name: "drift", stages: &[8, 10, 12], ..SCENARIO };
    enforced_composition_ref: Scenario { name: "enforced-composition-ref", ..SCENARIO };
    environment_config: Scenario { name: "environment-config", stages: &[7, 9, 12], ..SCENARIO };
    existing_other_controller: Scenario { name: "existing-other-controller", ..SCENARIO };
    existing_uncontrolled: Scenario { name: "existing-uncontrolled", stages: &[7, 8], ..SCENARIO };
    fatal: Scenario { name: "fatal", ..SCENARIO };
    fatal_later: Scenario { name: "fatal-later", stages: &[6, 8], ..SCENARIO };
    invalid_composed: Scenario { name: "invalid-composed", ..SCENARIO };
    legacy_claim: Scenario { name: "legacy-claim", stages: &[6, 7, 9], collects: true, ..SCENARIO };
    legacy_claim_foreground: Scenario { name: "legacy-claim-foreground", stages: &[6, 8, 10], collects: true, ..SCENARIO };
    legacy_xr_only: Scenario { name: "legacy-xr-only", ..SCENARIO };
    no_composition: Scenario { name: "no-composition", stages: &[7, 10], ..SCENARIO };
    poll_interval: Scenario { name: "poll-interval", ..SCENARIO };
    reconcile_requested: Scenario { name: "reconcile-requested", stages: &[7, 8], but: &[HANDLED], ..SCENARIO };
    required_by_labels: Scenario { name: "required-by-labels", stages: &[8, 10], ..SCENARIO };
    resource_removed: Scenario { name: "resource-removed", stages: &[6, 9, 11], ..SCENARIO };
    two_xrs_same_name: Scenario { name: "two-xrs-same-name", ..SCENARIO };
    unready: Scenario { name: "unready", ..SCENARIO };
    update_automatic: Scenario { name: "update-automatic", stages: &[6, 8, 10], ..SCENARIO };
    update_manual: Scenario { name: "update-manual", stages: &[6, 8, 10], ..SCENARIO };
    v2_cluster_basic: Scenario { name: "v2-cluster-basic", ..SCENARIO };
    v2_namespaced_basic: Scenario { name: "v2-namespaced-basic", stages: &[6, 8], ..SCENARIO };
    warning: Scenario { name: "warning", ..SCENARIO };
    watch_circuit: Scenario { name: "watch-circuit", but: &[CHANGING], ..SCENARIO };
    xrd_changed: Scenario { name: "xrd-changed", stages: &[6, 7], ..SCENARIO };
    xrd_delete_cluster: Scenario { name: "xrd-delete-cluster", stages: &[6, 7], collects: true, ..SCENARIO };
    xrd_rejected: Scenario { name: "xrd-rejected", ..SCENARIO };
    xrd_v1_namespaced: Scenario { name: "xrd-v1-namespaced", ..SCENARIO };
}

#[test]
fn every_recorded_scenario_is_played() {
    for recording in biplane_testkit::Recording::load_area("live") {
        let played = PLAYED.iter().any(|scenario| scenario.name == recording.name);
        assert!(played, "{} is not played", recording.name);
    }
}

/// Plays some of the scenarios at a time in a world. Panics if one of them fails.
pub(crate) fn play_some(world: &World, names: &[&str]) {
    std::thread::scope(|scope| {
        for name in names {
            let scenario = PLAYED.iter().find(|scenario| scenario.name == *name).unwrap();
            scope.spawn(|| play_in(world, scenario));
        }
    });
}
