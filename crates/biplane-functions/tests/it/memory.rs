//! Tests that the memory use of functions is bounded over many calls.

use std::ops::Range;
use std::process::Command;

use biplane_function::PureFunction;
use biplane_function::v1::RunFunctionRequest;
use biplane_functions::auto_ready::AutoReady;
use biplane_functions::environment_configs::EnvironmentConfigs;
use biplane_functions::go_templating::GoTemplating;
use biplane_functions::patch_and_transform::PatchAndTransform;
use biplane_proto::json;
use serde_json::{Value, json};

/// Set in the process that makes the calls.
const ALONE: &str = "BIPLANE_TEST_ALONE";

/// The growth that is attributed to chance.
const SLACK: usize = 2 << 20;

fn request(value: Value) -> RunFunctionRequest {
    json::from_value(value).unwrap()
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn resource(text: &str) -> Value {
    json!({"apiVersion": "acme.example/v1", "kind": "Thing", "text": text})
}

fn patch(text: &str) -> RunFunctionRequest {
    let pattern = format!("^{text}$");
    request(json!({
        "observed": {"composite": {"resource": {"spec": {"a": text}}}},
        "input": {"resources": [{"name": "r", "base": resource(text), "patches": [{
            "fromFieldPath": "spec.a",
            "transforms": [{"type": "string", "string": {"type": "Regexp", "regexp": {"match": pattern}}}],
        }]}]},
    }))
}

fn judge(text: &str) -> RunFunctionRequest {
    let rule = format!("object.text == '{text}'");
    request(json!({
        "input": {"celHealthCheckCustomization": {"acme.example_v1_Thing": rule}},
        "observed": {"resources": {"r": {"resource": resource(text)}}},
        "desired": {"resources": {"r": {"resource": {}}}},
    }))
}

fn gather(text: &str) -> RunFunctionRequest {
    let items = json!({"items": [{"resource": {"data": {"k": text}}}]});
    request(json!({
        "input": {"spec": {"environmentConfigs": [{"ref": {"name": text}}]}},
        "requiredResources": {"environment-config-0": items},
    }))
}

fn template(text: &str) -> RunFunctionRequest {
    let name = "gotemplating.fn.crossplane.io/composition-resource-name";
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations: {{{name}: {text}}}\n\
         data: {{{{ dict \"a\" .observed | toJson }}}}\n{{{{ $d := dict }}}}{{{{ $_ := set $d \"{text}\" 1 }}}}"
    );
    request(json!({
        "input": {"source": "Inline", "inline": {"template": template}},
        "observed": {"composite": {"resource": resource(text)}},
    }))
}

/// Makes calls that all differ, so that leaks add up. The first calls fill the caches.
fn check(function: &impl PureFunction, ask: fn(&str) -> RunFunctionRequest, room: usize) {
    let call = |numbers: Range<usize>| {
        for n in numbers {
            function.run(ask(&format!("text-{n}"))).unwrap();
        }
    };
    call(0..2 * room);
    let before = resident();
    call(2 * room..6 * room);
    let after = resident();
    assert!(after < before + SLACK, "grew from {before} to {after} bytes");
}

#[test]
fn memory_does_not_grow_with_the_number_of_calls() {
    #[allow(clippy::disallowed_methods)] // distinguishes the two processes of this test
    if std::env::var_os(ALONE).is_none() {
        // Tests share a process, and other tests would be measured too.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "memory::memory_does_not_grow_with_the_number_of_calls"])
            .args(["--nocapture"])
            .env(ALONE, "yes")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    check(&PatchAndTransform::default(), patch, 500);
    let gated = AutoReady::default().with_feature_gates("AllAlpha=true").unwrap();
    check(&gated, judge, 1000);
    check(&EnvironmentConfigs, gather, 1000);
    check(&GoTemplating::default(), template, 1000);
}
