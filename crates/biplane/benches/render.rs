//! Measures the cost of `biplane render` for a user: a process that reads files and prints
//! documents.
//!
//! It renders ten resources through two functions, and 1,000 composite resources in one call. If
//! `BIPLANE_UPSTREAM_BIN` names a folder with upstream's `crossplane-cli` and `crossplane` (its
//! engine), they render the same files. Their functions already run in this process; ours run in
//! the process that is measured.

#![allow(clippy::disallowed_methods)] // benchmarks are configured by the environment
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use biplane_function::serve::{Config, start};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::json;

const RUNS: usize = 200;
const RUNS_OF_MANY: usize = 5;
const UPSTREAM_RUNS: usize = 20;
const MANY: usize = 1000;
/// The first measurement of upstream, for machines without it.
const RECORDED: Measured = Measured { time: Duration::from_millis(157), memory: 93 * 1024 };

/// The goals: speedups and peak memory.
const ONE_IS_FASTER: f64 = 25.0;
const MANY_ARE_FASTER: f64 = 500.0;
const MEMORY: i64 = 30 * 1024;

#[derive(Clone, Copy)]
struct Measured {
    time: Duration,
    /// The peak memory of any process so far, in KiB.
    memory: i64,
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    write_files(folder.path(), &runtime.block_on(serve()));
    let at = |name: &str| folder.path().join(name).display().to_string();
    let ours = Path::new(env!("CARGO_BIN_EXE_biplane"));

    let arguments = ["render", &at("xr.yaml"), &at("composition.yaml"), &at("functions.yaml")];
    let (one, printed) = measure(RUNS, ours, &arguments);
    report("biplane, 10 resources, 2 functions", RUNS, one);
    let xrs = format!("--xrs={}", at("xrs"));
    let arguments = ["render", &at("composition.yaml"), &at("functions.yaml"), &xrs];
    let (many, _) = measure(RUNS_OF_MANY, ours, &arguments);
    report(&format!("biplane, {MANY} composite resources"), RUNS_OF_MANY, many);

    let upstream = upstream().map(|bin| {
        let binary = format!("--crossplane-binary={}", bin.join("crossplane").display());
        let [xr, composition, functions] = ["xr.yaml", "composition.yaml", "served.yaml"].map(at);
        let arguments = ["composition", "render", &xr, &composition, &functions, &binary];
        let (theirs, also) = measure(UPSTREAM_RUNS, &bin.join("crossplane-cli"), &arguments);
        report("upstream, 10 resources, 2 functions that run already", UPSTREAM_RUNS, theirs);
        println!("both print the same: {}", printed == also);
        theirs
    });
    if upstream.is_none() {
        println!("BIPLANE_UPSTREAM_BIN is not set: compared with recorded figures of upstream's");
        report("upstream, as recorded", UPSTREAM_RUNS, RECORDED);
    }
    let theirs = upstream.unwrap_or(RECORDED);
    let times = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    let all = theirs.time.saturating_mul(u32::try_from(MANY).unwrap_or(u32::MAX));
    goal("one call is faster", times(theirs.time, one.time), ONE_IS_FASTER);
    println!("{MANY} calls of upstream's, extrapolated: {:.1} s", all.as_secs_f64());
    goal("many in one call are faster", times(all, many.time), MANY_ARE_FASTER);
    let mib = |kib: i64| kib as f64 / 1024.0;
    let met = if one.memory <= MEMORY { "met" } else { "missed" };
    println!("memory: {:.1} MiB (goal at most {:.0} MiB: {met})", mib(one.memory), mib(MEMORY));
}

fn goal(what: &str, times: f64, goal: f64) {
    let met = if times >= goal { "met" } else { "missed" };
    println!("{what}: {times:.0} times (goal at least {goal:.0}: {met})");
}

fn report(what: &str, runs: usize, measured: Measured) {
    println!(
        "{what}: median {:.2} ms of {runs} runs, at most {:.1} MiB",
        measured.time.as_secs_f64() * 1000.0,
        measured.memory as f64 / 1024.0
    );
}

