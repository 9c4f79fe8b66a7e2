//! Tests that functions in process get and return the same values as over the wire.

use std::time::Duration;

use biplane_function::{Budget, Function, PureFunction, Status};
use serde_json::json;
use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_mins(1);

struct Unruly;

impl PureFunction for Unruly {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut context = request.context.unwrap_or_default();
        context.make_mut().insert("n".into(), json!(3.0));
        Ok(RunFunctionResponse { context: Some(context), ..RunFunctionResponse::default() })
    }
}

struct Failing;

impl PureFunction for Failing {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        Err(Status::invalid_argument("no"))
    }
}

/// Never responds.
struct Stuck;

#[async_trait]
impl Function for Stuck {
    async fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        std::future::pending().await
    }
}

/// Computes for ever, whatever its budget.
struct Endless;

impl PureFunction for Endless {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        loop {
            std::thread::park();
        }
    }
}

/// Computes until its budget ends.
struct Bounded;

impl PureFunction for Bounded {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        Err(Status::internal("there is no budget"))
    }

    fn run_within(
        &self,
        _: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        loop {
            budget.check()?;
        }
    }

    fn checks_budget(&self) -> bool {
        true
    }
}

/// Panics.
struct Unlucky;

impl PureFunction for Unlucky {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        panic!("out of luck")
    }
}

async fn run(function: &str) -> Result<RunFunctionResponse, RunError> {
    let functions = Registry::default();
    let functions = functions.with("unruly", Unruly).with("failing", Failing).with("stuck", Stuck);
    let deadline = Some(Instant::now() + PATIENCE);
    let call = Call { function: function.into(), deadline, ..Call::default() };
    InProcess::new(functions).run(&call, RunFunctionRequest::default()).await
}

#[tokio::test]
async fn numbers_are_what_the_wire_would_make_of_them() {
    let context = run("unruly").await.unwrap().context.unwrap();
    assert_eq!(serde_json::to_string(&context).unwrap(), r#"{"n":3}"#);
}

#[tokio::test]
async fn errors_read_as_those_of_a_call() {
    let error = run("failing").await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = InvalidArgument desc = no");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_over_at_its_deadline() {
    let start = Instant::now();
    let error = run("stuck").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    );
    assert_eq!(start.elapsed(), PATIENCE);
}

#[tokio::test]
async fn an_unlisted_function_is_named() {
    let error = run("other").await.unwrap_err();
    let expected = r#"unknown function "other" - is it listed in the render input?"#;
    assert_eq!(error.to_string(), expected);
}

/// Without a thread of its own, the first of them would never end. The clock of the budget is real.
#[tokio::test]
async fn computing_is_over_at_the_deadline_too() {
    let functions = Registry::default().with("endless", Endless).with("bounded", Bounded);
    let functions = InProcess::new(functions);
    for function in ["endless", "bounded"] {
        let deadline = Some(Instant::now() + Duration::from_millis(50));
        let call = Call { function: function.into(), deadline, ..Call::default() };
        let error = functions.run(&call, RunFunctionRequest::default()).await.unwrap_err();
        let expected = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
        assert_eq!(error.to_string(), expected, "{function}");
    }
}

#[tokio::test]
async fn a_function_that_panics_fails_its_call() {
    let functions = InProcess::new(Registry::default().with("unlucky", Unlucky));
    let call = Call { function: "unlucky".into(), ..Call::default() };
    let error = functions.run(&call, RunFunctionRequest::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "rpc error: code = Internal desc = the function panicked");
}
