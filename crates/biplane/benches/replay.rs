//! Measures how long it takes to ask a function in the box 2,000 distinct requests again, from a store.

#![allow(clippy::print_stdout, clippy::unwrap_used)] // a tool that prints

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use biplane::environment::Environment;
use biplane_console::{Progress, Stderr, Streams};
use serde_json::json;

const REQUESTS: u32 = 2_000;

/// The goal, in seconds.
const GOAL: f64 = 10.0;

/// A run of one step that composes five resources by patches.
fn run_of(number: u32) -> String {
    let name = format!("xr-{number}");
    let patch = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "spec.size"});
    let resource = |at: u32| {
        json!({"name": format!("bucket-{at}"), "patches": [patch, patch], "base": {
            "apiVersion": "s3.example.org/v1", "kind": "Bucket", "spec": {"at": at, "text": "x".repeat(500)},
        }})
    };
    let input = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
        "resources": (0..5).map(resource).collect::<Vec<_>>()});
    let composite = json!({"apiVersion": "example.org/v1", "kind": "Store",
        "metadata": {"name": name, "uid": format!("{number:08x}-0000-4000-8000-000000000000")},
        "spec": {"size": number}});
    let observed = json!({"composite": {"resource": composite}});
    let meta = json!({
        "timestamp": "2026-11-16T12:00:00Z", "functionName": "function-patch-and-transform", "stepName": "compose",
        "traceId": format!("{number:08x}-0000-4000-8000-000000000000"),
        "spanId": format!("{number:08x}-0000-4000-8000-000000000001"),
        "compositionMeta": {"compositionName": "stores", "compositeResourceName": name,
            "compositeResourceApiVersion": "example.org/v1", "compositeResourceKind": "Store"},
    });
    let request = json!({"observed": observed, "desired": {}, "input": input});
    // What was answered is not what it answers, so that every answer is compared to its end.
    let resource = |at: u32| {
        let body = json!({"apiVersion": "s3.example.org/v1", "kind": "Bucket", "spec": {"size": 0, "at": at}});
        (format!("bucket-{at}"), json!({"resource": body}))
    };
    let resources: serde_json::Map<String, serde_json::Value> = (0..5).map(resource).collect();
    let response = json!({"desired": {"resources": resources}});
    let mut text = String::new();
    for (half, payload) in [("REQUEST", request), ("RESPONSE", response)] {
        let line = json!({"type": half, "meta": meta, "payload": payload});
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn biplane(arguments: &[&str]) -> (u8, String) {
    let words: Vec<OsString> =
        std::iter::once(&"biplane").chain(arguments).map(OsString::from).collect();
    let (mut stdout, stderr) = (Vec::new(), Arc::new(Mutex::new(Vec::new())));
    let mut streams = Streams {
        stdin: Box::new(std::io::empty()),
        stdout: &mut stdout,
        stderr: Stderr::to(Arc::clone(&stderr)),
        verbose: false,
        progress: Progress::default(),
    };
    let exit = biplane::cli::run_in(words, &Environment::default(), &mut streams);
    let said = String::from_utf8(stderr.lock().unwrap().clone()).unwrap();
    (exit, String::from_utf8(stdout).unwrap() + &said)
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("runs.jsonl");
    std::fs::write(&lines, (0..REQUESTS).map(run_of).collect::<String>()).unwrap();
    let store = format!("--store={}", folder.path().join("recorder.db").display());
    let (exit, said) = biplane(&["inspector", "import", lines.to_str().unwrap(), &store]);
    assert_eq!(exit, 0, "{said}");
    let begun = Instant::now();
    let function = "--function=function-patch-and-transform";
    let (exit, said) = biplane(&["inspector", "replay", function, &store]);
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(exit, 3, "{said}");
    assert!(
        said.contains(&format!("{REQUESTS} distinct requests of {REQUESTS} recorded calls: ")),
        "{said}"
    );
    let verdict = if took <= GOAL { "ok" } else { "MISSED" };
    println!(
        "{REQUESTS} distinct requests replayed in process: {took:.2} s, goal {GOAL} s, {verdict}"
    );
}
