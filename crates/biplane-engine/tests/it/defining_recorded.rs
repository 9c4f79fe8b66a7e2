//! Replays recorded scenarios of definitions (XRDs): definition, CRDs and events must come out as in
//! Crossplane.

use std::collections::BTreeSet;

use biplane_cluster::Part;
use biplane_model::object::overlay;
use biplane_model::yaml::parse_documents;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_testkit::Recording;
use serde_json::json;

use crate::plane::{Plane, crd_id, shown_conditions, soon, xrd_id};

fn documents(case: &Recording, file: &str) -> Vec<Object> {
    let text = case.text(file).unwrap_or_else(|| panic!("{} has no {file}", case.name));
    let documents = parse_documents(file, text).unwrap();
    documents.into_iter().filter_map(|document| Object::from_value(document.value)).collect()
}

/// Events about definitions, as `Type Reason: message`.
fn recorded_events(case: &Recording, stage: &str) -> BTreeSet<String> {
    let lines = case.text(&format!("{stage}/events.txt")).unwrap().lines();
    lines
        .map(|line| line.split('\t').collect::<Vec<_>>())
        .filter(|columns| columns[2].starts_with("CompositeResourceDefinition/"))
        .map(|columns| format!("{} {}: {}", columns[0], columns[3], columns[6]))
        // Crossplane reads from a cache that is behind. Ours is not.
        .filter(|event| !event.contains("already exists"))
        .collect()
}

/// The paths of all leaves that the control plane owns, with UIDs masked.
fn owned(object: &Object) -> BTreeSet<String> {
    fn leaves(fields: &Value, at: &str, uids: &[String], into: &mut BTreeSet<String>) {
        let map = fields.as_object().unwrap();
        let mut inner = map.iter().filter(|(key, _)| *key != ".").peekable();
        if inner.peek().is_none() {
            into.insert(at.to_owned());
        }
        for (key, value) in inner {
            let masked = uids.iter().fold(key.clone(), |key, uid| key.replace(uid, "UID"));
            leaves(value, &format!("{at}/{masked}"), uids, into);
        }
    }
    let uids: Vec<_> =
        biplane_model::owner::owners(object).into_iter().map(|owner| owner.uid).collect();
    let mut paths = BTreeSet::new();
    let managers = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap();
    for entry in managers.iter().filter(|entry| entry["manager"] == "crossplane") {
        leaves(&entry["fieldsV1"], "", &uids, &mut paths);
    }
    paths
}

