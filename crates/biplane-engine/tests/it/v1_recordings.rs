//! Replays recorded Compositions of mode Resources and with environments: once as a render, and once
//! as a live control plane on an in-memory API server.

use std::sync::Arc;

use biplane_cluster::memory::{ApiServer, Entry};
use biplane_cluster::{Quiet, Skipping};
use biplane_engine::composite::revision::Revision;
use biplane_engine::composite::{Behaviour, Layout, Reconciler, Release, Selection};
use biplane_engine::render::{RenderError, Settings, render};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_engine::{Context, FixedClock, Requeue};
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::object::overlay;
use biplane_model::{Object, Value, yaml};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, render_request::Input, render_response::Output,
};
use biplane_runner::{Fetching, InProcess};
use biplane_testkit::Recording;
use serde_json::json;

const TIME: &str = "2024-01-01T00:00:00Z";

fn documents(case: &Recording, file: &str) -> Vec<Object> {
    let text = case.text(file).unwrap_or_default();
    let documents = yaml::parse_documents(file, text).unwrap();
    documents.into_iter().filter_map(|document| Object::from_value(document.value)).collect()
}

fn first(case: &Recording, file: &str) -> Object {
    documents(case, file).remove(0)
}

fn expected(case: &Recording) -> Value {
    yaml::parse_one("expected.yaml", case.text("expected.yaml").unwrap()).unwrap().value
}

/// Puts our generated names in the place of those that the recording leaves open.
fn fill_names(expected: &mut Value, ours: &[Object]) {
    let all = expected["composed"].as_array().cloned().unwrap_or_default();
    for (index, wanted) in all.iter().enumerate() {
        if wanted["metadata"]["name"] != "GENERATED_NAME" {
            continue;
        }
        let prefix = wanted["metadata"]["generateName"].as_str().unwrap();
        let of_kind = |object: &&Object| object.kind() == wanted["kind"];
        let named = |object: &&Object| {
            let resource = object.annotation("crossplane.io/composition-resource-name");
            let wanted = &wanted["metadata"]["annotations"];
            wanted.get("crossplane.io/composition-resource-name").is_none_or(|r| r == resource)
        };
        let Some(object) = ours.iter().filter(of_kind).find(named) else { continue };
        assert!(
            object.name().starts_with(prefix),
            "{} does not start with {prefix}",
            object.name()
        );
        expected["composed"][index]["metadata"]["name"] = object.name().into();
    }
    let references: Vec<_> = match expected["composite"]["spec"]["resourceRefs"].as_array() {
        Some(references) => references.clone(),
        None => return,
    };
    for (index, reference) in references.iter().enumerate() {
        if reference["name"] == "GENERATED_NAME"
            && let Some(object) = ours.iter().find(|object| object.kind() == reference["kind"])
        {
            expected["composite"]["spec"]["resourceRefs"][index]["name"] = object.name().into();
        }
    }
}

/// Whether all expected events occurred in their order, among others.
fn missing_event(expected: &Value, ours: &[(String, String, String)]) -> Option<String> {
    let mut rest = ours.iter();
    let wanted = expected["events"].as_array().into_iter().flatten();
    for event in wanted {
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        let event = (text("type"), text("reason"), text("message"));
        if !rest.any(|ours| *ours == event) {
            return Some(format!("event {event:?} is not among {ours:#?}"));
        }
    }
    None
}

fn settings(area: &str) -> Settings {
    let environments = area == "nativeenv";
    Settings {
        clock: Arc::new(FixedClock(TIME.parse().unwrap())),
        ids: Arc::new(CountingIds::default()),
        release: if environments { Release::V1_17 } else { Release::V1_20 },
        resources_mode: true,
        environments,
        ..Settings::default()
    }
}

async fn rendered(area: &str, case: &Recording) -> Result<CompositeOutput, String> {
    let structs = |file| documents(case, file).into_iter().map(Struct::from).collect();
    let input = CompositeInput {
        composite_resource: Some(first(case, "xr.yaml").into()),
        composition: Some(first(case, "composition.yaml").into()),
        composite_resource_definition: Some(first(case, "xrd.yaml").into()),
        observed_resources: structs("observed.yaml"),
        required_resources: structs("required.yaml"),
        ..CompositeInput::default()
    };
    let request =
        RenderRequest { input: Some(Input::Composite(input)), ..RenderRequest::default() };
    let runner = Arc::new(InProcess::new(biplane_functions::registry()));
    match render(request, runner, &settings(area)).await {
        Ok(response) => match response.output {
            Some(Output::Composite(output)) => Ok(output),
            other => panic!("{other:?}"),
        },
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(text),
    }
}

fn difference(what: &str, ours: &Value, theirs: &Value) -> Option<String> {
    (ours != theirs).then(|| format!("{what}\n{ours:#}\ninstead of\n{theirs:#}"))
}

