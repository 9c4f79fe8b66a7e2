//! Tests that requirements are fetched until they are stable, within a limit.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_function::{Object, Struct};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::v1::{
    Requirements, Resource, ResourceSelector, Resources, Result as FunctionResult, Schema,
    SchemaSelector, State, resource_selector::Match,
};

/// A scripted function: repeats its last response and records its requests.
#[derive(Clone, Default)]
struct Scripted {
    answers: Arc<Mutex<VecDeque<RunFunctionResponse>>>,
    seen: Arc<Mutex<Vec<(usize, RunFunctionRequest)>>>,
}

#[async_trait]
impl FunctionRunner for Scripted {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.seen.lock().unwrap().push((call.iteration, request));
        let mut answers = self.answers.lock().unwrap();
        let last = answers.len() == 1;
        let answer = if last { answers.front().cloned() } else { answers.pop_front() };
        answer.ok_or_else(|| RunError::Other("boom".into()))
    }
}

/// Objects by the string form of their selector. Nothing else exists.
#[derive(Clone, Default)]
struct World {
    objects: BTreeMap<String, Vec<Value>>,
    fetched: Arc<Mutex<usize>>,
}

#[async_trait]
impl crate::runner::Requirements for World {
    async fn resources(
        &self,
        selector: &ResourceSelector,
    ) -> Result<Option<Resources>, FetchError> {
        *self.fetched.lock().unwrap() += 1;
        if selector.kind == "NoSuchKind" {
            return Err(FetchError::Get("no matches".into()));
        }
        let Some(Match::MatchName(name)) = &selector.r#match else {
            return Ok(Some(Resources::default()));
        };
        Ok(self.objects.get(name).map(|found| resources(found)))
    }

    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError> {
        if selector.api_version == "not/valid/version" {
            return Err(FetchError::ApiVersion(selector.api_version.clone()));
        }
        let is_known = selector.kind == "Pod";
        Ok(Schema { openapi_v3: is_known.then(|| object(&json!({"type": "object"}))) })
    }
}

fn object(value: &Value) -> Struct {
    Object::from_value(value.clone()).unwrap().into()
}

fn resources(objects: &[Value]) -> Resources {
    let item = |o: &Value| Resource { resource: Some(object(o)), ..Resource::default() };
    Resources { items: objects.iter().map(item).collect() }
}

fn by_name(name: &str) -> ResourceSelector {
    ResourceSelector {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        r#match: Some(Match::MatchName(name.into())),
        namespace: None,
    }
}

fn requires(entries: &[(&str, ResourceSelector)]) -> RunFunctionResponse {
    let resources = entries.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let requirements = Requirements { resources, ..Requirements::default() };
    RunFunctionResponse { requirements: Some(requirements), ..RunFunctionResponse::default() }
}

fn requires_extra(name: &str) -> RunFunctionResponse {
    let extra_resources = BTreeMap::from([(name.to_owned(), by_name(name))]);
    let requirements = Requirements { extra_resources, ..Requirements::default() };
    RunFunctionResponse { requirements: Some(requirements), ..RunFunctionResponse::default() }
}

fn world() -> World {
    World {
        objects: BTreeMap::from([
            ("a".to_owned(), vec![json!({"kind": "ConfigMap", "fresh": true})]),
            ("b".to_owned(), vec![json!({"kind": "ConfigMap", "b": 2})]),
        ]),
        fetched: Arc::default(),
    }
}

struct Outcome {
    answer: Result<RunFunctionResponse, RunError>,
    requests: Vec<RunFunctionRequest>,
    iterations: Vec<usize>,
    fetched: usize,
}

async fn run(request: RunFunctionRequest, answers: Vec<RunFunctionResponse>) -> Outcome {
    let function =
        Scripted { answers: Arc::new(Mutex::new(answers.into())), ..Scripted::default() };
    let world = world();
    let runner = Fetching::new(function.clone(), world.clone());
    let answer = runner.run(&Call::default(), request).await;
    let (iterations, requests) = function.seen.lock().unwrap().drain(..).unzip();
    let fetched = *world.fetched.lock().unwrap();
    Outcome { answer, requests, iterations, fetched }
}

/// FN-F2, FN-F3
#[tokio::test]
async fn without_requirements_there_is_one_call() {
    for answer in [RunFunctionResponse::default(), requires(&[])] {
        let outcome = run(RunFunctionRequest::default(), vec![answer.clone()]).await;
        assert_eq!(outcome.answer.unwrap(), answer);
        assert_eq!(outcome.requests.len(), 1);
    }
}

