//! Tests of the selection of Compositions and revisions, and of the fields that are set before
//! composing.

use biplane_cluster::memory::{Entry, Verb};
use biplane_engine::composite::Layout;
use biplane_model::Object;
use serde_json::{Value, json};

use crate::world::{World, composition, definition, revision};

fn spec(version: &str, kind: &str) -> Value {
    json!({"compositeTypeRef": {"apiVersion": version, "kind": kind}, "pipeline": []})
}

/// The composite resource as written by the single update before composing.
fn prepared(world: &World) -> Object {
    let updates = world.cluster.journal().into_iter().filter_map(|entry| match entry {
        Entry::Write { verb: Verb::Update, object } => Some(object),
        _ => None,
    });
    updates.last().expect("the composite resource was written")
}

#[tokio::test]
async fn an_enforced_composition_replaces_any_other() {
    // SEL-2, T-27
    let world = World::new(0);
    world.seed(definition(&json!({"enforcedCompositionRef": {"name": "comp"}})));
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["spec", "crossplane", "compositionRef", "name"], "other");
    });
    world.reconcile().await.unwrap();
    assert_eq!(prepared(&world).str_at(&["spec", "crossplane", "compositionRef", "name"]), "comp");
    assert_eq!(
        world.events()[0],
        "Normal CompositionSelection: Enforced composition has been selected"
    );
}

#[tokio::test]
async fn a_default_counts_only_where_nothing_else_is_said() {
    // SEL-3, T-28
    let world = World::new(0);
    world.seed(definition(&json!({"defaultCompositionRef": {"name": "comp"}})));
    world.seed(composition("zzz", "z", &spec("example.org/v1", "Thing")));
    world.reconcile().await.unwrap();
    assert_eq!(
        world.events()[0],
        "Normal CompositionSelection: Default composition has been selected"
    );

    let world = World::new(0);
    world.seed(definition(&json!({"defaultCompositionRef": {"name": "comp"}})));
    world.change_xr(|xr| {
        xr.set_at_or_ignore(
            &["spec", "crossplane", "compositionSelector"],
            json!({"matchLabels": {"a": "b"}}),
        );
    });
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot select Composition: no compatible Compositions found"
    );
}

#[tokio::test]
async fn labels_select_only_compositions_of_the_very_kind() {
    // SEL-4, T-29
    let world = World::new(0);
    for (name, version, kind) in [
        ("comp", "example.org/v1", "Thing"),
        ("b", "example.org/v1", "Other"),
        ("c", "example.org/v2", "Thing"),
    ] {
        let mut composition = composition(name, "comp-uid", &spec(version, kind));
        composition.set_at_or_ignore(&["metadata", "labels", "pick"], "me");
        world.seed(composition);
    }
    world.change_xr(|xr| {
        xr.set_at_or_ignore(
            &["spec", "crossplane", "compositionSelector"],
            json!({"matchLabels": {"pick": "me"}}),
        );
    });
    world.reconcile().await.unwrap();
    assert_eq!(prepared(&world).str_at(&["spec", "crossplane", "compositionRef", "name"]), "comp");
}

#[tokio::test]
async fn a_manual_policy_keeps_the_revision_that_is_set() {
    // SEL-7, T-30
    let world = World::new(0);
    world.seed(revision("comp-2", "comp-uid", 2, &spec("example.org/v1", "Thing")));
    world.change_xr(|xr| {
        xr.set_at_or_ignore(&["spec", "crossplane", "compositionUpdatePolicy"], "Manual");
        xr.set_at_or_ignore(&["spec", "crossplane", "compositionRevisionRef", "name"], "comp-1");
    });
    world.reconcile().await.unwrap();
    assert_eq!(
        prepared(&world).str_at(&["spec", "crossplane", "compositionRevisionRef", "name"]),
        "comp-1"
    );
}

