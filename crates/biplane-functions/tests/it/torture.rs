//! Inputs that hurt: small requests that once took minutes or gigabytes.
//!
//! Each runs in a process of its own, whose time and memory are measured. `cargo xtask torture` runs
//! them in a release build, prints them as a table, and goes on with damaged copies of them.

mod cases;
mod original;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse, Severity};
use biplane_function::{Budget, Status};
use biplane_testkit::mutate;
use prost::Message;

use cases::Case;

/// Names the case in the process that runs it.
const CASE: &str = "BIPLANE_TORTURE_CASE";

/// Set to print a table.
const TABLE: &str = "BIPLANE_TORTURE_TABLE";

/// What a call may take in a release build on an idle machine. Tests are neither.
const SECONDS: f64 = 2.0;
const FACTOR: f64 = 15.0;

/// How long another caller may wait meanwhile.
const ANOTHER: Duration = Duration::from_millis(100);

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

/// Runs one case and prints milliseconds, KiB and the verdict.
#[allow(clippy::print_stdout)] // read by the test that started this process
fn run_alone(name: &str) {
    let case = cases::all().into_iter().find(|case| case.name == name).unwrap();
    let (function, request) = (case.function(), (case.request)());
    let start = Instant::now();
    let answer = call(&*function, request, &Budget::default());
    let millis = start.elapsed().as_millis();
    let verdict: String = verdict(&answer).chars().take(2_000).collect();
    println!("\nTORTURED {millis} {} {}", peak(), verdict.replace('\n', " "));
}

struct Outcome {
    millis: usize,
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
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    Outcome { millis: word().parse().unwrap(), peak: word().parse().unwrap(), verdict: word() }
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
        let Outcome { millis, peak, verdict } = run_apart(&case);
        if millis as f64 > SECONDS * FACTOR * 1000.0 || peak > MEMORY || !case.expects(&verdict) {
            wrong.push(format!("{}: {millis} ms, {peak} KiB: {verdict}", case.name));
        }
        let size = (case.request)().encoded_len().div_ceil(1024);
        let shown = if verdict == "answered" { "answered" } else { "fatal result" };
        let memory = peak.div_ceil(1024);
        let (name, go) =
            (case.name, if setting(TABLE).is_some() { original::row(&case) } else { None });
        let go = go.unwrap_or_else(|| "| | |".to_owned());
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

/// The server stays available: while the inputs that hurt are computed by callers that give up soon,
/// another caller is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_caller_is_answered_meanwhile() {
    use biplane_runner::grpc::{Client, Security};
    if setting(CASE).is_some() {
        return;
    }
    let function: Arc<dyn biplane_function::Function> =
        Arc::new(biplane_functions::patch_and_transform::PatchAndTransform::default());
    let config = biplane_testkit::echo::config();
    let running = biplane_function::serve::start(function, config, std::future::pending());
    let running = running.await.unwrap();
    let case = cases::all().into_iter().find(|case| case.name == cases::MANY_SETS).unwrap();
    let mut hostile = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = Client::new(running.target(), Security::Plaintext).unwrap();
        let request = (case.request)();
        hostile.spawn(async move { client.call(request, Some(Duration::from_secs(1))).await });
    }
    let client = Client::new(running.target(), Security::Plaintext).unwrap();
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let start = Instant::now();
        let quick = client.call(cases::usual(), Some(Duration::from_mins(1))).await.unwrap();
        slowest = slowest.max(start.elapsed());
        assert!(quick.results.is_empty(), "{:?}", quick.results);
    }
    #[allow(clippy::print_stdout)] // for `cargo xtask torture`
    if setting(TABLE).is_some() {
        println!("Another caller was answered within {} ms.", slowest.as_millis());
    }
    assert!(slowest < ANOTHER.mul_f64(FACTOR), "another caller waited for {slowest:?}");
    for answer in hostile.join_all().await {
        let verdict = verdict(&answer);
        assert!(answer.is_err() || case.expects(&verdict), "{verdict}");
    }
}
