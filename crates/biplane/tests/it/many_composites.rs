//! Tests many composite resources in one call: one time limit for all, and no more work after a
//! failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use biplane::environment::Environment;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_function::{PureFunction, Registry};
use tonic::Status;

use crate::mistakes::{COMPOSITION, XR};
use crate::support::{Folder, Ran, run_in};

/// A function that takes a while, or fails, and counts how often it was called.
#[derive(Clone, Default)]
struct Busy {
    takes: Duration,
    fails: bool,
    calls: Arc<AtomicUsize>,
}

impl PureFunction for Busy {
    fn run(&self, request: RunFunctionRequest) -> Result<RunFunctionResponse, Status> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.takes);
        if self.fails {
            return Err(Status::internal("has failed"));
        }
        Ok(RunFunctionResponse { desired: request.desired, ..RunFunctionResponse::default() })
    }
}

fn workers() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Renders several composite resources with that function.
fn render(count: usize, function: &Busy, flags: &[&str]) -> Ran {
    let folder = Folder::new();
    let composition = COMPOSITION.replace("function-auto-ready", "function-busy");
    let composition = folder.write("composition.yaml", &composition);
    let xr = |n| XR.replace("name: app", &format!("name: app-{n:03}"));
    let xrs: Vec<_> = (0..count).map(xr).collect();
    let xrs = format!("--xrs={}", folder.write("xrs.yaml", &xrs.join("---\n")));
    let environment = Environment {
        own: Registry::default().with("function-busy", function.clone()),
        ..Environment::default()
    };
    let project = format!("--project-file={}", folder.at("none.yaml").display());
    let line = ["render", &composition, &xrs, &project];
    run_in(&[&line, flags].concat(), "", &environment)
}

#[test]
fn all_of_them_have_one_time_to_end_in() {
    for format in ["--output-format=v1", "--output-format=v2"] {
        // Each takes little time, but all of them together exceed the limit.
        let function = Busy { takes: Duration::from_millis(50), ..Busy::default() };
        let ran = render(workers() * 6, &function, &["--timeout=200ms", format]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
        assert!(ran.stderr.starts_with("biplane: error: XApp \"app-"), "{}", ran.stderr);
        let reasons = ["cannot render composite resource: context deadline exceeded", "Deadline"];
        assert!(reasons.iter().any(|reason| ran.stderr.contains(reason)), "{}", ran.stderr);
        let calls = function.calls.load(Ordering::Relaxed);
        assert!(calls < workers() * 6, "{calls}");
    }
}

/// Its thread stays behind until the process ends.
#[test]
fn a_function_that_computes_for_ever_ends_with_the_time() {
    for format in ["--output-format=v1", "--output-format=v2"] {
        let function = Busy { takes: Duration::MAX, ..Busy::default() };
        let ran = render(1, &function, &["--timeout=300ms", format]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
        assert!(ran.stderr.contains("context deadline exceeded"), "{}", ran.stderr);
        assert_eq!(function.calls.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn none_is_begun_after_one_has_failed() {
    for format in ["--output-format=v1", "--output-format=json"] {
        let function = Busy { fails: true, ..Busy::default() };
        let ran = render(workers() * 10, &function, &[format]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
        // The first failure in input order is reported, not the first in time.
        assert!(ran.stderr.starts_with("biplane: error: XApp \"app-000\": "), "{}", ran.stderr);
        // Each worker stops at its first failure at the latest.
        let calls = function.calls.load(Ordering::Relaxed);
        assert!((1..=workers()).contains(&calls), "{calls}");
    }
}

#[test]
fn the_v1_line_renders_them_in_their_order_too() {
    let ran = render(40, &Busy::default(), &["--output-format=v1"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let found: Vec<_> = ran.stdout.lines().filter_map(|l| l.strip_prefix("  name: ")).collect();
    let names: Vec<_> = (0..40).map(|n| format!("app-{n:03}")).collect();
    assert_eq!(found, names);
}
