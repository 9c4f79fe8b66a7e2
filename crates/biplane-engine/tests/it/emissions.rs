//! What is emitted about a pipeline equals what a control plane emits for the same composite
//! resource and Composition, except for ids and times.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use biplane_cluster::memory::RenderClient;
use biplane_engine::composite::dependencies::DependencyIndex;
use biplane_engine::composite::{Behaviour, Layout, Reconciler, Writing};
use biplane_engine::render::{Settings, render};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::SystemIds;
use biplane_engine::{Context, FixedClock};
use biplane_model::yaml::parse_documents;
use biplane_model::{Gvk, Object, Value};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::json::{from_value, to_value};
use biplane_proto::redact::{Half, MARKER, Mode, Redactor, TagKey};
use biplane_proto::render::v1alpha1::RenderRequest;
use biplane_runner::inspected::{Emission, EmitError, Inspector, Options, Sources};
use biplane_runner::{Call, FunctionRunner, InProcess, Inspection, Named, RunError, stack};
use biplane_testkit::Recording;
use serde_json::json;

#[derive(Default)]
struct Kept(Mutex<Vec<Emission>>);

#[async_trait]
impl Inspector for Kept {
    async fn emit(&self, emission: Emission) -> Result<(), EmitError> {
        self.0.lock().unwrap().push(emission);
        Ok(())
    }
}

fn inspection() -> (Arc<Kept>, Inspection) {
    let kept = Arc::new(Kept::default());
    let sources = Sources {
        now: Arc::new(|| SystemTime::UNIX_EPOCH),
        uuid: Arc::new(|| "span".to_owned()),
        tag_key: TagKey::new([0; 32]),
    };
    let inspection = Inspection::new(kept.clone(), &Options::default(), sources, None);
    (kept, inspection)
}

/// Requires something else in each answer, as the recorded template does with random names.
#[derive(Default)]
struct Restless(AtomicUsize);

#[async_trait]
impl FunctionRunner for Restless {
    async fn run(&self, _: &Call, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
        let name = format!("need-{}", self.0.fetch_add(1, Ordering::SeqCst));
        let selector =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "matchName": "plain-config"});
        Ok(from_value(json!({"requirements": {"resources": {name: selector}}})).unwrap())
    }
}

/// One emission in the form in which it is compared.
#[derive(Debug, PartialEq)]
struct Compared {
    half: Half,
    meta: Value,
    payload: Value,
    error: String,
}

fn compared(half: Half, mut meta: Value, payload: Value, error: &str) -> Compared {
    for id in ["traceId", "spanId", "timestamp"] {
        meta.as_object_mut().unwrap().remove(id).unwrap();
    }
    // A control plane of this version leaves copies of Secrets in annotations. Ours does not.
    let redactor = Redactor::new(Mode::Shipped, TagKey::new([0; 32]));
    let mut payload = redactor.json(half, payload, false).into_inner();
    if let Some(meta) = payload.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("tag").unwrap();
    }
    // The condition says that the controller is alive. It comes and goes with other writes.
    let composite = payload.pointer_mut("/observed/composite/resource");
    if let Some(composite) = composite.and_then(Value::as_object_mut) {
        if let Some(Value::Array(conditions)) =
            composite.get_mut("status").and_then(|status| status.get_mut("conditions"))
        {
            conditions.retain(|condition| condition["type"] != "Responsive");
        }
        composite.retain(|key, value| key != "status" || *value != json!({"conditions": []}));
    }
    Compared { half, meta, payload, error: error.to_owned() }
}

