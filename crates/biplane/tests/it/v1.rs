//! Tests the messages and the output of `--output-format=v1` where v1 and v2 differ.

use biplane_model::yaml::parse_documents;
use serde_json::{Value, json};

use crate::fixtures::{composition, function};
use crate::mistakes::{COMPOSITION, fails, render};

const V1: &str = "--output-format=v1";

/// LOAD-11
#[test]
fn context_is_json_and_read_when_the_pipeline_runs() {
    for (value, error) in [
        ("", "unexpected end of JSON input"),
        ("text", "invalid character 'e' in literal true (expecting 'r')"),
        ("2024-01-01", "invalid character '-' after top-level value"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
    ] {
        let error = format!(
            "cannot render composite resource: cannot unmarshal JSON value for context key \"k\": {error}"
        );
        fails(&[("k", value)], &[V1, &format!("--context-values=k={value}")], 1, &error);
        fails(&[("k", value)], &[V1, "--context-files=k=DIR/k"], 1, &error);
    }
    let ran =
        render(&[], &[V1, "-c", "--context-values=k= [1.0, \"\\ud800\", {\"a\":1, \"a\":2}] "]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let documents = parse_documents("stdout", &ran.stdout).unwrap();
    assert_eq!(documents[1].value["fields"], json!({"k": [1, "\u{fffd}", {"a": 2}]}));
}

#[test]
fn files_that_are_missing_are_named_as_the_v1_line_did() {
    let gone = "open DIR/gone: no such file or directory";
    let stream = format!("cannot load YAML stream from file: cannot open file: {gone}");
    for (flag, error) in [
        ("--context-files=k=DIR/gone", format!("cannot read context value for key \"k\": {gone}")),
        ("-e=DIR/gone", format!("cannot load extra resources from \"DIR/gone\": {stream}")),
        (
            "--extra-resources=DIR/gone",
            format!("cannot load extra resources from \"DIR/gone\": {stream}"),
        ),
    ] {
        fails(&[], &[V1, flag], 1, &error);
    }
}

#[test]
fn to_start_functions_is_part_of_the_render() {
    let function = "apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-auto-ready
  annotations: {render.crossplane.io/runtime: Wrong}
spec: {package: p}
";
    let error = "cannot render composite resource: cannot start function runtimes: cannot get runtime for Function \"function-auto-ready\": unsupported \"render.crossplane.io/runtime\" annotation value \"Wrong\" (unknown runtime)";
    fails(&[("functions.yaml", function)], &[V1], 1, error);
    // Context is parsed after that.
    let flags = [V1, "--context-values=k=text"];
    fails(&[("functions.yaml", function)], &flags, 1, error);
}

/// RL-2
#[test]
fn a_function_that_cannot_be_reached_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let function = format!(
        "apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-auto-ready
  annotations:
    render.crossplane.io/runtime: Development
    render.crossplane.io/runtime-development-target: {address}
spec: {{package: p}}
"
    );
    let error = format!(
        "cannot render composite resource: cannot run pipeline step \"ready\": rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = \"transport: Error while dialing: dial tcp {address}: connect: connection refused\""
    );
    fails(&[("functions.yaml", &function)], &[V1, "--timeout=1s"], 1, &error);
}

#[test]
fn a_step_that_is_null_calls_a_function_without_a_name() {
    let composition = format!("{COMPOSITION}  -\n");
    let error = "cannot run pipeline step \"\": unknown Function \"\" - does it exist in your Functions file?";
    let error = format!("cannot render composite resource: {error}");
    fails(&[("composition.yaml", &composition)], &[V1], 1, &error);
}

#[test]
fn legacy_parts_of_a_composition_must_fit_their_types() {
    let composition = COMPOSITION.replace("  pipeline:\n", "  resources: none\n  pipeline:\n");
    let error = "cannot load Composition from \"DIR/composition.yaml\": cannot unmarshal composition resource YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go struct field CompositionSpec.spec.resources of type []v1.ComposedTemplate";
    fails(&[("composition.yaml", &composition)], &[V1], 1, error);
    let ran = render(&[("composition.yaml", &composition)], &[]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

/// Renders a resource with this metadata, over an observed one with these annotations, and returns
/// its metadata.
fn metadata(metadata: &str, observed: &str) -> Value {
    let step = composition!(
        "  - step: compose
    functionRef:
      name: function-dummy
    input:
      response:
        desired:
          resources:
            r: {resource: {apiVersion: v1, kind: ConfigMap, metadata: METADATA}}
"
    );
    let observed = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: seen, annotations: {observed}}}\n"
    );
    let files = [
        ("composition.yaml", &*step.replace("METADATA", metadata)),
        ("functions.yaml", function!("function-dummy", "v0.4.1")),
        ("o.yaml", &observed),
    ];
    let ran = render(&files, &[V1, "-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let documents = parse_documents("stdout", &ran.stdout).unwrap();
    let [_, composed] = documents.as_slice() else { panic!("{}", ran.stdout) };
    composed.value["metadata"].clone()
}

#[test]
fn labels_and_annotations_that_are_no_texts_are_lost() {
    let (composite, name) = ("crossplane.io/composite", "crossplane.io/composition-resource-name");
    for (given, labels) in [
        ("{a: b}", json!({"a": "b", composite: "app"})),
        ("{a: b, c: 1}", json!({composite: "app"})),
        ("{a: b, c: null}", json!({composite: "app"})),
        ("null", json!({composite: "app"})),
        ("text", json!({composite: "app"})),
        ("[]", json!({composite: "app"})),
    ] {
        let found = metadata(&format!("{{labels: {given}, annotations: {given}}}"), "{}");
        assert_eq!(found["labels"], labels, "{given}");
        let mut annotations = labels;
        annotations.as_object_mut().unwrap().remove(composite);
        annotations[name] = "r".into();
        assert_eq!(found["annotations"], annotations, "{given}");
    }
}

#[test]
fn observed_resources_are_known_by_annotations_that_are_texts() {
    for (rest, found) in [("{}", true), ("{a: b}", true), ("{a: null}", false), ("{a: 1}", false)] {
        let rest = rest.trim_matches(['{', '}']);
        let annotations = format!("{{crossplane.io/composition-resource-name: r, {rest}}}");
        let name = metadata("{name: wanted}", &annotations)["name"].clone();
        assert_eq!(name, if found { "seen" } else { "wanted" }, "{rest}");
    }
}
