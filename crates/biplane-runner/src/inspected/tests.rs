//! Tests of the wrapper: what is emitted when, and that nothing about it changes a call.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use biplane_proto::inspector::shipped::{CompositionMeta, OperationMeta, step_meta::Context};
use biplane_proto::json::from_value;
use serde_json::{Value, json};
use tonic::Status;

use super::*;
use crate::runner::{FetchError, Requirements, Subject};
use crate::v1::{ResourceSelector, Resources, Schema, SchemaSelector};
use crate::{Cached, cached::CacheMetrics, stack};

/// Keeps emissions, or refuses them.
#[derive(Default)]
struct Kept {
    emissions: Mutex<Vec<Emission>>,
    refuse: Vec<Half>,
    hang: bool,
}

#[async_trait]
impl Inspector for Kept {
    async fn emit(&self, emission: Emission) -> Result<(), EmitError> {
        if self.hang {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let (half, function) = (emission.half, emission.meta.function_name.clone());
        if self.refuse.contains(&half) {
            return Err(EmitError::status(half, &function, Status::unavailable("gone")));
        }
        self.emissions.lock().unwrap().push(emission);
        Ok(())
    }
}

impl Kept {
    fn payloads(&self) -> Vec<Value> {
        let emissions = self.emissions.lock().unwrap();
        let payload = |e: &Emission| serde_json::from_slice(e.payload.get()).unwrap_or_default();
        emissions.iter().map(payload).collect()
    }

    fn metas(&self) -> Vec<StepMeta> {
        self.emissions.lock().unwrap().iter().map(|e| e.meta.clone()).collect()
    }
}

fn sources() -> Sources {
    let count = AtomicUsize::new(0);
    Sources {
        now: Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(1_500)),
        uuid: Arc::new(move || format!("span-{}", count.fetch_add(1, Ordering::SeqCst))),
        tag_key: TagKey::new([1; 32]),
    }
}

struct World {
    kept: Arc<Kept>,
    metrics: Metrics,
    inspection: Inspection,
}

impl World {
    fn new(kept: Kept) -> Self {
        Self::with(kept, &Options::default())
    }

    fn with(kept: Kept, options: &Options) -> Self {
        let (kept, metrics) = (Arc::new(kept), Metrics::default());
        let counters = InspectorMetrics::new(&metrics);
        let inspection = Inspection::new(kept.clone(), options, sources(), Some(counters));
        Self { kept, metrics, inspection }
    }

    async fn run(&self, call: &Call, answer: Answer) -> Result<RunFunctionResponse, RunError> {
        let runner = stack::inspected(Arc::new(answer), Some(&self.inspection));
        runner.run(call, request()).await
    }

    fn errors(&self, half: &str) -> u64 {
        let line = format!(
            "function_run_function_pipeline_inspector_errors_total{{function_name=\"fn\",type=\"{half}\"}} "
        );
        let text = self.metrics.text();
        let found = text.lines().find_map(|l| l.strip_prefix(&line)).map(|n| n.parse().unwrap());
        found.unwrap_or_default()
    }
}

/// What a function answers.
#[derive(Clone)]
enum Answer {
    Echo,
    Fails,
    Never,
}

#[async_trait]
impl FunctionRunner for Answer {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        call.notes.revision("fn-1234");
        // The function sees what the pipeline gave it.
        let tag = request.meta.unwrap_or_default().tag;
        match self {
            Self::Echo => Ok(from_value(json!({
                "meta": {"tag": tag, "ttl": "60s"}, "desired": request_json()["desired"],
            }))
            .unwrap()),
            Self::Fails => Err(RunError::Installed {
                function: call.function.clone(),
                status: Status::deadline_exceeded("context deadline exceeded"),
            }),
            Self::Never => std::future::pending().await,
        }
    }
}

fn request_json() -> Value {
    json!({
        "meta": {"tag": "t"},
        "observed": {"composite": {"resource": {
            "apiVersion": "example.org/v1", "kind": "Store",
            "metadata": {"name": "north", "namespace": "ns", "uid": "u-1"},
        }}},
        "desired": {"resources": {"s": {"resource": {
            "apiVersion": "v1", "kind": "Secret", "stringData": {"k": "PLANTED"},
        }}}},
    })
}

fn request() -> RunFunctionRequest {
    from_value(request_json()).unwrap()
}

fn call() -> Call {
    Call {
        function: "fn".into(),
        step: "compose".into(),
        index: 1,
        trace: "trace-1".into(),
        subject: Some(Subject::Composition { name: "stores".into() }),
        ..Call::default()
    }
}