/// FN-F2, FN-F6
#[tokio::test]
async fn a_required_resource_is_in_the_second_request() {
    let first = requires(&[("a", by_name("a"))]);
    let second = RunFunctionResponse { output: Some(Struct::default()), ..first.clone() };
    let outcome = run(RunFunctionRequest::default(), vec![first, second.clone()]).await;
    assert_eq!(outcome.answer.unwrap(), second);
    assert_eq!(outcome.requests.len(), 2);
    let found = &outcome.requests[1].required_resources["a"];
    assert_eq!(*found, resources(&[json!({"kind": "ConfigMap", "fresh": true})]));
    assert!(outcome.requests[1].extra_resources.is_empty());
    assert_eq!(outcome.iterations, [0, 1]);
}

#[tokio::test]
async fn the_deprecated_field_is_answered_in_the_deprecated_field() {
    let given = BTreeMap::from([("given".to_owned(), Resources::default())]);
    let request =
        RunFunctionRequest { required_resources: given.clone(), ..RunFunctionRequest::default() };
    let outcome = run(request, vec![requires_extra("a")]).await;
    assert_eq!(outcome.requests.len(), 2);
    assert_eq!(outcome.requests[1].extra_resources["a"].items.len(), 1);
    assert_eq!(outcome.requests[1].required_resources, given);
}

/// FN-W5
#[tokio::test]
async fn what_does_not_exist_is_a_key_without_items() {
    let answers = vec![requires(&[("missing", by_name("missing"))])];
    let outcome = run(RunFunctionRequest::default(), answers).await;
    assert_eq!(outcome.requests.len(), 2);
    assert_eq!(outcome.requests[1].required_resources["missing"], Resources::default());
}

fn given(name: &str, value: Value) -> RunFunctionRequest {
    let required_resources = BTreeMap::from([(name.to_owned(), resources(&[value]))]);
    RunFunctionRequest { required_resources, ..RunFunctionRequest::default() }
}

/// FN-F2 step 6
#[tokio::test]
async fn a_function_that_was_given_all_it_requires_is_called_once() {
    let request = given("a", json!({"kind": "ConfigMap", "fresh": true}));
    let outcome = run(request, vec![requires(&[("a", by_name("a"))])]).await;
    assert!(outcome.answer.is_ok());
    assert_eq!(outcome.requests.len(), 1);
}

#[tokio::test]
async fn a_function_that_was_given_something_stale_is_called_with_what_is_fresh() {
    let request = given("a", json!({"kind": "ConfigMap", "fresh": false}));
    let outcome = run(request, vec![requires(&[("a", by_name("a"))])]).await;
    assert_eq!(outcome.requests.len(), 2);
    let found = &outcome.requests[1].required_resources["a"];
    assert_eq!(*found, resources(&[json!({"kind": "ConfigMap", "fresh": true})]));
}

#[tokio::test]
async fn what_was_given_up_front_stays_unless_it_is_asked_for_differently() {
    let own = json!({"given": true});
    let outcome = run(given("b", own.clone()), vec![requires(&[("a", by_name("a"))])]).await;
    let second = &outcome.requests[1].required_resources;
    assert_eq!(second["b"], resources(std::slice::from_ref(&own)));
    assert_eq!(second["a"].items.len(), 1);

    let outcome = run(given("b", own), vec![requires(&[("b", by_name("b"))])]).await;
    let second = &outcome.requests[1].required_resources;
    assert_eq!(second["b"], resources(&[json!({"kind": "ConfigMap", "b": 2})]));
}

fn changing(n: usize) -> Vec<RunFunctionResponse> {
    (0..n).map(|i| requires(&[(&format!("r{i}"), by_name("a"))])).collect()
}