#[tokio::test]
async fn the_revision_selector_counts_only_for_an_automatic_policy() {
    // SEL-8, T-31: an absent policy is the default of the definition.
    for (policy, default, want) in [
        (None, None, "comp-2"),
        (None, Some("Automatic"), "comp-2"),
        (None, Some("Manual"), "comp-3"),
        (Some("Automatic"), Some("Manual"), "comp-2"),
        (Some("Manual"), None, "comp-3"),
    ] {
        let world = World::new(0);
        for (name, number, channel) in [("comp-2", 2, "dev"), ("comp-3", 3, "prod")] {
            let mut revision = revision(name, "comp-uid", number, &spec("example.org/v1", "Thing"));
            revision.set_at_or_ignore(&["metadata", "labels", "channel"], channel);
            world.seed(revision);
        }
        if let Some(default) = default {
            world.seed(definition(&json!({"defaultCompositionUpdatePolicy": default})));
        }
        world.change_xr(|xr| {
            if let Some(policy) = policy {
                xr.set_at_or_ignore(&["spec", "crossplane", "compositionUpdatePolicy"], policy);
            }
            xr.set_at_or_ignore(
                &["spec", "crossplane", "compositionRevisionSelector"],
                json!({"matchLabels": {"channel": "dev"}}),
            );
        });
        world.reconcile().await.unwrap();
        assert_eq!(
            prepared(&world).str_at(&["spec", "crossplane", "compositionRevisionRef", "name"]),
            want
        );
    }
}

#[tokio::test]
async fn revisions_of_another_owner_do_not_count() {
    // SEL-8, T-32
    let world = World::new(0);
    world.seed(revision("comp-9", "someone", 9, &spec("example.org/v1", "Thing")));
    world.reconcile().await.unwrap();
    assert_eq!(
        prepared(&world).str_at(&["spec", "crossplane", "compositionRevisionRef", "name"]),
        "comp-1"
    );

    let world = World::new(0);
    world.seed(revision("comp-1", "someone", 1, &spec("example.org/v1", "Thing")));
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot fetch Composition: no compatible CompositionRevisions found"
    );
}

#[tokio::test]
async fn a_default_revision_selector_counts_from_the_first_reconcile() {
    // SEL-6, and the recording live/default-revision-selector: the newest revision is of another
    // channel, and the policy is not set yet.
    let world = World::new(0);
    for (name, number, channel) in [("comp-2", 2, "stable"), ("comp-3", 3, "beta")] {
        let mut revision = revision(name, "comp-uid", number, &spec("example.org/v1", "Thing"));
        revision.set_at_or_ignore(&["metadata", "labels", "channel"], channel);
        world.seed(revision);
    }
    let selector = json!({"matchLabels": {"channel": "stable"}});
    world.seed(definition(&json!({"defaultCompositionRevisionSelector": selector})));
    world.reconcile().await.unwrap();
    let prepared = prepared(&world);
    assert_eq!(
        prepared.at(&["spec", "crossplane"]),
        Some(&json!({
            "compositionRef": {"name": "comp"},
            "compositionRevisionRef": {"name": "comp-2"},
            "compositionRevisionSelector": selector,
            "compositionUpdatePolicy": "Automatic",
        }))
    );
}

#[tokio::test]
async fn the_label_of_a_root_is_kept() {
    // CFG-1, T-34
    for (label, want) in [("", "xr"), ("root", "root")] {
        let world = World::new(1);
        world.change_xr(|xr| {
            xr.set_at_or_ignore(&["metadata", "labels", "crossplane.io/composite"], label);
        });
        world.respond([crate::world::wants(&["a"])]);
        world.reconcile().await.unwrap();
        assert_eq!(world.applied()[0].label("crossplane.io/composite"), want);
    }
}

#[tokio::test]
async fn a_composition_of_another_kind_is_refused() {
    // CFG-2, T-35
    let world = World::new(0);
    world.seed(revision("comp-2", "comp-uid", 2, &spec("example.org/v1", "Other")));
    assert_eq!(
        world.reconcile().await.unwrap_err().text,
        "cannot configure composite resource: referenced composition is not compatible with this composite resource"
    );
}

#[tokio::test]
async fn a_legacy_composite_resource_gets_a_connection_secret_named_by_its_uid() {
    // CFG-3, T-36
    let world = World::with_layout(Layout::Legacy, "", 0);
    let mut spec = spec("example.org/v1", "Thing");
    spec["writeConnectionSecretsToNamespace"] = "conn".into();
    world.seed(revision("comp-2", "comp-uid", 2, &spec));
    world.reconcile().await.unwrap();
    assert_eq!(
        prepared(&world).at(&["spec", "writeConnectionSecretToRef"]),
        Some(&json!({"name": "xr-uid", "namespace": "conn"}))
    );
}
