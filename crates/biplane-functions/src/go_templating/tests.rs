//! Tests of settings and of what is not in the recordings.

use biplane_function::PureFunction as _;
use biplane_function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::json;
use serde_json::{Value, json};

use super::*;

mod table;

fn request(input: &Value) -> RunFunctionRequest {
    let composite =
        json!({"apiVersion": "example.org/v1", "kind": "XR", "spec": {"region": "here"}});
    let observed = json!({"composite": {"resource": composite}});
    json::from_value(json!({"input": input, "observed": observed})).unwrap()
}

fn inline(template: &str) -> Value {
    json!({"source": "Inline", "inline": {"template": template}})
}

fn message(response: &RunFunctionResponse) -> &str {
    response.results.first().map(|result| result.message.as_str()).unwrap_or_default()
}

fn status(function: &GoTemplating, template: &str) -> Value {
    let document = format!("apiVersion: example.org/v1\nkind: XR\nstatus: {{v: {template}}}\n");
    let response = function.run(request(&inline(&document))).unwrap();
    assert_eq!(message(&response), "", "{template}");
    let composite = response.desired.unwrap().composite.unwrap().resource.unwrap();
    composite.get("status").and_then(|status| status.get("v")).unwrap().clone()
}

/// GT-F2
#[test]
fn settings_apply_where_the_input_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), "# {{ .nope }}").unwrap();
    let function = GoTemplating::default()
        .with_ttl("7s".parse().unwrap())
        .with_default_source("/t.yaml")
        .with_template_root(folder.path())
        .with_default_options("missingkey=zero,missingkey=error");
    let response = function.run(request(&json!({}))).unwrap();
    assert!(message(&response).contains("map has no entry for key \"nope\""), "{response:?}");
    assert_eq!(response.meta.unwrap().ttl.unwrap().seconds, 7);
    let response = function.run(request(&json!({"options": []}))).unwrap();
    assert_eq!(message(&response), "");
    // A source of its own wins.
    let response = function.run(request(&inline("{{ .other }}"))).unwrap();
    assert!(message(&response).contains("\"other\""), "{response:?}");
}

/// Another time and other random numbers.
#[derive(Debug)]
struct Other;
impl World for Other {
    fn now(&self) -> (i64, u32) {
        (0, 0)
    }

    fn seed(&self) -> [u8; 32] {
        [1; 32]
    }
}

/// GT-D8
#[test]
fn rendering_is_reproducible_unless_the_world_changes() {
    let template =
        r#"{{ printf "%s %s %s" (now | date "2006-01-02") (randAlphaNum 8) uuidv4 | quote }}"#;
    let first = status(&GoTemplating::default(), template);
    assert!(first.as_str().unwrap().starts_with("2024-01-01 "), "{first}");
    assert_eq!(status(&GoTemplating::default(), template), first);

    let other = GoTemplating::default().with_world(Arc::new(Other));
    let second = status(&other, template);
    assert!(second.as_str().unwrap().starts_with("1970-01-01 "), "{second}");
    assert_ne!(second.as_str().unwrap().get(11..), first.as_str().unwrap().get(11..));
}

/// GT-X1 to GT-X4
#[test]
fn helpers_answer_as_the_table_says() {
    for (template, want) in [
        ("{{ randomChoice \"a\" }}", json!("a")),
        ("{{ toYaml nil | trim | quote }}", json!("null")),
        ("{{ (getResourceCondition \"T\" (dict)).Status }}", json!("Unknown")),
        ("{{ getCompositeResource . | dig \"spec\" \"region\" \"\" }}", json!("here")),
        ("{{ getComposedResource . \"a\" | toJson }}", json!(null)),
        ("{{ getExtraResources . \"a\" | len }}", json!(0)),
        ("{{ getCredentialData . \"a\" | len }}", json!(0)),
    ] {
        assert_eq!(status(&GoTemplating::default(), template), want, "{template}");
    }
}

#[test]
fn a_failure_is_explained_with_its_line() {
    let function = GoTemplating::default();
    let templates = ["# one\n# two", "# three\n  {{ tooYaml . }}"];
    let input = json!({"source": "Inline", "inline": {"templates": templates}});
    let response = function.run(request(&input)).unwrap();
    let explanation = PureFunction::explain(&function, message(&response)).unwrap();
    assert_eq!(explanation.path, ["inline", "templates", "1"]);
    assert_eq!(explanation.line, 2);
    let advice = explanation.advice.unwrap();
    assert!(advice.contains("There is no `tooYaml`. Did you mean `toYaml`"), "{advice}");
    assert_eq!(PureFunction::explain(&function, "something else"), None);
}