/// FN-F1
#[tokio::test]
async fn a_function_that_never_settles_is_called_six_times() {
    let outcome = run(RunFunctionRequest::default(), changing(9)).await;
    assert_eq!(
        outcome.answer.unwrap_err().to_string(),
        "requirements didn't stabilize after the maximum number of iterations (5)"
    );
    assert_eq!(outcome.iterations, [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn settling_on_the_sixth_call_is_in_time() {
    let mut answers = changing(4);
    answers.push(requires(&[("last", by_name("a"))]));
    let outcome = run(RunFunctionRequest::default(), answers).await;
    assert!(outcome.answer.is_ok());
    assert_eq!(outcome.requests.len(), 6);
    // The requirements of earlier calls are removed.
    let keys: Vec<_> = outcome.requests[5].required_resources.keys().collect();
    assert_eq!(keys, ["last"]);
}

#[tokio::test]
async fn a_fatal_result_ends_it_before_anything_is_fetched() {
    let mut answer = requires(&[("a", by_name("a"))]);
    answer.results.push(FunctionResult { severity: 1, ..FunctionResult::default() });
    let outcome = run(RunFunctionRequest::default(), vec![answer.clone()]).await;
    assert_eq!(outcome.answer.unwrap(), answer);
    assert_eq!((outcome.requests.len(), outcome.fetched), (1, 0));
}

/// FN-F4
#[tokio::test]
async fn only_context_is_carried_from_call_to_call() {
    let state = |name: &str| State {
        resources: BTreeMap::from([(name.to_owned(), Resource::default())]),
        ..State::default()
    };
    let first = RunFunctionResponse {
        context: Some(object(&json!({"k": 1}))),
        desired: Some(state("theirs")),
        ..requires(&[("a", by_name("a"))])
    };
    let request = RunFunctionRequest {
        context: Some(Struct::default()),
        desired: Some(state("ours")),
        ..RunFunctionRequest::default()
    };
    let outcome = run(request.clone(), vec![first]).await;
    assert_eq!(outcome.requests[1].context, Some(object(&json!({"k": 1}))));
    assert_eq!(outcome.requests[1].desired, Some(state("ours")));

    let outcome = run(request, vec![requires(&[("a", by_name("a"))])]).await;
    assert_eq!(outcome.requests[1].context, None);
}

#[tokio::test]
async fn what_cannot_be_fetched_fails_the_step() {
    let unknown = ResourceSelector { kind: "NoSuchKind".into(), ..by_name("a") };
    let outcome = run(RunFunctionRequest::default(), vec![requires(&[("a", unknown)])]).await;
    assert_eq!(
        outcome.answer.unwrap_err().to_string(),
        "fetching resources for a: cannot get required resource by name: no matches"
    );
}

fn requires_schema(api_version: &str, kind: &str) -> RunFunctionResponse {
    let mut response = RunFunctionResponse::default();
    biplane_function::response::require_schema(&mut response, "s", api_version, kind);
    response
}

#[tokio::test]
async fn required_schemas_are_fetched_too() {
    let outcome = run(RunFunctionRequest::default(), vec![requires_schema("v1", "Pod")]).await;
    let schema = &outcome.requests[1].required_schemas["s"];
    assert_eq!(schema.openapi_v3, Some(object(&json!({"type": "object"}))));

    let outcome = run(RunFunctionRequest::default(), vec![requires_schema("v1", "Nope")]).await;
    assert_eq!(outcome.requests[1].required_schemas["s"], Schema::default());

    let answers = vec![requires_schema("not/valid/version", "Pod")];
    let error = run(RunFunctionRequest::default(), answers).await.answer.unwrap_err();
    assert_eq!(
        error.to_string(),
        "fetching schema for s: cannot parse apiVersion \"not/valid/version\": unexpected \
         GroupVersion string: not/valid/version"
    );
}

/// Takes time for every call, and records the deadlines of its calls.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<Option<Instant>>>>);

#[async_trait]
impl FunctionRunner for Slow {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.0.lock().unwrap().push(call.deadline);
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Requires one resource, then another one, then nothing new.
        let name = if request.required_resources.is_empty() { "a" } else { "b" };
        Ok(requires(&[(name, by_name(name))]))
    }
}

/// All calls of a step share one deadline, even if the first call takes long.
#[tokio::test(start_paused = true)]
async fn all_calls_of_a_step_share_its_deadline() {
    let deadline = Some(Instant::now() + Duration::from_mins(1));
    let slow = Slow::default();
    let call = Call { deadline, ..Call::default() };
    let runner = Fetching::new(slow.clone(), world());
    runner.run(&call, RunFunctionRequest::default()).await.unwrap();
    assert_eq!(*slow.0.lock().unwrap(), [deadline; 3]);
}

#[tokio::test]
async fn an_error_of_the_function_comes_through_as_it_is() {
    let outcome = run(RunFunctionRequest::default(), Vec::new()).await;
    assert_eq!(outcome.answer.unwrap_err().to_string(), "boom");
}
