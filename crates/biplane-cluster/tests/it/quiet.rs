//! Tests of the wrapper that does not send applies which would change nothing.

use std::sync::Arc;

use biplane_cluster::memory::ApiServer;
use biplane_cluster::{Apply, Cluster, Effect, Part, Quiet, Skipping, Source, Write};
use biplane_model::Object;
use serde_json::{Value, json};

use crate::soon;

fn map(data: &Value) -> Object {
    Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "ns", "name": "a"}, "data": data}))
    .unwrap()
}

/// Applies an intent to the object as it is now.
async fn apply(cluster: &Quiet, intent: &Object) -> Effect {
    let known = cluster.get(&intent.id(), Source::Cache, soon()).await.ok();
    let how = Apply::forced("test");
    let applied = cluster.apply(intent, Part::Main, known.as_ref(), &how, soon()).await.unwrap();
    let stored = cluster.get(&intent.id(), Source::Live, soon()).await.unwrap();
    assert_eq!(applied.object, stored);
    applied.effect
}

async fn change(cluster: &Quiet, data: &Value) {
    let stored = cluster.get(&map(data).id(), Source::Live, soon()).await.unwrap();
    let mut object = map(data);
    object.set_meta("resourceVersion", stored.resource_version());
    cluster.update(&object, Part::Main, &Write::by("someone"), soon()).await.unwrap();
}

#[tokio::test]
async fn an_apply_is_sent_until_it_would_change_nothing() {
    for (skipping, second) in [
        (Skipping::Skip, Effect::Skipped),
        (Skipping::Verify, Effect::Skipped),
        (Skipping::Send, Effect::Unchanged),
    ] {
        let cluster = Quiet::new(Arc::new(ApiServer::default()), skipping);
        let intent = map(&json!({"k": "v"}));
        assert_eq!(apply(&cluster, &intent).await, Effect::Created);
        assert_eq!(apply(&cluster, &intent).await, second, "{skipping:?}");
        assert_eq!(apply(&cluster, &map(&json!({"k": "w"}))).await, Effect::Changed);
        change(&cluster, &json!({"k": "x"})).await;
        assert_eq!(apply(&cluster, &intent).await, Effect::Changed, "someone changed it");
        change(&cluster, &json!({"k": "v", "theirs": "y"})).await;
        assert_eq!(apply(&cluster, &intent).await, second, "fields of others do not matter");
        assert_eq!(cluster.wrong(), 0);
        assert_eq!(cluster.skipped(), if second == Effect::Skipped { 2 } else { 0 });
    }
}

#[tokio::test]
async fn after_a_change_of_schemas_everything_is_sent_once_more() {
    let cluster = Quiet::new(Arc::new(ApiServer::default()), Skipping::Skip);
    let intent = map(&json!({"k": "v"}));
    assert_eq!(apply(&cluster, &intent).await, Effect::Created);
    assert_eq!(apply(&cluster, &intent).await, Effect::Skipped);
    cluster.distrust();
    assert_eq!(apply(&cluster, &intent).await, Effect::Unchanged);
    assert_eq!(apply(&cluster, &intent).await, Effect::Skipped);
}

#[tokio::test]
async fn a_wrong_skip_is_counted() {
    let cluster = Quiet::new(Arc::new(ApiServer::default()), Skipping::Verify);
    let intent = map(&json!({"k": "v"}));
    let how = Apply::forced("test");
    let part = Part::Main;
    let old = cluster.apply(&intent, part, None, &how, soon()).await.unwrap().object;
    change(&cluster, &json!({"k": "x", "theirs": "y"})).await;
    // What the caller knows is out of date, so the verdict is wrong.
    let applied = cluster.apply(&intent, part, Some(&old), &how, soon()).await.unwrap();
    assert_eq!((applied.effect, cluster.wrong()), (Effect::Skipped, 1));
}

#[tokio::test]
async fn what_others_change_meanwhile_is_no_wrong_skip() {
    let cluster = Quiet::new(Arc::new(ApiServer::default()), Skipping::Verify);
    let intent = map(&json!({"k": "v"}));
    let how = Apply::forced("test");
    let part = Part::Main;
    let old = cluster.apply(&intent, part, None, &how, soon()).await.unwrap().object;
    change(&cluster, &json!({"k": "v", "theirs": "y"})).await;
    let applied = cluster.apply(&intent, part, Some(&old), &how, soon()).await.unwrap();
    assert_eq!((applied.effect, cluster.wrong()), (Effect::Skipped, 0));
}
