//! Tests of what a call may cost on a server: turns end with their callers, slow calls do not hold up
//! quick ones, and what is too much is refused.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use biplane_function::serve::{self, Config, Running};
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{Budget, Code, Exceeded, Function, PureFunction, Status, response};
use serde_json::{Value, json};

use crate::world::{PATIENCE, client, config, request};

async fn start(function: impl Function + 'static, config: Config) -> Running {
    serve::start(Arc::new(function), config, std::future::pending()).await.unwrap()
}

/// Computes for ever, until its budget ends, if it has an input.
struct Endless {
    begun: mpsc::Sender<()>,
    ended: mpsc::Sender<Exceeded>,
}

impl PureFunction for Endless {
    fn run(&self, _: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        unreachable!("servers give a budget")
    }

    fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        if request.input.is_none() {
            return Ok(RunFunctionResponse::default());
        }
        self.begun.send(()).unwrap();
        loop {
            if let Err(exceeded) = budget.check() {
                self.ended.send(exceeded).unwrap();
                return Err(exceeded.into());
            }
            std::hint::spin_loop();
        }
    }
}

/// The input that hurt: more calls than there are turns, whose callers soon go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_whose_callers_are_gone_are_given_back() {
    let (begun, has_begun) = mpsc::channel();
    let (ended, has_ended) = mpsc::channel();
    let (turns, calls) = (2, 8);
    let config = Config { max_computing: turns, max_slow: 0, ..config() };
    let running = start(Endless { begun, ended }, config).await;
    let mut endless = tokio::task::JoinSet::new();
    for _ in 0..calls {
        let client = client(running.target());
        endless.spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await });
    }
    let wait = move || (0..turns).try_for_each(|_| has_begun.recv());
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
    endless.abort_all();
    let quick = client(running.target()).call(RunFunctionRequest::default(), Some(PATIENCE)).await;
    quick.unwrap();
    let wait = move || (0..turns).map(|_| has_ended.recv()).collect::<Result<Vec<_>, _>>();
    let ended = tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
    assert_eq!(ended, [Exceeded::Abandoned; 2]);
}

/// The caller gives up by itself, and so does the function, with the same words.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_of_a_caller_is_that_of_the_function() {
    let (begun, has_begun) = mpsc::channel();
    let (ended, has_ended) = mpsc::channel();
    let running = start(Endless { begun, ended }, config()).await;
    let client = client(running.target());
    // On a busy machine, the time may be over before the function has begun.
    for millis in [100, 1_000, 10_000] {
        let call = client.call(request("t", &json!({})), Some(Duration::from_millis(millis)));
        assert_eq!(call.await.unwrap_err().code(), Code::DeadlineExceeded);
        if has_begun.try_recv().is_ok() {
            break;
        }
    }
    let ended = tokio::task::spawn_blocking(move || has_ended.recv()).await.unwrap().unwrap();
    assert!(matches!(ended, Exceeded::Deadline | Exceeded::Abandoned), "{ended}");
}

/// Blocks until it is released, and never looks at its budget.
#[derive(Clone, Default)]
struct Stubborn(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    inside: usize,
    released: bool,
}

impl Stubborn {
    fn until(&self, inside: usize) {
        let (state, changed) = &*self.0;
        drop(changed.wait_while(state.lock().unwrap(), |state| state.inside < inside).unwrap());
    }

    fn release(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().released = true;
        changed.notify_all();
    }
}

impl PureFunction for Stubborn {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        if request.input.is_some() {
            let (state, changed) = &*self.0;
            let mut state = state.lock().unwrap();
            state.inside += 1;
            changed.notify_all();
            drop(changed.wait_while(state, |state| !state.released).unwrap());
        }
        Ok(RunFunctionResponse::default())
    }
}

/// Calls the function with an input and goes away as soon as it has begun.
async fn abandon(running: &Running, function: &Stubborn, inside: usize) {
    let client = client(running.target());
    let call =
        tokio::spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await });
    let function = function.clone();
    tokio::task::spawn_blocking(move || function.until(inside)).await.unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn a_function_that_ignores_its_budget_keeps_no_turn() {
    let function = Stubborn::default();
    let config = Config { max_computing: 1, max_slow: 0, max_abandoned: 1, ..config() };
    let running = start(function.clone(), config).await;
    abandon(&running, &function, 1).await;
    let quick = client(running.target()).call(RunFunctionRequest::default(), Some(PATIENCE)).await;
    quick.unwrap();
    // There is one thread more than turns. Then nothing more is begun.
    abandon(&running, &function, 2).await;
    let refused =
        client(running.target()).call(RunFunctionRequest::default(), Some(PATIENCE)).await;
    let status = refused.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "too many calls still compute after their callers have gone");
    function.release();
    // The threads are free once the function has returned.
    let quick = client(running.target());
    while quick.call(RunFunctionRequest::default(), Some(PATIENCE)).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn slow_calls_do_not_hold_up_quick_ones() {
    let function = Stubborn::default();
    let config = Config { max_computing: 1, max_slow: 1, ..config() };
    let running = start(function.clone(), config).await;
    let slow = {
        let client = client(running.target());
        tokio::spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await })
    };
    let began = function.clone();
    tokio::task::spawn_blocking(move || began.until(1)).await.unwrap();
    // It is answered although the only turn is taken, and the slow call goes on.
    let quick = client(running.target()).call(RunFunctionRequest::default(), Some(PATIENCE)).await;
    quick.unwrap();
    function.release();
    slow.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_queue_that_is_too_long_refuses_at_once() {
    let function = Stubborn::default();
    let config = Config { max_computing: 1, max_slow: 0, max_waiting: 2, ..config() };
    let running = start(function.clone(), config).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = client(running.target());
        calls.spawn(async move { client.call(request("t", &json!({})), Some(PATIENCE)).await });
    }
    // One computes, two wait, and one is refused while nothing ends.
    let refused = calls.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "2 calls are waiting for their turn already");
    function.release();
    for answer in calls.join_all().await {
        answer.unwrap();
    }
}

/// Answers with as many bytes as its input says.
struct Verbose;

impl PureFunction for Verbose {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        let mut answer = RunFunctionResponse::default();
        let length = request.input.as_ref().and_then(|input| input.get("n")?.as_u64());
        let text = "x".repeat(usize::try_from(length.unwrap_or_default()).unwrap());
        response::set_context(&mut answer, "text", Value::from(text));
        Ok(answer)
    }
}

#[tokio::test]
async fn an_answer_that_callers_do_not_accept_is_not_sent() {
    let running = start(Verbose, config()).await;
    let client = client(running.target());
    let answer = |length: usize| client.call(request("t", &json!({"n": length})), Some(PATIENCE));
    answer(4 * 1024 * 1024 - 100).await.unwrap();
    let status = answer(4 * 1024 * 1024).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let expected = "grpc: trying to send message larger than max (41943";
    assert!(status.message().starts_with(expected), "{}", status.message());
    assert!(status.message().ends_with(" vs. 4194304)"), "{}", status.message());
}
