//! Measures the cost of a whole process: `internal render` of ten resources through two functions
//! over gRPC, for Biplane and, if `BIPLANE_UPSTREAM_BIN` names a folder with it, upstream's
//! `crossplane`.
//!
//! The functions run in this process and are the same for both. Their own duration is measured by
//! calling them directly, and is printed separately.

#![allow(clippy::disallowed_methods)] // benchmarks are configured by the environment
#![allow(clippy::print_stdout)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use biplane_function::serve::{Config, start};
use biplane_proto::function::v1::RunFunctionRequest;
use biplane_proto::render::v1alpha1::RenderRequest;
use biplane_runner::grpc::Security;
use biplane_runner::{Call, FunctionRunner, GrpcRunner};
use prost::Message;
use serde_json::json;

const RUNS: u32 = 200;
/// How many runs are measured for memory.
const WATCHED: u32 = 20;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let target = runtime.block_on(async {
        let config = Config {
            address: "127.0.0.1:0".into(),
            insecure: true,
            metrics_address: None,
            ..Config::default()
        };
        let dummy =
            biplane_functions::registry().get("function-dummy").expect("function-dummy").clone();
        let running = start(dummy, config, std::future::pending()).await.expect("a server");
        running.target().to_owned()
    });
    let request = request(&target);
    let functions = runtime.block_on(functions_alone(&target));
    println!("functions alone, two calls: {:.2} ms", millis(functions));
    let ours = measure("biplane", Path::new(env!("CARGO_BIN_EXE_biplane")), &request, functions);
    #[allow(clippy::disallowed_methods)]
    // A folder that the user names, not a setting of the program.
    match std::env::var_os("BIPLANE_UPSTREAM_BIN")
        .map(|folder| PathBuf::from(folder).join("crossplane"))
    {
        None => println!("BIPLANE_UPSTREAM_BIN is not set: no side by side"),
        Some(program) => {
            let theirs = measure("upstream", &program, &request, functions);
            println!(
                "ratio: {:.1} times faster, {:.2} of the memory",
                theirs.net.as_secs_f64() / ours.net.as_secs_f64(),
                ours.memory as f64 / theirs.memory as f64
            );
        }
    }
}

struct Measured {
    /// Without the time spent in functions.
    net: Duration,
    /// The peak memory of any process, in KiB.
    memory: u64,
}

fn measure(name: &str, program: &Path, request: &[u8], functions: Duration) -> Measured {
    let mut times: Vec<_> = (0..RUNS).map(|_| once(program, request)).collect();
    times.sort();
    let median = times[times.len() / 2];
    let memory = (0..WATCHED).map(|_| peak(program, request)).max().unwrap_or_default();
    let net = median.saturating_sub(functions);
    println!(
        "{name}: median {:.2} ms of {RUNS} runs, {:.2} ms net of the functions, at most {:.1} MiB",
        millis(median),
        millis(net),
        memory as f64 / 1024.0
    );
    Measured { net, memory }
}

fn spawn(program: &Path, request: &[u8]) -> Child {
    let mut child = Command::new(program)
        .args(["internal", "render"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(request).expect("the program reads");
    child
}

fn finish(child: Child) {
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success() && !output.stdout.is_empty(), "the program failed");
}

fn once(program: &Path, request: &[u8]) -> Duration {
    let begin = Instant::now();
    finish(spawn(program, request));
    begin.elapsed()
}

/// The peak memory of a process in KiB, as reported by the kernel while the process runs. The value
/// after its exit would include this process, because the child starts as a copy of it.
fn peak(program: &Path, request: &[u8]) -> u64 {
    let mut child = spawn(program, request);
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("a process of ours").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let value = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let value = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
        peak = value.unwrap_or(peak);
    }
    finish(child);
    peak
}

/// A request with a step that returns ten resources, and a step that adds nothing.
fn request(target: &str) -> Vec<u8> {
    let resources: serde_json::Map<_, _> = (0..10)
        .map(|i| {
            let resource = json!({
                "apiVersion": "example.org/v1", "kind": "Bucket",
                "spec": {"forProvider": {"region": "eu-west-1", "size": i}},
            });
            (format!("bucket-{i}"), json!({"resource": resource, "ready": "READY_TRUE"}))
        })
        .collect();
    let step = |name: &str, response: serde_json::Value| {
        json!({
            "step": name, "functionRef": {"name": format!("function-{name}")},
            "input": {"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": response},
        })
    };
    let request: RenderRequest = serde_json::from_value(json!({"composite": {
        "compositeResource": {"apiVersion": "example.org/v1", "kind": "XBench", "metadata": {"name": "bench"}},
        "composition": {"metadata": {"name": "bench"}, "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XBench"},
            "mode": "Pipeline",
            "pipeline": [
                step("first", json!({"desired": {"resources": resources}})),
                step("second", json!({})),
            ],
        }},
        "functions": [
            {"name": "function-first", "address": target},
            {"name": "function-second", "address": target},
        ],
    }}))
    .expect("a request");
    request.encode_to_vec()
}

/// The median time of two calls over one connection.
async fn functions_alone(target: &str) -> Duration {
    let runner = Arc::new(GrpcRunner::new(target, Security::Plaintext).expect("a target"));
    let call = Call::default();
    let input =
        json!({"apiVersion": "dummy.fn.crossplane.io/v1beta1", "kind": "Response", "response": {}});
    let request: RunFunctionRequest =
        serde_json::from_value(json!({"input": input})).expect("a request");
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begin = Instant::now();
        for _ in 0..2 {
            runner.run(&call, request.clone()).await.expect("a response");
        }
        times.push(begin.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