/// The recorded emissions, by run.
fn runs(recording: &Recording) -> Vec<Vec<Value>> {
    let mut runs: Vec<(String, Vec<Value>)> = Vec::new();
    for line in recording.text("emissions.jsonl").unwrap().lines() {
        let emission: Value = serde_json::from_str(line).unwrap();
        let trace = emission["meta"]["traceId"].as_str().unwrap().to_owned();
        match runs.iter_mut().find(|(of, _)| *of == trace) {
            Some((_, run)) => run.push(emission),
            None => runs.push((trace, vec![emission])),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

/// An object as it was before its values were redacted.
fn whole(object: &Value) -> Object {
    fn fill(value: &mut Value) {
        match value {
            Value::String(text) if text == MARKER => "UExBTlRFRA==".clone_into(text),
            Value::Array(items) => items.iter_mut().for_each(fill),
            Value::Object(map) => map.values_mut().for_each(fill),
            _ => {}
        }
    }
    let mut object = object.clone();
    fill(&mut object);
    Object::from_value(object).unwrap()
}

struct World {
    cluster: Arc<RenderClient>,
    reconciler: Reconciler,
    kept: Arc<Kept>,
    composition: Object,
}

impl World {
    fn new(recording: &Recording) -> Self {
        let documents = parse_documents("in.yaml", recording.text("in.yaml").unwrap()).unwrap();
        let given: Vec<Object> =
            documents.into_iter().filter_map(|d| Object::from_value(d.value)).collect();
        let of_kind = |kind: &str| given.iter().find(|o| o.kind() == kind).unwrap().clone();
        let (mut definition, mut composition) =
            (of_kind("CompositeResourceDefinition"), of_kind("Composition"));
        // The reconciler reads definitions in this version, which an API server converts to.
        definition.set_at_or_ignore(&["apiVersion"], "apiextensions.crossplane.io/v1");
        composition.set_meta("uid", "composition-uid");
        let cluster = Arc::new(RenderClient::new());
        cluster.seed(given.iter().cloned().map(stored));
        cluster.seed([definition.clone(), composition.clone()]);

        let (kept, inspection) = inspection();
        let requirements = Arc::new(ClusterRequirements(cluster.clone()));
        let functions = Named::default()
            .with("function-dummy", Arc::new(InProcess::new(biplane_functions::registry())))
            .with("function-go-templating", Arc::new(Restless::default()));
        let functions = Arc::new(functions);
        let runner =
            stack::of_inspected_reconciler(functions, requirements.clone(), Some(&inspection));
        let context = Context {
            cluster: cluster.clone(),
            events: cluster.clone(),
            runner,
            requirements,
            clock: Arc::new(FixedClock("2026-11-16T00:00:00Z".parse().unwrap())),
            ids: Arc::new(SystemIds),
        };
        let group = definition.str_at(&["spec", "group"]).to_owned();
        let gvk = Gvk::new(&format!("{group}/v1"), "Gauge");
        let behaviour = Behaviour {
            writing: Writing::Stepwise,
            ..Behaviour::live(gvk, Layout::Modern, definition.name())
        };
        let mut reconciler = Reconciler::new(context, behaviour);
        reconciler.dependencies = Arc::new(DependencyIndex::default());
        Self { cluster, reconciler, kept, composition }
    }

    /// Puts everything into the cluster that the functions of a run were given.
    fn seed(&self, run: &[Value]) {
        let observed = &run[0]["payload"]["observed"];
        let composite = whole(&observed["composite"]["resource"]);
        self.cluster.seed([self.revision(&composite), composite]);
        let resources = observed["resources"].as_object().into_iter().flatten();
        self.cluster.seed(resources.map(|(_, resource)| whole(&resource["resource"])));
        for emission in run {
            for field in ["requiredResources", "extraResources"] {
                let fetched = emission["payload"][field].as_object().into_iter().flatten();
                let items = fetched.flat_map(|(_, found)| found["items"].as_array().unwrap());
                self.cluster.seed(items.map(|item| whole(&item["resource"])));
            }
        }
    }

    fn revision(&self, composite: &Object) -> Object {
        let name = self.composition.name();
        let mut revision = whole(&json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
            "metadata": {
                "name": composite.str_at(&["spec", "crossplane", "compositionRevisionRef", "name"]),
                "labels": {"crossplane.io/composition-name": name},
                "ownerReferences": [{
                    "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
                    "name": name, "uid": "composition-uid", "controller": true,
                }],
            },
            "spec": self.composition["spec"],
            "status": {"conditions": [{
                "type": "ValidPipeline", "status": "True", "reason": "ValidPipeline",
                "lastTransitionTime": "2026-11-16T00:00:00Z",
            }]},
        }));
        revision.set_at_or_ignore(&["spec", "revision"], 1);
        revision
    }

    async fn run(&self, recorded: &[Value]) -> Vec<Compared> {
        self.seed(recorded);
        let composite = &recorded[0]["payload"]["observed"]["composite"]["resource"]["metadata"];
        let namespace = composite["namespace"].as_str().unwrap_or_default();
        let name = composite["name"].as_str().unwrap();
        let reconciled = self.reconciler.reconcile(namespace, name).await;
        let emissions = std::mem::take(&mut *self.kept.0.lock().unwrap());
        // The trace is new in every run, and the same within one.
        let traces: BTreeSet<_> = emissions.iter().map(|e| &e.meta.trace_id).collect();
        assert_eq!(traces.len(), 1, "{reconciled:?}");
        emissions
            .iter()
            .map(|e| {
                let payload = serde_json::from_slice(e.payload.get()).unwrap_or_default();
                compared(e.half, to_value(&e.meta).unwrap(), payload, &e.error)
            })
            .collect()
    }
}

/// A Secret as an API server stores it.
fn stored(mut object: Object) -> Object {
    if object.kind() == "Secret" && object.make_mut().remove("stringData").is_some() {
        object.set_at_or_ignore(&["data"], json!({"token": "UExBTlRFRA=="}));
    }
    object
}

fn expected(run: &[Value]) -> Vec<Compared> {
    run.iter()
        .map(|recorded| {
            let half = match recorded["method"].as_str().unwrap() {
                "EmitRequest" => Half::Request,
                _ => Half::Response,
            };
            let error = recorded["error"].as_str().unwrap_or_default();
            compared(half, recorded["meta"].clone(), recorded["payload"].clone(), error)
        })
        .collect()
}

/// INS-E2, INS-M1 to INS-M7, INS-Z1, INS-J
#[tokio::test]
async fn emissions_are_those_of_a_control_plane() {
    let recordings = Recording::load_area("inspector");
    assert_eq!(recordings.len(), 10);
    let mut emitted = 0;
    for recording in recordings {
        let world = World::new(&recording);
        for (number, run) in runs(&recording).iter().enumerate() {
            let mut ours = world.run(run).await;
            if recording.name == "unreachable" {
                // The call used up the time of the reconcile, and nothing was left to emit the
                // answer in. Ours arrives.
                let answer = ours.pop().unwrap();
                assert_eq!((answer.half, answer.payload), (Half::Response, Value::Null));
                assert!(!answer.error.is_empty());
            }
            emitted += ours.len();
            assert_eq!(ours, expected(run), "run {number} of {}", recording.name);
        }
    }
    assert_eq!(emitted, 65);
}

/// Whatever is planted is nowhere but where INS-Z1 passes it through: in the input of the function
/// that makes it, and in the annotation of something that is not a Secret.
#[tokio::test]
async fn no_planted_secret_is_emitted() {
    for recording in Recording::load_area("inspector") {
        let world = World::new(&recording);
        for run in runs(&recording) {
            for mut emission in world.run(&run).await {
                if let Some(payload) = emission.payload.as_object_mut() {
                    payload.remove("input");
                }
                let text = emission.payload.to_string().replace(r#"{\"PLANTED\":1}"#, "");
                for word in ["PLANTED", "UExBTlRFR", "504c414e544544"] {
                    assert!(!text.contains(word), "{word} in {}: {text}", recording.name);
                }
            }
        }
    }
}

/// INS-E4, INS-M2
#[tokio::test]
async fn operations_are_emitted_with_their_name_and_uid() {
    let (kept, inspection) = inspection();
    let settings = Settings { inspection: Some(inspection), ..Settings::default() };
    let step = |name: &str| {
        json!({
            "step": name, "functionRef": {"name": "function-dummy"},
            "input": {
                "apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": {},
            },
        })
    };
    let request: RenderRequest = from_value(json!({"operation": {"operation": {
        "apiVersion": "ops.crossplane.io/v1alpha1", "kind": "Operation",
        "metadata": {"name": "rotate", "uid": "u-2"},
        "spec": {"mode": "Pipeline", "pipeline": [step("first"), step("second")]},
    }}}))
    .unwrap();
    let functions = Arc::new(InProcess::new(biplane_functions::registry()));
    render(request, functions, &settings).await.unwrap();
    let emissions = kept.0.lock().unwrap();
    let meta = |index: usize| to_value(&emissions[index].meta).unwrap();
    assert_eq!(emissions.len(), 4);
    assert_eq!(meta(0)["operationMeta"], json!({"operationName": "rotate", "operationUid": "u-2"}));
    assert_eq!((&meta(2)["stepIndex"], &meta(2)["stepName"]), (&json!(1), &json!("second")));
    assert_eq!(meta(0)["traceId"], meta(3)["traceId"]);
}
