//! Compares the built-in functions with the upstream functions of the same names: in process,
//! served by `biplane function serve`, and, if `BIPLANE_UPSTREAM_BIN` names a folder with them,
//! upstream's binaries. All get the same requests, over gRPC from the same client.
//!
//! Also measures whether memory grows with the number of calls, which are a million, or `CALLS`.
//! `-- speed` and `-- memory` run one of the two, and names of functions after them only those.

#![allow(clippy::disallowed_methods)] // benchmarks are configured by the environment
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use biplane_function::Function;
use biplane_function::v1::RunFunctionRequest;
use biplane_runner::grpc::{Client, Security};
use serde_json::json;
use tokio::runtime::Runtime;

#[path = "../../biplane-functions/benches/support/requests.rs"]
mod requests;

#[global_allocator] // the same allocator as in the program
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 500;
const CALLS: usize = 3000;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_named = |wanted: &String| wanted.starts_with("function-");
    let is = |wanted: &String, what: &str| wanted == what;
    let all = wanted.iter().all(is_named);
    let wants = |what: &str| all || wanted.iter().any(|wanted| is(wanted, what));
    let wants_function =
        |name: &str| !wanted.iter().any(is_named) || wanted.iter().any(|wanted| is(wanted, name));
    if wants("speed") {
        for (name, request) in [
            ("function-patch-and-transform", requests::patches()),
            ("function-auto-ready", requests::resources(&json!({}))),
            ("function-environment-configs", requests::configs()),
            ("function-go-templating", requests::templates()),
        ] {
            if wants_function(name) {
                runtime.block_on(compare(name, &request));
            }
        }
    }
    if wants("memory") {
        for name in NAMES.into_iter().filter(|name| wants_function(name)) {
            runtime.block_on(calls_in_process(name));
            for callers in [4, 100] {
                runtime.block_on(calls_over_the_wire(name, callers));
            }
        }
    }
}

fn function(name: &str) -> Arc<dyn Function> {
    Arc::clone(biplane_functions::registry().get(name).expect("it is in the box"))
}

async fn compare(name: &str, request: &RunFunctionRequest) {
    let function = function(name);
    let here = measure(async || {
        black_box(function.run(request.clone()).await).expect("an answer");
    })
    .await;
    println!("{name}\n  in process        {:>8.1} µs", micros(here));
    let ours = Served::start(ours(), &["function", "serve", name]);
    let served = measure(async || ours.call(request).await).await;
    drop(ours);
    println!("  served            {:>8.1} µs", micros(served));
    let Some(program) = theirs(name) else {
        println!("  BIPLANE_UPSTREAM_BIN does not name a folder with upstream's: no side by side");
        return;
    };
    let theirs = Served::start(&program, &[]);
    let upstream = measure(async || theirs.call(request).await).await;
    let ratio = |ours: Duration| upstream.as_secs_f64() / ours.as_secs_f64();
    println!("  upstream, served  {:>8.1} µs", micros(upstream));
    println!("  ratio: {:.0} times faster in process, {:.1} served", ratio(here), ratio(served));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The median duration of many sequential calls.
async fn measure(call: impl AsyncFn()) -> Duration {
    for _ in 0..WARM_UP {
        call().await;
    }
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        call().await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times[CALLS / 2]
}

fn ours() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_biplane"))
}

fn theirs(name: &str) -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods)]
    // A folder that the user names, not a setting of the program.
    let folder = std::env::var_os("BIPLANE_UPSTREAM_BIN")?;
    Some(PathBuf::from(folder).join(name)).filter(|program| program.exists())
}

/// A function in a separate process.
struct Served {
    process: Child,
    client: Client,
}

impl Served {
    fn start(program: &Path, arguments: &[&str]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("a port").to_string();
        drop(listener);
        let process = Command::new(program)
            .args(arguments)
            .args(["--insecure", "--address", &address])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let client = Client::new(&address, Security::Plaintext).expect("a client");
        Self { process, client }
    }