/// The part of an object that is compared, with UIDs and times masked.
fn compared(object: &Object) -> Value {
    let mut owners = object.at(&["metadata", "ownerReferences"]).cloned().unwrap_or_default();
    for owner in owners.as_array_mut().into_iter().flatten() {
        owner["uid"] = "masked".into();
    }
    let mut status = object.get("status").cloned().unwrap_or_default();
    if let Some(conditions) = status.pointer_mut("/conditions").and_then(Value::as_array_mut) {
        for condition in conditions.iter_mut() {
            condition["lastTransitionTime"] = "masked".into();
        }
        // Which reconciler comes first is left to chance.
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
    json!({
        "labels": object.at(&["metadata", "labels"]),
        "finalizers": object.at(&["metadata", "finalizers"]),
        "owners": owners,
        "spec": object.get("spec"),
        "status": status,
    })
}

/// Removes the field that Crossplane forgot in the CRDs.
fn without_handled_request(crd: &mut Object) {
    let mut versions = crd.at(&["spec", "versions"]).cloned().unwrap();
    for version in versions.as_array_mut().unwrap() {
        let status = version.pointer_mut("/schema/openAPIV3Schema/properties/status/properties");
        status.unwrap().as_object_mut().unwrap().remove("lastHandledReconcileAt").unwrap();
    }
    crd.set_at_or_ignore(&["spec", "versions"], versions);
}

async fn check_stage(plane: &Plane, case: &Recording, stage: &str) {
    let place = format!("{} {stage}", case.name);
    let recorded = documents(case, &format!("{stage}/xrd.yaml")).remove(0);
    let id = ObjectId::new(Gvk::new(recorded.api_version(), recorded.kind()), "", recorded.name());
    let mut got = plane.get(&id).await.unwrap();
    let mut want = recorded.clone();
    for side in [&mut got, &mut want] {
        let finalizers = side.at(&["metadata", "finalizers"]).and_then(Value::as_array).cloned();
        let mut finalizers: Vec<_> =
            finalizers.unwrap().iter().map(|f| f.as_str().unwrap().to_owned()).collect();
        finalizers.sort();
        side.set_at_or_ignore(&["metadata", "finalizers"], finalizers);
    }
    assert_eq!(compared(&got), compared(&want), "{place}");
    assert_eq!(owned(&got), owned(&want), "{place}");

    for recorded in documents(case, &format!("{stage}/crd.yaml")) {
        let mut got = plane.get(&crd_id(recorded.name())).await.unwrap();
        without_handled_request(&mut got);
        assert_eq!(compared(&got), compared(&recorded), "{place} {}", recorded.name());
        assert_eq!(owned(&got), owned(&recorded), "{place} {}", recorded.name());
    }
    let events: BTreeSet<_> = plane.events().into_iter().collect();
    assert_eq!(events, recorded_events(case, stage), "{place}");
}

/// The first stage of a case.
fn first_stage(case: &Recording) -> String {
    let stages = case.files.keys().filter_map(|file| file.strip_suffix("/xrd.yaml"));
    stages.min().unwrap().to_owned()
}

/// XRD-1 to XRD-7, OFF-1
#[tokio::test]
async fn definitions_are_established_as_recorded() {
    let cases = Recording::load_area("definitions");
    assert!(cases.len() >= 14);
    for case in cases {
        let plane = Plane::new();
        let definition = plane.create(documents(&case, "in/02-xrd.yaml").remove(0)).await;
        plane.settle(definition.name()).await;
        check_stage(&plane, &case, &first_stage(&case)).await;
    }
}

/// XRD-5
#[tokio::test]
async fn a_definition_is_changed_as_recorded() {
    let case = Recording::load("definitions", "xrd-changed");
    let plane = Plane::new();
    let definition = plane.create(documents(&case, "in/02-xrd.yaml").remove(0)).await;
    plane.settle(definition.name()).await;
    let changed = documents(&case, "in/05-xrd-2.yaml").remove(0);
    let id = ObjectId::new(Gvk::new(changed.api_version(), changed.kind()), "", changed.name());
    let mut stored = plane.get(&id).await.unwrap();
    let spec = |object: &Object| object.get("spec").and_then(Value::as_object).cloned().unwrap();
    stored.set_at_or_ignore(&["spec"], overlay(spec(&stored), spec(&changed)));
    let how = biplane_cluster::Write::by("user");
    biplane_cluster::Cluster::update(&*plane.server, &stored, Part::Main, &how, soon())
        .await
        .unwrap();
    plane.settle(definition.name()).await;
    check_stage(&plane, &case, "2-field-added").await;
}

/// XRD-8
#[tokio::test]
async fn a_definition_is_deleted_as_recorded() {
    let case = Recording::load("definitions", "xrd-delete-cluster");
    let plane = Plane::new();
    let definition = plane.create(documents(&case, "in/02-xrd.yaml").remove(0)).await;
    plane.settle(definition.name()).await;
    let mut xr = documents(&case, "in/04-xr-alpha.yaml").remove(0);
    xr.set_at_or_ignore(
        &["metadata", "finalizers"],
        json!(["composite.apiextensions.crossplane.io"]),
    );
    let xr = plane.create(xr).await.id();
    plane.delete(&xrd_id(definition.name())).await;
    plane.defined.reconcile("", definition.name()).await.unwrap();
    plane.patch(&xr, json!({"metadata": {"finalizers": null}})).await;
    plane.settle(definition.name()).await;
    assert!(plane.server.objects().is_empty(), "{:?}", plane.server.objects());
    let events: BTreeSet<_> = plane.events().into_iter().collect();
    assert_eq!(events, recorded_events(&case, "2-after-12s"));
}

#[tokio::test]
async fn a_definition_with_a_wrong_name_is_reported_as_recorded() {
    let case = Recording::load("definitions", "xrd-rejected");
    let plane = Plane::new();
    let definition = plane.create(documents(&case, "in/09-name-mismatch.yaml").remove(0)).await;
    let error = plane.defined.reconcile("", definition.name()).await.unwrap_err();
    let steps = case.text("README.txt").unwrap();
    let (_, said) = steps.split_once(" - event EstablishComposite ").unwrap();
    assert_eq!(error.text, said.lines().next().unwrap());
    assert_eq!(plane.events(), [format!("Warning EstablishComposite: {}", error.text)]);
    let stored = plane.get(&xrd_id(definition.name())).await.unwrap();
    assert_eq!(shown_conditions(&stored), Vec::<String>::new());
}
