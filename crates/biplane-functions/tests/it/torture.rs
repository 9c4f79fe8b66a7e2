//! Inputs that hurt: small requests that once took minutes or gigabytes.
//!
//! Each runs in a process of its own, whose time and memory are measured. `cargo xtask torture` runs
//! them in a release build, prints them as a table, and goes on with damaged copies of them.

mod cases;
mod original;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse, Severity};
use biplane_function::{Budget, PureFunction, Status};
use biplane_functions::patch_and_transform::PatchAndTransform;
use biplane_testkit::mutate;
use prost::Message;

use cases::Case;

/// Names the case in the process that runs it.
const CASE: &str = "BIPLANE_TORTURE_CASE";

/// Set to print a table.
const TABLE: &str = "BIPLANE_TORTURE_TABLE";

/// What a call may take of a processor in a release build. Tests are no such build.
const SECONDS: f64 = 2.0;
const FACTOR: f64 = 15.0;

/// What a process may take, in KiB.
const MEMORY: usize = 256 << 10;

#[allow(clippy::disallowed_methods)] // distinguishes the processes of this test
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn call(
    function: &dyn biplane_function::Function,
    request: RunFunctionRequest,
    budget: &Budget,
) -> Result<RunFunctionResponse, Status> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(function.run_within(request, budget))
}

/// The highest resident memory of this process so far, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The time that this process has taken of processors so far, in milliseconds. Unlike the time that
/// passes, it does not grow because others are busy.
fn computed() -> usize {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program comes before, in parentheses.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<usize>().unwrap());
    // Linux counts a hundred ticks in a second.
    ticks.sum::<usize>() * 10
}

/// The fatal result of an answer, or that it has none.
fn verdict(answer: &Result<RunFunctionResponse, Status>) -> String {
    match answer {
        Ok(answer) => {
            let fatal = answer.results.iter().find(|r| r.severity() == Severity::Fatal);
            fatal.map_or_else(|| "answered".to_owned(), |result| result.message.clone())
        }
        Err(status) => status.to_string(),
    }
}

/// Runs one case and prints milliseconds, those of processors, KiB and the verdict.
#[allow(clippy::print_stdout)] // read by the test that started this process
fn run_alone(name: &str) {
    let case = cases::all().into_iter().find(|case| case.name == name).unwrap();
    let (function, request) = (case.function(), (case.request)());
    let (start, before) = (Instant::now(), computed());
    let answer = call(&*function, request, &Budget::default());
    let (millis, computed) = (start.elapsed().as_millis(), computed() - before);
    let verdict: String = verdict(&answer).chars().take(2_000).collect();
    println!("\nTORTURED {millis} {computed} {} {}", peak(), verdict.replace('\n', " "));
}

struct Outcome {
    millis: usize,
    computed: usize,
    peak: usize,
    verdict: String,
}

fn run_apart(case: &Case) -> Outcome {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "torture::inputs_that_hurt_end_within_their_budget", "--nocapture"])
        .env(CASE, case.name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("TORTURED "));
    let line = line.unwrap_or_else(|| {
        panic!("{}: {}\n{}", case.name, output.status, String::from_utf8_lossy(&output.stderr))
    });
    let mut words = line.splitn(4, ' ');
    let mut number = || words.next().unwrap().parse().unwrap();
    let (millis, computed, peak) = (number(), number(), number());
    Outcome { millis, computed, peak, verdict: words.next().unwrap_or_default().to_owned() }
}