/// INS-E1, INS-M1 to INS-M5
#[tokio::test]
async fn a_call_is_emitted_before_and_after_with_the_same_metadata() {
    let world = World::new(Kept::default());
    let answer = world.run(&call(), Answer::Echo).await.unwrap();
    // The caller gets what the function answered.
    assert_eq!(answer.meta.unwrap().tag, "t");
    let desired = answer.desired.unwrap();
    assert_eq!(
        desired.resources["s"].resource.as_ref().unwrap().str_at(&["stringData", "k"]),
        "PLANTED"
    );

    let metas = world.kept.metas();
    assert_eq!(metas.len(), 2);
    assert_eq!(metas[0], metas[1]);
    assert_eq!(
        metas[0],
        StepMeta {
            timestamp: Some(biplane_proto::Timestamp { seconds: 1, nanos: 500_000_000 }),
            trace_id: "trace-1".into(),
            span_id: "span-0".into(),
            step_index: 1,
            step_name: "compose".into(),
            iteration: 0,
            function_name: "fn".into(),
            context: Some(Context::CompositionMeta(CompositionMeta {
                composition_name: "stores".into(),
                composite_resource_uid: "u-1".into(),
                composite_resource_name: "north".into(),
                composite_resource_namespace: "ns".into(),
                composite_resource_api_version: "example.org/v1".into(),
                composite_resource_kind: "Store".into(),
            })),
        }
    );
    let payloads = world.kept.payloads();
    assert_eq!(
        payloads[0]["desired"]["resources"]["s"]["resource"]["stringData"]["k"],
        "**REDACTED**"
    );
    assert_eq!(payloads[1]["desired"], payloads[0]["desired"]);
    // Both halves still have the same tag, which no longer hashes the secret.
    assert_eq!(payloads[0]["meta"]["tag"], payloads[1]["meta"]["tag"]);
    assert_ne!(payloads[0]["meta"]["tag"], "t");

    let emissions = world.kept.emissions.lock().unwrap();
    assert_eq!(emissions[0].details, Details::default());
    assert!(emissions[1].details.took.is_some());
    assert_eq!(emissions[1].details.cached, Some(false));
    assert_eq!(emissions[1].details.revision.as_deref(), Some("fn-1234"));
    assert_eq!((world.errors("request"), world.errors("response")), (0, 0));
}

/// INS-E1, INS-M6
#[tokio::test]
async fn without_metadata_a_call_is_made_and_not_emitted() {
    for call in [Call { trace: String::new(), ..call() }, Call { subject: None, ..call() }] {
        let world = World::new(Kept::default());
        assert!(world.run(&call, Answer::Echo).await.is_ok());
        assert!(world.kept.metas().is_empty());
        assert_eq!((world.errors("request"), world.errors("response")), (0, 0));
    }
}

/// INS-E1, INS-T3, INS-T7
#[tokio::test]
async fn emissions_that_fail_are_counted_and_change_nothing() {
    for (refuse, emitted, errors) in [
        (vec![Half::Request], 1, (1, 0)),
        (vec![Half::Response], 1, (0, 1)),
        (vec![Half::Request, Half::Response], 0, (1, 1)),
    ] {
        let world = World::new(Kept { refuse, ..Kept::default() });
        assert!(world.run(&call(), Answer::Echo).await.is_ok());
        assert_eq!(world.kept.metas().len(), emitted);
        assert_eq!((world.errors("request"), world.errors("response")), errors);
    }
}

/// INS-E1, INS-P2
#[tokio::test]
async fn a_failed_call_is_emitted_with_its_error() {
    let world = World::new(Kept::default());
    let error = world.run(&call(), Answer::Fails).await.unwrap_err();
    let text = "cannot run Function \"fn\": rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    assert_eq!(error.to_string(), text);
    let emissions = world.kept.emissions.lock().unwrap();
    assert_eq!(emissions[1].error, text);
    assert!(emissions[1].payload.get().is_empty());
}

/// INS-T5: the caller has no more time when the function answers.
#[tokio::test(start_paused = true)]
async fn the_response_is_emitted_even_if_the_caller_no_longer_waits() {
    let world = World::new(Kept { hang: true, ..Kept::default() });
    let late = Duration::from_millis(150);
    let answer = tokio::time::timeout(late, world.run(&call(), Answer::Fails)).await;
    assert!(answer.is_err(), "the response takes until 200 ms");
    tokio::time::sleep(late).await;
    assert_eq!(world.kept.metas().len(), 2);

    let world = World::new(Kept::default());
    let answer = tokio::time::timeout(late, world.run(&call(), Answer::Never)).await;
    assert!(answer.is_err());
    tokio::time::sleep(late).await;
    let emissions = world.kept.emissions.lock().unwrap();
    assert_eq!(emissions[1].error, "rpc error: code = Canceled desc = context canceled");
}