async fn render_complaint(area: &str, case: &Recording) -> Option<String> {
    let mut expected = expected(case);
    let output = match (rendered(area, case).await, expected["error"].as_str()) {
        (Ok(output), None) => output,
        (Err(text), Some(wanted)) if text.contains(wanted) => return None,
        (Err(text), _) => return Some(format!("error {text}")),
        (Ok(_), Some(_)) => return Some("no error".to_owned()),
    };
    let objects = |structs: Vec<Struct>| -> Vec<Object> {
        structs.into_iter().map(Struct::into_object).collect()
    };
    let composed = objects(output.composed_resources);
    fill_names(&mut expected, &composed);
    let values = |objects: Vec<Object>| -> Value {
        objects.into_iter().map(Object::into_value).collect::<Vec<_>>().into()
    };
    let composite = output.composite_resource.unwrap().into_object().into_value();
    let events: Vec<_> =
        output.events.into_iter().map(|e| (e.r#type, e.reason, e.message)).collect();
    let deleted: Vec<Value> = objects(output.deleted_resources)
        .iter()
        .map(|object| {
            json!({"apiVersion": object.api_version(), "kind": object.kind(), "name": object.name()})
        })
        .collect();
    let wanted = expected["deleted"].as_array().cloned().unwrap_or_default();
    // What is not decided stays as it is, whether it is shown or not.
    let whole = |decided: &Value| {
        let input = first(case, "xr.yaml").into_map();
        Value::Object(overlay(input, decided.as_object().unwrap().clone()))
    };
    difference("composite resource", &whole(&composite), &whole(&expected["composite"]))
        .or_else(|| difference("composed resources", &values(composed), &expected["composed"]))
        .or_else(|| difference("deleted resources", &deleted.into(), &wanted.into()))
        .or_else(|| missing_event(&expected, &events))
}

async fn check<C>(area: &str, count: usize, complaint: impl Fn(Recording) -> C)
where
    C: Future<Output = Option<String>>,
{
    let cases = Recording::load_area(area);
    assert_eq!(cases.len(), count);
    let mut wrong = Vec::new();
    for case in cases {
        let name = case.name.clone();
        if let Some(complaint) = complaint(case).await {
            wrong.push(format!("{area}/{name}: {complaint}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn templates_render_as_recorded() {
    check("resources", 27, async |case| render_complaint("resources", &case).await).await;
}

#[tokio::test]
async fn environments_render_as_recorded() {
    check("nativeenv", 24, async |case| render_complaint("nativeenv", &case).await).await;
}

/// A revision as the controller of Compositions makes it.
fn revision(composition: Object) -> Revision {
    let spec = composition.into_map().remove("spec").unwrap();
    let mut revision = Object::from_value(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
        "metadata": {"name": "revision", "labels": {"crossplane.io/composition-name": "composition"}},
        "spec": spec,
    }))
    .unwrap();
    set_conditions(&mut revision, [Condition::new("ValidPipeline", "True", "ValidPipeline")]);
    revision.try_into().unwrap()
}

/// Reconciles until nothing changes, as a control plane does.
async fn live(area: &str, case: &Recording) -> (Arc<ApiServer>, Object, Option<String>) {
    let server = Arc::new(ApiServer::default());
    let xr = first(case, "xr.yaml");
    server.seed([xr.clone()]);
    server.seed(documents(case, "observed.yaml"));
    server.seed(documents(case, "required.yaml"));
    let requirements = Arc::new(ClusterRequirements(server.clone()));
    let functions = InProcess::new(biplane_functions::registry());
    let context = Context {
        cluster: Arc::new(Quiet::new(server.clone(), Skipping::Skip)),
        events: server.clone(),
        runner: Arc::new(Fetching::new(functions, requirements.clone())),
        requirements,
        clock: Arc::new(FixedClock(TIME.parse().unwrap())),
        ids: Arc::new(CountingIds::default()),
    };
    let behaviour = Behaviour {
        selection: Selection::Given {
            composition: "composition".to_owned(),
            revision: Box::new(revision(first(case, "composition.yaml"))),
        },
        resources_mode: true,
        environments: area == "nativeenv",
        ..Behaviour::live(xr.gvk(), Layout::Legacy, "xrd")
    };
    let reconciler = Reconciler::new(context, behaviour);
    let mut error = None;
    for round in 0.. {
        let before = server.journal().iter().filter(|e| matches!(e, Entry::Write { .. })).count();
        match reconciler.reconcile("", xr.name()).await {
            Ok(Requeue::Now | Requeue::Again | Requeue::After(_) | Requeue::No) => {}
            Err(failed) => error = Some(failed.to_string()),
        }
        let after = server.journal().iter().filter(|e| matches!(e, Entry::Write { .. })).count();
        if before == after {
            break;
        }
        assert!(round < 6, "{}: it never rests", case.name);
    }
    let stored = server.objects().into_iter().find(|o| o.same_id(&xr)).unwrap();
    (server, stored, error)
}

/// The conditions of v1 that a live control plane has too, without what only v2 says of them.
fn without_generations(xr: &Object) -> Value {
    let conditions = xr.at(&["status", "conditions"]).and_then(Value::as_array).cloned();
    let ours = conditions.unwrap_or_default().into_iter().filter_map(|mut condition| {
        condition.as_object_mut()?.remove("observedGeneration");
        (condition["type"] != "Responsive").then_some(condition)
    });
    ours.collect()
}

async fn live_complaint(area: &str, case: &Recording) -> Option<String> {
    // A Deployment without a namespace, which no server accepts.
    if case.name == "wildcard" {
        return None;
    }
    let mut expected = expected(case);
    let (server, stored, error) = live(area, case).await;
    match (&error, expected["error"].as_str()) {
        (None, None) => {}
        (Some(text), Some(wanted)) if text.contains(wanted) => return None,
        (Some(text), _) => return Some(format!("error {text}")),
        (None, Some(_)) => return Some("no error".to_owned()),
    }
    let objects = server.objects();
    let controlled: Vec<Object> = objects
        .iter()
        .filter(|o| biplane_model::owner::controller_of(o).is_some_and(|c| c.uid == stored.uid()))
        .cloned()
        .collect();
    fill_names(&mut expected, &controlled);
    let mut wanted = expected["composite"].clone();
    let conditions = wanted["status"].as_object_mut().unwrap().remove("conditions").unwrap();
    // Words of v1.17.
    let conditions = conditions.to_string().replace("Invalid resources", "Unsynced resources");
    let conditions: Value = serde_json::from_str(&conditions).unwrap();
    if let Some(text) = difference("conditions", &without_generations(&stored), &conditions) {
        return Some(text);
    }
    let with =
        Object::from(overlay(stored.clone().into_map(), wanted.as_object().unwrap().clone()));
    if with != stored {
        return Some(format!(
            "composite resource\n{:#}\nlacks some of\n{wanted:#}",
            stored.to_value()
        ));
    }
    for wanted in expected["composed"].as_array().into_iter().flatten() {
        let id = Object::from_value(wanted.clone()).unwrap().id();
        let Some(ours) = objects.iter().find(|object| object.has_id(&id)) else {
            return Some(format!("{id} does not exist"));
        };
        let mut wanted = wanted.clone();
        if case.text("functions.yaml").is_some() {
            // A pipeline of v2 does not mark resources of no claim.
            let metadata = wanted["metadata"].as_object_mut().unwrap();
            metadata.remove("generateName");
            let labels = metadata["labels"].as_object_mut().unwrap();
            labels.retain(|_, value| value != "");
        }
        let with = overlay(ours.clone().into_map(), wanted.as_object().unwrap().clone());
        if Object::from(with) != *ours {
            return Some(format!("{id} is\n{:#}\nand lacks some of\n{wanted:#}", ours.to_value()));
        }
    }
    for gone in expected["deleted"].as_array().into_iter().flatten() {
        let text = |key: &str| gone[key].as_str().unwrap_or_default();
        let gvk = biplane_model::Gvk::new(text("apiVersion"), text("kind"));
        let id = biplane_model::ObjectId::new(gvk, text("namespace"), text("name"));
        if objects.iter().any(|object| object.has_id(&id) && !object.is_being_deleted()) {
            return Some(format!("{id} still exists"));
        }
    }
    let details = expected["connectionDetails"].as_object();
    for (key, value) in details.into_iter().flatten() {
        let reference = |key| stored.str_at(&["spec", "writeConnectionSecretToRef", key]);
        let secret = objects.iter().find(|object| {
            object.kind() == "Secret"
                && object.name() == reference("name")
                && object.namespace() == reference("namespace")
        });
        let Some(secret) = secret else { return Some("there is no connection secret".to_owned()) };
        let data = biplane_engine::pipeline::secret_data(secret).unwrap();
        let ours = data.get(key).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        if ours.as_deref() != value.as_str() {
            return Some(format!("connection detail {key} is {ours:?}"));
        }
    }
    let events = server.journal().into_iter().filter_map(|entry| match entry {
        Entry::Event(e) => Some((e.r#type.as_str().to_owned(), e.reason, e.message)),
        Entry::Write { .. } => None,
    });
    missing_event(&expected, &events.collect::<Vec<_>>())
}

#[tokio::test]
async fn templates_compose_as_recorded_on_a_control_plane() {
    check("resources", 27, async |case| live_complaint("resources", &case).await).await;
}

#[tokio::test]
async fn environments_compose_as_recorded_on_a_control_plane() {
    check("nativeenv", 24, async |case| live_complaint("nativeenv", &case).await).await;
}
