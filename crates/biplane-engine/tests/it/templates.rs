//! Tests of Compositions of mode Resources and of environments that no recording shows, and of what
//! happens when a reconcile of them stops at any call.

use std::sync::Arc;

use biplane_cluster::memory::{Answer, ApiServer, Fault, When};
use biplane_engine::composite::revision::Revision;
use biplane_engine::composite::{Behaviour, Layout, Reconciler, Release, Selection};
use biplane_engine::render::{RenderError, Settings, render};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_engine::{Context, FixedClock};
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::{Object, Value, yaml};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, render_request::Input, render_response::Output,
};
use biplane_runner::InProcess;
use serde_json::json;

use crate::crashing;
use crate::world::object;

const UID: &str = "7c9b1a52-6a1e-4f0b-8d1f-2b0c5f3e9a01";

/// What to render. Documents are YAML.
#[derive(Clone, Default)]
struct Case {
    /// The spec of the composite resource.
    xr: &'static str,
    /// The spec of the Composition, besides its kind.
    composition: String,
    observed: Vec<Value>,
    required: &'static str,
    without_environments: bool,
}

fn value(text: &str) -> Value {
    yaml::parse_one("test", text).unwrap().value
}

fn composite(spec: &str) -> Object {
    object(json!({
        "apiVersion": "example.org/v1", "kind": "XThing",
        "metadata": {"name": "xr", "uid": UID},
        "spec": if spec.is_empty() { json!({}) } else { value(spec) },
    }))
}

fn composition(spec: &str) -> Object {
    let mut spec = value(spec);
    spec["compositeTypeRef"] = json!({"apiVersion": "example.org/v1", "kind": "XThing"});
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "composition"}, "spec": spec,
    }))
}

async fn rendered(case: &Case) -> Result<CompositeOutput, String> {
    let documents = yaml::parse_documents("required", case.required).unwrap();
    let required = documents.into_iter().filter_map(|d| Object::from_value(d.value));
    let input = CompositeInput {
        composite_resource: Some(composite(case.xr).into()),
        composition: Some(composition(&case.composition).into()),
        observed_resources: case.observed.iter().cloned().map(|o| object(o).into()).collect(),
        required_resources: required.map(Struct::from).collect(),
        ..CompositeInput::default()
    };
    let request =
        RenderRequest { input: Some(Input::Composite(input)), ..RenderRequest::default() };
    let settings = Settings {
        clock: Arc::new(FixedClock("2024-01-01T00:00:00Z".parse().unwrap())),
        ids: Arc::new(CountingIds::default()),
        release: if case.without_environments { Release::V1_20 } else { Release::V1_17 },
        resources_mode: true,
        environments: !case.without_environments,
        ..Settings::default()
    };
    let runner = Arc::new(InProcess::new(biplane_functions::registry()));
    match render(request, runner, &settings).await {
        Ok(response) => match response.output {
            Some(Output::Composite(output)) => Ok(output),
            other => panic!("{other:?}"),
        },
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(text),
    }
}

/// The composed resources.
async fn composed(case: &Case) -> Vec<Object> {
    let output = rendered(case).await.unwrap();
    output.composed_resources.into_iter().map(Struct::into_object).collect()
}