/// INS-E4, INS-M2
#[tokio::test]
async fn operations_are_emitted_too() {
    let world = World::new(Kept::default());
    let subject = Subject::Operation { name: "rotate".into(), uid: "u-2".into() };
    let call = Call { subject: Some(subject), ..call() };
    world.run(&call, Answer::Echo).await.unwrap();
    let operation = OperationMeta { operation_name: "rotate".into(), operation_uid: "u-2".into() };
    assert_eq!(world.kept.metas()[0].context, Some(Context::OperationMeta(operation)));
}

/// INS-M2, INS-M5
#[tokio::test]
async fn what_is_missing_is_left_empty() {
    let world = World::new(Kept::default());
    let call = Call { subject: Some(Subject::Composition { name: String::new() }), ..call() };
    let runner = stack::inspected(Arc::new(Answer::Echo), Some(&world.inspection));
    runner.run(&call, RunFunctionRequest::default()).await.unwrap();
    let composition = Context::CompositionMeta(CompositionMeta::default());
    assert_eq!(world.kept.metas()[0].context, Some(composition));
    assert_eq!(world.kept.payloads()[0], json!({}));
}

/// Requires one more resource in its first answer, and fulfils every requirement.
struct Needs;

#[async_trait]
impl FunctionRunner for Needs {
    async fn run(&self, _: &Call, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
        Ok(from_value(json!({
            "meta": {"ttl": "60s"},
            "requirements": {"resources": {"r": {"apiVersion": "v1", "kind": "ConfigMap", "matchName": "c"}}},
        }))
        .unwrap())
    }
}

#[async_trait]
impl Requirements for Needs {
    async fn resources(&self, _: &ResourceSelector) -> Result<Option<Resources>, FetchError> {
        Ok(Some(from_value(json!({"items": [{"resource": {"kind": "ConfigMap"}}]})).unwrap()))
    }

    async fn schema(&self, _: &SchemaSelector) -> Result<Schema, FetchError> {
        Ok(Schema::default())
    }
}

/// INS-E2
#[tokio::test]
async fn a_step_is_one_pair_and_an_iteration_is_one_pair() {
    let of = |world: &World| {
        let metas = world.kept.metas();
        metas.iter().map(|m| (m.iteration, m.span_id.clone())).collect::<Vec<_>>()
    };
    let step = World::new(Kept::default());
    let runner = stack::of_inspected_reconciler(Arc::new(Needs), Needs, Some(&step.inspection));
    runner.run(&call(), request()).await.unwrap();
    assert_eq!(of(&step), [(0, "span-0".into()), (0, "span-0".into())]);
    assert_eq!(step.kept.payloads()[0].get("requiredResources"), None);
    assert!(step.kept.payloads()[1]["requirements"].is_object());

    let options = Options { granularity: Granularity::Iteration, ..Options::default() };
    let each = World::with(Kept::default(), &options);
    let runner = stack::of_inspected_reconciler(Arc::new(Needs), Needs, Some(&each.inspection));
    runner.run(&call(), request()).await.unwrap();
    // The outermost wrapper also makes metadata, for a cache that is not there.
    assert_eq!(
        of(&each),
        [(0, "span-1".into()), (0, "span-1".into()), (1, "span-2".into()), (1, "span-2".into())]
    );
    assert_eq!(each.kept.payloads()[0].get("requiredResources"), None);
    assert!(each.kept.payloads()[2]["requiredResources"].is_object());
    let traces: BTreeSet<_> = each.kept.metas().into_iter().map(|meta| meta.trace_id).collect();
    assert_eq!(traces.len(), 1);
}

/// INS-E2
#[tokio::test]
async fn what_a_cache_answers_is_one_pair_in_either_case() {
    for granularity in [Granularity::Step, Granularity::Iteration] {
        let world = World::with(Kept::default(), &Options { granularity, ..Options::default() });
        let inspection = Some(&world.inspection);
        let folder = tempfile::tempdir().unwrap();
        let fetching =
            stack::of_reconciler(stack::inspected_calls(Arc::new(Needs), inspection), Needs);
        let cached = Cached::new(
            fetching,
            folder.path(),
            Duration::ZERO,
            Arc::new(|| SystemTime::UNIX_EPOCH),
            CacheMetrics::new(&Metrics::default()),
        );
        let runner = stack::inspected(Arc::new(cached), inspection);
        let called = if granularity == Granularity::Step { 2 } else { 4 };
        runner.run(&call(), request()).await.unwrap();
        assert_eq!(world.kept.metas().len(), called, "{granularity:?}");
        runner.run(&call(), request()).await.unwrap();
        let metas = world.kept.metas();
        assert_eq!(metas.len(), called + 2, "{granularity:?}");
        assert_eq!(metas[called], metas[called + 1]);
        assert_eq!(metas[called].iteration, 0);
        let emissions = world.kept.emissions.lock().unwrap();
        assert_eq!(emissions[called + 1].details.cached, Some(true), "{granularity:?}");
        assert_eq!(emissions[called - 1].details.cached, Some(false), "{granularity:?}");
    }
}