#[allow(clippy::disallowed_methods)] // a folder that the user names, not a setting of the program
fn upstream() -> Option<PathBuf> {
    std::env::var_os("BIPLANE_UPSTREAM_BIN").map(PathBuf::from)
}

/// The median measurement, and the output.
fn measure(runs: usize, program: &Path, arguments: &[&str]) -> (Measured, Vec<u8>) {
    let mut printed = Vec::new();
    let mut times: Vec<_> = (0..runs)
        .map(|_| {
            let begin = Instant::now();
            let child = Command::new(program)
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn();
            let output = child.and_then(std::process::Child::wait_with_output).expect("it starts");
            let took = begin.elapsed();
            assert!(output.status.success() && !output.stdout.is_empty(), "it failed");
            printed = output.stdout;
            took
        })
        .collect();
    times.sort();
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage").max_rss();
    (Measured { time: times[times.len() / 2], memory }, printed)
}

/// The functions of the pipeline over gRPC, each with its target.
async fn serve() -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    for name in ["function-patch-and-transform", "function-auto-ready"] {
        let config = Config {
            address: "127.0.0.1:0".into(),
            insecure: true,
            metrics_address: None,
            ..Config::default()
        };
        let function = biplane_functions::registry().get(name).expect("in the box").clone();
        let running = start(function, config, std::future::pending()).await.expect("a server");
        all.push((name, running.target().to_owned()));
    }
    all
}

fn write_files(folder: &Path, served: &[(&str, String)]) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
    let xr = |name: &str| {
        format!(
            "apiVersion: example.org/v1\nkind: XBench\nmetadata:\n  name: {name}\nspec:\n  region: eu-west-1\n  size: 3\n"
        )
    };
    write("xr.yaml", &xr("bench"));
    std::fs::create_dir(folder.join("xrs")).expect("a folder");
    for number in 0..MANY {
        let name = format!("bench-{number:04}");
        write(&format!("xrs/{name}.yaml"), &xr(&name));
    }
    let mut composition = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata:\n  name: bench\nspec:\n  compositeTypeRef:\n    apiVersion: example.org/v1\n    kind: XBench\n  mode: Pipeline\n  pipeline:\n  - step: compose\n    functionRef:\n      name: function-patch-and-transform\n    input:\n      apiVersion: pt.fn.crossplane.io/v1beta1\n      kind: Resources\n      resources:\n".to_owned();
    for number in 0..10 {
        let _ = write!(
            composition,
            "      - name: bucket-{number}\n        base:\n          apiVersion: example.org/v1\n          kind: Bucket\n          spec:\n            forProvider:\n              number: {number}\n        patches:\n        - type: FromCompositeFieldPath\n          fromFieldPath: spec.region\n          toFieldPath: spec.forProvider.region\n        - type: FromCompositeFieldPath\n          fromFieldPath: spec.size\n          toFieldPath: spec.forProvider.size\n"
        );
    }
    composition += "  - step: ready\n    functionRef:\n      name: function-auto-ready\n";
    write("composition.yaml", &composition);
    let function = |name: &str, annotations: serde_json::Value| {
        json!({
            "apiVersion": "pkg.crossplane.io/v1", "kind": "Function",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"package": format!("xpkg.crossplane.io/crossplane-contrib/{name}:v1")},
        })
        .to_string()
    };
    let in_process: Vec<_> = served.iter().map(|(name, _)| function(name, json!({}))).collect();
    write("functions.yaml", &in_process.join("\n---\n"));
    let served: Vec<_> = served
        .iter()
        .map(|(name, target)| {
            let annotations = json!({
                "render.crossplane.io/runtime": "Development",
                "render.crossplane.io/runtime-development-target": target,
            });
            function(name, annotations)
        })
        .collect();
    write("served.yaml", &served.join("\n---\n"));
}
