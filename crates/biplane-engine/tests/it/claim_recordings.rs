//! Claims compared with recordings of Crossplane's controller on a real API server.

use std::collections::BTreeSet;

use biplane_cluster::{Cluster as _, Delete, Part, Patch, Write};
use biplane_engine::Requeue;
use biplane_model::{Object, Value, names};
use biplane_testkit::Recording;
use serde_json::json;

use crate::claim_world::{Plane, object, objects, soon};

/// The leaf paths of managed fields that a control plane owns.
fn owned(object: &Object) -> BTreeSet<String> {
    fn leaves(fields: &Value, at: &str, all: &mut BTreeSet<String>) {
        let inner = fields.as_object().into_iter().flatten().filter(|(key, _)| *key != ".");
        let mut is_leaf = true;
        for (key, fields) in inner {
            is_leaf = false;
            leaves(fields, &format!("{at}/{key}"), all);
        }
        if is_leaf {
            all.insert(at.to_owned());
        }
    }
    let mut all = BTreeSet::new();
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    for entry in managers.into_iter().flatten() {
        let manager = entry["manager"].as_str().unwrap_or_default();
        if manager == "crossplane" || manager.starts_with("apiextensions.crossplane.io/") {
            leaves(&entry["fieldsV1"], "", &mut all);
        }
    }
    all
}

/// Names that differ from run to run, and what stands for them.
struct Words(Vec<(String, String)>);

impl Words {
    fn of(claim: &Object, xr: &Object) -> Self {
        Self(vec![
            (names::child(&format!("{}-", xr.name()), xr.uid(), "settings"), "{settings}".into()),
            (xr.name().to_owned(), "{xr}".into()),
            (xr.uid().to_owned(), "{uid of xr}".into()),
            (claim.uid().to_owned(), "{uid of claim}".into()),
        ])
    }

    fn replaced(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from.as_str(), to))
    }
}

/// An object as it is compared: without times and versions, with the fields that we own.
fn comparable(object: &Object, words: &Words) -> Value {
    let mut small = object.clone();
    let owned = owned(object);
    for key in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        small.remove_at(&["metadata", key]);
    }
    for key in ["generation", "managedFields", "resourceVersion"] {
        small.remove_at(&["metadata", key]);
    }
    if small.remove_at(&["status", "connectionDetails", "lastPublishedTime"]).is_some() {
        small.set_at_or_ignore(&["status", "connectionDetails", "lastPublishedTime"], "{time}");
    }
    let conditions = small.remove_at(&["status", "conditions"]);
    let mut by_type = serde_json::Map::new();
    for mut condition in conditions.into_iter().filter_map(|c| c.as_array().cloned()).flatten() {
        let fields = condition.as_object_mut().unwrap();
        assert!(fields.remove("lastTransitionTime").is_some(), "{fields:?}");
        if let Some(observed) = fields.get_mut("observedGeneration") {
            *observed = (observed.as_i64() == Some(object.generation())).into();
        }
        by_type.insert(fields["type"].as_str().unwrap().to_owned(), condition);
    }
    small.set_at_or_ignore(&["status", "conditions"], by_type);
    let mut value = small.into_value();
    value["owned"] = json!(owned);
    serde_json::from_str(&words.replaced(&value.to_string())).unwrap()
}