    async fn call(&self, request: &RunFunctionRequest) {
        // The first call waits until the server is running.
        let answer = self.client.call(request.clone(), Some(Duration::from_secs(30))).await;
        black_box(answer).expect("an answer");
    }

    fn resident(&self) -> usize {
        resident(&self.process.id().to_string())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The resident memory of a process, in bytes.
fn resident(process: &str) -> usize {
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or_default();
    pages * 4096
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The numbers of calls after which memory is measured, as parts of all. During the first half of
/// them, all caches, such as that of prepared inputs, must reach their final size.
const SAMPLES: [f64; 6] = [0.01, 0.05, 0.1, 0.2, 0.5, 1.0];

fn samples() -> [usize; 6] {
    let calls = std::env::var("CALLS").ok().map(|calls| calls.parse().expect("a number of calls"));
    SAMPLES.map(|part| (part * calls.unwrap_or(1e6)) as usize)
}
/// The growth that an allocator may show by chance.
const SLACK: f64 = 4.0;

/// Prints the samples and reports whether the second half of them shows growth.
fn judge(what: &str, samples: &[usize]) {
    let (early, late) = samples.split_at(samples.len() / 2);
    let most = |samples: &[usize]| mib(samples.iter().copied().max().unwrap_or_default());
    let shown: Vec<String> = samples.iter().map(|bytes| format!("{:.1}", mib(*bytes))).collect();
    println!("{what}: {} MiB", shown.join(", "));
    let grown = most(late) - most(early);
    assert!(grown < SLACK, "{what}: grew by {grown:.1} MiB and may never stop");
}

/// A unique request.
fn small(name: &str, n: usize) -> RunFunctionRequest {
    let resource = json!({"apiVersion": "acme.example/v1", "kind": "Thing", "status": {"n": n}});
    let observed =
        json!({"composite": {"resource": resource}, "resources": {"r": {"resource": resource}}});
    let input = match name {
        "function-patch-and-transform" => {
            json!({"resources": [{"name": "r", "base": resource, "patches": [
            {"fromFieldPath": "status.n", "toFieldPath": "spec.n", "transforms": [
                {"type": "string", "string": {"type": "Regexp", "regexp": {"match": format!("^{n}")}}}]}]}]})
        }
        "function-auto-ready" => json!({"ttl": format!("{n}s")}),
        "function-go-templating" => {
            let template = format!("# {{{{ {n} }}}} {{{{ toYaml .observed | len }}}}");
            json!({"source": "Inline", "inline": {"template": template}})
        }
        _ => json!({"spec": {"environmentConfigs": [{"ref": {"name": n.to_string()}}]}}),
    };
    let value = json!({
        "input": input, "observed": observed, "desired": {"resources": {"r": {"resource": {}}}},
        "requiredResources": {"environment-config-0": {"items": [{"resource": {"data": {"n": n}}}]}},
    });
    serde_json::from_value(value).expect("the request is one")
}

const NAMES: [&str; 4] = [
    "function-patch-and-transform",
    "function-auto-ready",
    "function-environment-configs",
    "function-go-templating",
];

/// Calls a function, with a unique request every time.
async fn calls_in_process(name: &str) {
    let function = function(name);
    let mut sizes = Vec::new();
    let mut from = 0;
    for to in samples() {
        for n in from..to {
            black_box(function.run(small(name, n)).await).expect("an answer");
        }
        sizes.push(resident("self"));
        from = to;
    }
    judge(&format!("{name}, in process"), &sizes);
}

/// The same over gRPC, with that many concurrent callers.
async fn calls_over_the_wire(name: &'static str, callers: usize) {
    let served = Arc::new(Served::start(ours(), &["function", "serve", name]));
    let mut sizes = Vec::new();
    let mut from = 0;
    for to in samples() {
        let callers: Vec<_> = (0..callers)
            .map(|caller| {
                let served = Arc::clone(&served);
                tokio::spawn(async move {
                    for n in (from..to).skip(caller).step_by(callers) {
                        served.call(&small(name, n)).await;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await.expect("answers");
        }
        sizes.push(served.resident());
        from = to;
    }
    judge(&format!("{name}, served to {callers}"), &sizes);
}