#[test]
fn inputs_that_hurt_end_within_their_budget() {
    if let Some(name) = setting(CASE) {
        return run_alone(&name);
    }
    let mut wrong = Vec::new();
    let mut table = vec![
        "| Input | Size | Time | Memory | Answer | Go: time | Memory | Answer |".to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    for case in cases::all() {
        let Outcome { millis, computed, peak, verdict } = run_apart(&case);
        let slow = computed as f64 > SECONDS * FACTOR * 1000.0;
        if slow || peak > MEMORY || !case.expects(&verdict) {
            wrong.push(format!("{}: {computed} ms, {peak} KiB: {verdict}", case.name));
        }
        let size = (case.request)().encoded_len().div_ceil(1024);
        let shown = if verdict == "answered" { "answered" } else { "fatal result" };
        let memory = peak.div_ceil(1024);
        let (name, go) =
            (case.name, if setting(TABLE).is_some() { original::row(&case) } else { None });
        let go = go.unwrap_or_else(|| "| | | |".to_owned());
        table.push(format!("| {name} | {size} KiB | {millis} ms | {memory} MiB | {shown} {go}"));
    }
    #[allow(clippy::print_stdout)] // for `cargo xtask torture`
    if setting(TABLE).is_some() {
        println!("{}", table.join("\n"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A few seconds in a run of all tests. `cargo xtask torture` goes on for minutes.
#[test]
fn damaged_inputs_that_hurt_end_too() {
    if setting(CASE).is_some() {
        return;
    }
    let cases: Vec<Case> = cases::all().into_iter().filter(|case| !case.heavy).collect();
    let functions: Vec<_> = cases::functions();
    let corpus: Vec<Vec<u8>> = cases.iter().map(|case| (case.request)().encode_to_vec()).collect();
    let corpus: Vec<&[u8]> = corpus.iter().map(Vec::as_slice).collect();
    mutate("torture", &corpus, 5_000, |bytes| {
        let Ok(request) = RunFunctionRequest::decode(bytes) else { return };
        for function in &functions {
            let deadline = Instant::now().checked_add(Duration::from_mins(1));
            let start = Instant::now();
            let _ = call(&**function, request.clone(), &Budget::until(deadline));
            assert!(start.elapsed() < Duration::from_mins(1), "it takes {:?}", start.elapsed());
        }
    });
}

/// Computes an input that hurts again and again, until its caller has gone.
struct Hurt {
    inner: PatchAndTransform,
    /// The calls that compute.
    inside: Arc<AtomicUsize>,
}

impl PureFunction for Hurt {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        PureFunction::run(&self.inner, request)
    }

    fn run_within(
        &self,
        request: RunFunctionRequest,
        budget: &Budget,
    ) -> Result<RunFunctionResponse, Status> {
        if request.input == cases::usual().input {
            return PureFunction::run_within(&self.inner, request, budget);
        }
        self.inside.fetch_add(1, Ordering::SeqCst);
        let ended = loop {
            if let Err(exceeded) = budget.check() {
                break exceeded;
            }
            // A part of it, so that the budget of the call is looked at soon again.
            let again = Budget::until(budget.deadline()).with_steps(1_000_000);
            let _ = PureFunction::run_within(&self.inner, request.clone(), &again);
        };
        self.inside.fetch_sub(1, Ordering::SeqCst);
        Err(ended.into())
    }
}

/// The server stays available: while as many calls as there are turns compute an input that hurts,
/// another caller is answered. When their callers go, they end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_caller_is_answered_meanwhile() {
    use biplane_runner::grpc::{Client, Security};
    const PATIENCE: Duration = Duration::from_mins(10);
    if setting(CASE).is_some() {
        return;
    }
    let inside = Arc::new(AtomicUsize::new(0));
    let function = Hurt { inner: PatchAndTransform::default(), inside: Arc::clone(&inside) };
    let turns = 8;
    let config = biplane_function::serve::Config {
        max_computing: turns,
        max_slow: turns,
        ..biplane_testkit::echo::config()
    };
    let running =
        biplane_function::serve::start(Arc::new(function), config, std::future::pending());
    let running = running.await.unwrap();
    let until = async |wanted: usize| {
        while inside.load(Ordering::SeqCst) != wanted {
            tokio::task::yield_now().await;
        }
    };
    let case = cases::all().into_iter().find(|case| case.name == cases::MANY_SETS).unwrap();
    let mut hostile = tokio::task::JoinSet::new();
    for _ in 0..turns {
        let client = Client::new(running.target(), Security::Plaintext).unwrap();
        let request = (case.request)();
        hostile.spawn(async move { client.call(request, Some(PATIENCE)).await });
    }
    until(turns).await;
    let client = Client::new(running.target(), Security::Plaintext).unwrap();
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let start = Instant::now();
        let quick = client.call(cases::usual(), Some(PATIENCE)).await.unwrap();
        slowest = slowest.max(start.elapsed());
        assert!(quick.results.is_empty(), "{:?}", quick.results);
    }
    assert_eq!(inside.load(Ordering::SeqCst), turns, "the others still compute");
    #[allow(clippy::print_stdout)] // for `cargo xtask torture`
    if setting(TABLE).is_some() {
        println!("Another caller was answered within {} ms.", slowest.as_millis());
    }
    hostile.abort_all();
    until(0).await;
}