/// The events about the claim. None is told twice.
fn events(plane: &Plane, words: &Words) -> BTreeSet<String> {
    let all = plane.claim_events().into_iter().map(|event| {
        assert_eq!(event.count, 1, "{event:?}");
        let (r#type, reason, message) = (event.r#type.as_str(), &event.reason, &event.message);
        json!([r#type, reason, message, event.component, event.annotations]).to_string()
    });
    all.map(|event| words.replaced(&event)).collect()
}

fn recorded_events(recording: &Recording, stage: &str, words: &Words) -> BTreeSet<String> {
    let all = recording.json(&format!("{stage}/events.json")).unwrap();
    let all = all.as_array().unwrap().iter();
    all.map(|event| {
        let event = json!([
            event["type"],
            event["reason"],
            event["message"],
            event["component"],
            event["annotations"]
        ]);
        words.replaced(&event.to_string())
    })
    .collect()
}

fn recorded(recording: &Recording, stage: &str, file: &str) -> Object {
    objects(recording, &format!("{stage}/{file}.json")).remove(0)
}

/// Compares claim, composite resource and events with a recorded stage.
fn compare(plane: &Plane, recording: &Recording, stage: &str) {
    let got = Words::of(&plane.claim(), &plane.xr());
    let (claim, xr) = (recorded(recording, stage, "claim"), recorded(recording, stage, "xr"));
    let want = Words::of(&claim, &xr);
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    for (ours, theirs) in [(plane.claim(), claim), (plane.xr(), xr)] {
        let (ours, theirs) = (comparable(&ours, &got), comparable(&theirs, &want));
        assert_eq!(pretty(&ours), pretty(&theirs), "{} {stage}", recording.name);
    }
    let secrets = |all: Vec<Object>, words: &Words| {
        let all = all.into_iter().filter(|object| object.kind() == "Secret");
        all.map(|secret| {
            let mut small = comparable(&secret, words);
            small["metadata"].as_object_mut().unwrap().remove("uid");
            small.to_string()
        })
        .collect::<BTreeSet<_>>()
    };
    let composed = objects(recording, &format!("{stage}/composed.json"));
    assert_eq!(secrets(plane.server.objects(), &got), secrets(composed, &want), "{stage}");
    assert_eq!(events(plane, &got), recorded_events(recording, stage, &want), "{stage}");
}

/// Creates the claim of a recording as kubectl did.
async fn create(plane: &Plane, recording: &Recording) {
    let mut claim = object(recording.json("in/claim.json").unwrap());
    let recorded = recorded(recording, "1-ready", "claim");
    let last = "kubectl.kubernetes.io/last-applied-configuration";
    claim.add_texts("annotations", [(last, recorded.annotation(last))]);
    let how = Write::by("kubectl-client-side-apply");
    plane.server.create(claim, &how, soon()).await.unwrap();
}

#[tokio::test]
async fn a_claim_with_connection_details_is_as_recorded() {
    let recording = Recording::load("live-claims", "legacy-claim");
    let plane = Plane::of(&recording).await;
    create(&plane, &recording).await;
    plane.settle().await;
    compare(&plane, &recording, "1-ready");

    plane.patch(&plane.claim(), json!({"spec": {"color": null, "size": 7}})).await;
    plane.settle().await;
    compare(&plane, &recording, "2-claim-spec-changed");

    let words = Words::of(&plane.claim(), &plane.xr());
    let recorded = Words::of(
        &recorded(&recording, "1-ready", "claim"),
        &recorded(&recording, "1-ready", "xr"),
    );
    plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
    plane.settle().await;
    let remaining: Vec<_> = plane.server.objects().iter().map(|o| o.kind().to_owned()).collect();
    assert!(
        !remaining
            .iter()
            .any(|kind| ["Widget", "XWidget", "ConfigMap", "Secret"].contains(&kind.as_str())),
        "{remaining:?}"
    );
    assert_eq!(events(&plane, &words), recorded_events(&recording, "3-deleted", &recorded));
}

#[tokio::test]
async fn a_foreground_deletion_is_as_recorded() {
    let recording = Recording::load("live-claims", "legacy-claim-foreground");
    let plane = Plane::of(&recording).await;
    create(&plane, &recording).await;
    plane.settle().await;
    compare(&plane, &recording, "1-ready");

    // Something holds a composed resource, so that the composite resource waits for it.
    let hold = |finalizers: Value| Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let composed = plane.only("ConfigMap").id();
    let (how, held) = (Write::by("kubectl-patch"), hold(json!(["example.org/hold"])));
    plane.server.patch(&composed, Part::Main, &held, &how, soon()).await.unwrap();
    plane.server.delete(&plane.claim().id(), &Delete::default(), soon()).await.unwrap();
    plane.settle().await;
    let stage = "2-deleting-held-by-composed-finalizer";
    let words = Words::of(&plane.claim(), &plane.xr());
    let (claim, xr) = (recorded(&recording, stage, "claim"), recorded(&recording, stage, "xr"));
    let recorded = Words::of(&claim, &xr);
    assert_eq!(comparable(&plane.claim(), &words), comparable(&claim, &recorded));
    assert_eq!(events(&plane, &words), recorded_events(&recording, stage, &recorded));

    plane.server.patch(&composed, Part::Main, &hold(Value::Null), &how, soon()).await.unwrap();
    assert_eq!(plane.all("XWidget"), []);
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    assert_eq!(plane.all("Widget"), []);
    assert_eq!(events(&plane, &words), recorded_events(&recording, "3-gone", &recorded));
}

#[tokio::test]
async fn what_an_older_controller_left_is_taken_over_without_a_write() {
    let recording = Recording::load("live-claims", "v1-20c-pipeline-claim");
    let plane = Plane::of(&recording).await;
    for file in ["claim", "xr"] {
        plane.server.seed(objects(&recording, &format!("1-ready/{file}.json")));
    }
    plane.is_quiet("taken over").await;
    // From then on it is ours.
    plane.patch(&plane.claim(), json!({"spec": {"size": 2}})).await;
    assert_eq!(plane.reconcile_claim().await, Ok(Requeue::No));
    assert_eq!(plane.xr().at(&["spec", "size"]), Some(&json!(2)));
    assert_eq!(plane.xr().name(), recorded(&recording, "1-ready", "xr").name());
    plane.is_quiet("changed").await;
}