/// An existing composed resource.
fn existing(kind: &str, name: &str, resource: Option<&str>, controller: &str) -> Value {
    let mut existing = json!({
        "apiVersion": "example.org/v1", "kind": kind,
        "metadata": {"name": name, "ownerReferences": [{
            "apiVersion": "example.org/v1", "kind": "XThing", "name": "xr", "uid": controller,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": {"live": true},
    });
    if let Some(resource) = resource {
        existing["metadata"]["annotations"] =
            json!({"crossplane.io/composition-resource-name": resource});
    }
    existing
}

const REFS: &str = "resourceRefs:
- {apiVersion: example.org/v1, kind: A, name: a-1}
- {apiVersion: example.org/v1, kind: B, name: b-1}
";

const NAMED: &str = "mode: Resources
resources:
- {name: b, base: {apiVersion: example.org/v1, kind: B}}
- {name: a, base: {apiVersion: example.org/v1, kind: A}}
";

#[tokio::test]
async fn one_resource_without_a_name_makes_the_order_count() {
    // PT-2, T-108
    let observed = vec![existing("A", "a-1", Some("a"), UID), existing("B", "b-1", None, UID)];
    let case = Case { xr: REFS, composition: NAMED.to_owned(), observed, ..Case::default() };
    let error = rendered(&case).await.unwrap_err();
    let why = "cannot parse base template of composed resource \"b\": cannot change the kind of a composed resource from example.org/v1, Kind=A to example.org/v1, Kind=B";
    assert!(error.contains(why), "{error}");
}

#[tokio::test]
async fn what_another_controls_is_neither_deleted_nor_changed() {
    // PT-2, PT-5
    let observed =
        vec![existing("A", "a-1", Some("a"), UID), existing("B", "b-1", Some("gone"), "another")];
    let case = Case { xr: REFS, composition: NAMED.to_owned(), observed, ..Case::default() };
    let error = rendered(&case).await.unwrap_err();
    let why = "cannot associate composed resources with Composition resource templates: refusing to delete composed resource \"gone\" that is controlled by XThing \"xr\"";
    assert!(error.contains(why), "{error}");
    let observed =
        vec![existing("A", "a-1", Some("a"), UID), existing("B", "b-1", Some("b"), "another")];
    let error = rendered(&Case { observed, ..case }).await.unwrap_err();
    let why = format!(
        "cannot apply composed resource \"b\": existing object is not controlled by UID \"{UID}\""
    );
    assert!(error.contains(&why), "{error}");
}

#[tokio::test]
async fn readiness_checks_look_at_the_live_resource() {
    // PT-9
    for (check, ready) in [
        ("{type: None}", Ok(true)),
        ("{type: NonEmpty, fieldPath: spec.live}", Ok(true)),
        ("{type: NonEmpty, fieldPath: spec.none}", Ok(false)),
        ("{type: MatchTrue, fieldPath: spec.live}", Ok(true)),
        ("{type: MatchFalse, fieldPath: spec.live}", Ok(false)),
        ("{type: MatchString, fieldPath: kind, matchString: A}", Ok(true)),
        ("{type: MatchInteger, fieldPath: spec.size, matchInteger: 3}", Ok(true)),
        ("{type: MatchInteger, fieldPath: spec.size, matchInteger: 4}", Ok(false)),
        ("{type: MatchInteger, fieldPath: spec.none, matchInteger: 4}", Ok(false)),
        (
            "{type: MatchString, fieldPath: spec.size, matchString: a}",
            Err("spec.size: not a string"),
        ),
        (
            "{type: MatchInteger, fieldPath: kind, matchInteger: 1}",
            Err("kind: not a (int64) number"),
        ),
        ("{type: MatchCondition, matchCondition: {type: Up, status: 'False'}}", Ok(true)),
        ("{type: MatchCondition, matchCondition: {type: Ready, status: 'True'}}", Ok(false)),
        (
            "{type: MatchCondition}",
            Err("invalid: type \"MatchCondition\" requires a valid match condition"),
        ),
    ] {
        let mut live = existing("A", "a-1", Some("a"), UID);
        live["spec"]["size"] = json!(3);
        live["status"] = json!({"conditions": [
            {"type": "Up", "status": "False", "reason": "x", "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]});
        let composition = format!(
            "mode: Resources
resources:
- name: a
  base: {{apiVersion: example.org/v1, kind: A}}
  readinessChecks: [{check}]
"
        );
        let case = Case { xr: REFS, composition, observed: vec![live], ..Case::default() };
        match (rendered(&case).await, ready) {
            (Ok(output), Ok(ready)) => {
                let xr = output.composite_resource.unwrap().into_object();
                let conditions = biplane_model::condition::conditions(&xr);
                let status = conditions.iter().find(|c| c.r#type == "Ready").unwrap();
                assert_eq!(status.status == "True", ready, "{check}");
            }
            (Err(error), Err(why)) => {
                let why = format!(
                    "cannot check whether composed resource \"a\" is ready: cannot run readiness check at index 0: {why}"
                );
                assert!(error.ends_with(&why), "{check}: {error}");
            }
            (other, _) => panic!("{check}: {other:?}"),
        }
    }
}

const CONFIGS: &str = "apiVersion: apiextensions.crossplane.io/v1alpha1
kind: EnvironmentConfig
metadata: {name: a, labels: {stage: prod}}
data: {int: 1, bool: true, str: some str, array: [1, 2, 3, 4], test: {foo: bar, complex: {data: val}}, flag: true}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: b, labels: {stage: prod}}
data: {int: 2, array: [1, 2, 3, 4, 5], test: {foo: bar2, hello: world}, kind: foo, half: 1.5}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: empty, labels: {kind: empty}}
";

/// A Composition with an environment and a template that copies all of it.
fn with_environment(environment: &str) -> String {
    let patches: String = ["int", "bool", "str", "array", "test", "hello", "kind"]
        .map(|field| {
            format!("  - {{type: FromEnvironmentFieldPath, fromFieldPath: {field}, toFieldPath: spec.{field}}}\n")
        })
        .concat();
    format!(
        "mode: Resources
environment: {environment}
resources:
- name: a
  base: {{apiVersion: example.org/v1, kind: A}}
  patches:
{patches}"
    )
}

#[tokio::test]
async fn environments_are_merged_in_order() {
    // ENV-19 to ENV-24, native tests 3 and 21
    let sources = "{defaultData: {hello: world, int: 0}, environmentConfigs: [{ref: {name: a}}, {reference: {name: empty}}, {ref: {name: b}}]}";
    let case =
        Case { composition: with_environment(sources), required: CONFIGS, ..Case::default() };
    let composed = composed(&case).await;
    let spec = json!({
        "int": 2, "bool": true, "str": "some str", "array": [1, 2, 3, 4, 5], "hello": "world",
        "test": {"foo": "bar2", "hello": "world", "complex": {"data": "val"}}, "kind": "Environment",
    });
    assert_eq!(composed[0].get("spec"), Some(&spec));
}

#[tokio::test]
async fn selections_that_cannot_be_made_say_why() {
    // ENV-10 to ENV-16, native tests 8 to 12
    const PROD: &str = "matchLabels: [{type: Value, key: stage, value: prod}]";
    let selector = |selector: &str| {
        with_environment(&format!(
            "{{environmentConfigs: [{{type: Selector, selector: {selector}}}]}}"
        ))
    };
    let sorted = |by: &str| format!("{{mode: Multiple, sortByFieldPath: {by}, {PROD}}}");
    for (composition, why) in [
        (
            selector(&format!("{{{PROD}}}")),
            "only 1 EnvironmentConfig can be selected in Single mode, found: 2",
        ),
        (
            selector(
                "{matchLabels: [{key: a, valueFromFieldPath: wrong.path, fromFieldPathPolicy: Optional}]}",
            ),
            "only 1 EnvironmentConfig can be selected in Single mode, found: 0",
        ),
        (
            selector("{matchLabels: [{key: a, valueFromFieldPath: wrong.path}]}"),
            "failed to resolve value for label at index 0: wrong: no such field",
        ),
        (
            selector(
                "{matchLabels: [{key: a, valueFromFieldPath: 'spec.text.more', fromFieldPathPolicy: Optional}]}",
            ),
            "failed to resolve value for label at index 0: spec.text: not an object",
        ),
        (
            selector(&format!("{{mode: Multiple, minMatch: 3, {PROD}}}")),
            "expected at least 3 EnvironmentConfig(s) with matching labels, found: 2",
        ),
        (selector(&sorted("data.flag")), "unexpected type bool"),
        (selector(&sorted("data.half")), "data.half: no such field"),
        (selector(&sorted("'metadata.annotations[x]'")), "metadata.annotations: no such field"),
    ] {
        let case = Case { composition, required: CONFIGS, xr: "{text: words}", ..Case::default() };
        let error = rendered(&case).await.unwrap_err();
        let why = format!("cannot select environment: failed to build reference at index 0: {why}");
        assert!(error.ends_with(&why), "{error}\n{why}");
    }
}

#[tokio::test]
async fn without_environments_patches_that_need_one_do_nothing() {
    // ENV-35, native test 18
    let composition = "mode: Resources
resources:
- name: a
  base: {apiVersion: example.org/v1, kind: A}
  patches:
  - {type: FromEnvironmentFieldPath, fromFieldPath: x, toFieldPath: spec.x, policy: {fromFieldPath: Required}}
  - {fromFieldPath: spec.size, toFieldPath: spec.size}
";
    let case = Case {
        composition: composition.to_owned(),
        xr: "{size: 1}",
        without_environments: true,
        ..Case::default()
    };
    assert_eq!(composed(&case).await[0].get("spec"), Some(&json!({"size": 1})));
    // With one, a resource waits for what it needs.
    let case = Case { without_environments: false, ..case };
    let output = rendered(&case).await.unwrap();
    assert!(output.composed_resources.is_empty());
    let why = "cannot render FromComposite or environment patches for composed resource \"a\": cannot apply the \"FromEnvironmentFieldPath\" patch at index 0: x: no such field";
    assert!(output.events.iter().any(|event| event.message == why), "{:?}", output.events);
}

/// The stages of a composite resource: its Compositions, one after the other.
const STAGES: [&str; 3] = [
    "mode: Resources
environment: {environmentConfigs: [{ref: {name: a}}], patches: [{type: ToCompositeFieldPath, fromFieldPath: str, toFieldPath: spec.str}]}
resources:
- name: first
  base: {apiVersion: example.org/v1, kind: Part, metadata: {}}
  patches:
  - {fromFieldPath: spec.namespace, toFieldPath: metadata.namespace}
  - {type: ToCompositeFieldPath, fromFieldPath: metadata.name, toFieldPath: status.first}
- name: second
  base: {apiVersion: example.org/v1, kind: Part}
  patches:
  - {fromFieldPath: spec.namespace, toFieldPath: metadata.namespace}
  - {type: FromEnvironmentFieldPath, fromFieldPath: int, toFieldPath: spec.int}
",
    "mode: Resources
resources:
- name: third
  base: {apiVersion: example.org/v1, kind: Part}
  patches:
  - {fromFieldPath: spec.namespace, toFieldPath: metadata.namespace}
  - {type: ToCompositeFieldPath, fromFieldPath: metadata.name, toFieldPath: spec.third}
- name: first
  base: {apiVersion: example.org/v1, kind: Part, spec: {more: true}}
  patches:
  - {fromFieldPath: spec.namespace, toFieldPath: metadata.namespace}
",
    "mode: Resources
resources:
- name: second
  base: {apiVersion: example.org/v1, kind: Part}
  patches:
  - {fromFieldPath: spec.namespace, toFieldPath: metadata.namespace}
",
];

fn reconciler(server: &Arc<ApiServer>, spec: &str) -> Reconciler {
    let spec = composition(spec).into_map().remove("spec").unwrap();
    let mut revision = object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositionRevision",
        "metadata": {"name": "revision"}, "spec": spec,
    }));
    set_conditions(&mut revision, [Condition::new("ValidPipeline", "True", "ValidPipeline")]);
    let context = Context {
        cluster: server.clone(),
        events: server.clone(),
        runner: Arc::new(InProcess::new(biplane_functions::registry())),
        requirements: Arc::new(ClusterRequirements(server.clone())),
        clock: Arc::new(FixedClock("2024-01-01T00:00:00Z".parse().unwrap())),
        ids: Arc::new(CountingIds::default()),
    };
    let selection = Selection::Given {
        composition: "composition".to_owned(),
        revision: Box::new(Revision::try_from(revision).unwrap()),
    };
    let gvk = composite("").gvk();
    let behaviour = Behaviour {
        selection,
        resources_mode: true,
        environments: true,
        ..Behaviour::live(gvk, Layout::Legacy, "xrd")
    };
    Reconciler::new(context, behaviour)
}

fn server() -> Arc<ApiServer> {
    let server = ApiServer::default();
    server.register(&crashing::definition("Part", "parts")).unwrap();
    let mut things = crashing::definition("XThing", "xthings");
    things.set_at_or_ignore(&["spec", "scope"], "Cluster");
    server.register(&things).unwrap();
    server.seed([composite("{namespace: ns}")]);
    let configs = yaml::parse_documents("configs", CONFIGS).unwrap();
    server.seed(configs.into_iter().filter_map(|d| Object::from_value(d.value)));
    Arc::new(server)
}

async fn settle(server: &Arc<ApiServer>, stage: &str) {
    for _ in 0..6 {
        let before = server.objects();
        reconciler(server, stage).reconcile("", "xr").await.expect("an undisturbed reconcile");
        if server.objects() == before {
            return;
        }
    }
    panic!("it never rests");
}

/// All stored objects, without fields that count writes or objects.
fn state(server: &ApiServer) -> Vec<Value> {
    let mut objects = server.objects();
    for object in &mut objects {
        for counted in
            ["resourceVersion", "generation", "uid", "creationTimestamp", "managedFields"]
        {
            object.remove_at(&["metadata", counted]);
        }
    }
    objects.into_iter().map(Object::into_value).collect()
}

/// Goes to a stage, with a crash at `fault`. Returns the state in the end, and the number of calls.
async fn reach(before: &[&str], stage: &str, fault: Option<Fault>) -> (Vec<Value>, usize) {
    let server = server();
    for earlier in before {
        settle(&server, earlier).await;
    }
    server.restart();
    if let Some(fault) = fault {
        server.inject(fault);
    }
    let reconciled = reconciler(&server, stage).reconcile("", "xr").await;
    assert_eq!(reconciled.is_err(), fault.is_some(), "{fault:?} was not noticed");
    let calls = server.calls();
    server.restart();
    settle(&server, stage).await;
    (state(&server), calls)
}

#[tokio::test]
async fn a_crash_at_any_call_changes_nothing() {
    for (index, stage) in STAGES.iter().enumerate() {
        let (want, calls) = reach(&STAGES[..index], stage, None).await;
        let parts = want.iter().filter(|object| object["kind"] == "Part").count();
        assert_eq!(parts, [2, 2, 1][index]);
        for call in 0..calls {
            for when in [When::Before, When::After] {
                let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
                let (got, _) = reach(&STAGES[..index], stage, Some(fault)).await;
                assert!(got == want, "{index} {fault:?}:\n{}\n{}", json!(got), json!(want));
            }
        }
    }
}
