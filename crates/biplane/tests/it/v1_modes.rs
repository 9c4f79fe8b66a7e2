//! Replays recorded Compositions of mode Resources and with environments through the command line,
//! and tests what the command line says about them.

use biplane_model::object::overlay;
use biplane_model::yaml::{parse_documents, parse_one};
use biplane_testkit::Recording;
use serde_json::{Value, json};

use crate::support::{Folder, Ran, run, run_on};

/// Renders a case as the v1 line composed it.
fn render(area: &str, case: &Recording, extra: &[&str]) -> Ran {
    let folder = Folder::new();
    for (name, text) in &case.files {
        let lines = text.lines().filter(|line| !line.contains("FUNCTION_TARGET/"));
        let text: String = lines.map(|line| line.to_owned() + "\n").collect();
        folder.write(name, &text.replace("runtime: Development", "runtime: InProcess"));
    }
    let file = |name: &str| folder.at(name).to_str().unwrap().to_owned();
    let mut arguments = vec!["render".to_owned(), file("xr.yaml"), file("composition.yaml")];
    if case.text("functions.yaml").is_some() {
        arguments.push(file("functions.yaml"));
    }
    for (flag, name) in [
        ("--observed-resources", "observed.yaml"),
        ("--required-resources", "required.yaml"),
        ("--xrd", "xrd.yaml"),
    ] {
        if case.text(name).is_some() {
            arguments.push(format!("{flag}={}", file(name)));
        }
    }
    arguments.push("--output-format=v1".to_owned());
    if area == "nativeenv" {
        arguments.push("--enable-environment-configs".to_owned());
    }
    arguments.extend(extra.iter().map(|&flag| flag.to_owned()));
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    run(&arguments)
}

fn documents(text: &str) -> Vec<Value> {
    parse_documents("stdout", text).unwrap().into_iter().map(|document| document.value).collect()
}

/// Replaces names that were generated, of which a recording has only the prefix.
fn mask(value: &mut Value, generated: &[(String, String)]) {
    match value {
        Value::String(text) if generated.iter().any(|(_, name)| name == text) => {
            "GENERATED_NAME".clone_into(text);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, generated)),
        Value::Object(map) => map.values_mut().for_each(|item| mask(item, generated)),
        _ => {}
    }
}

fn complaint(area: &str, case: &Recording) -> Option<String> {
    let expected = parse_one("expected.yaml", case.text("expected.yaml").unwrap()).unwrap().value;
    let ran = render(area, case, &["--include-function-results", "--summary"]);
    if let Some(wanted) = expected["error"].as_str() {
        let fails = ran.exit == 1 && ran.stderr.contains(wanted);
        return (!fails).then(|| format!("{ran:?}"));
    }
    if ran.exit != 0 {
        return Some(format!("failed: {}", ran.stderr));
    }
    let (results, mut objects): (Vec<_>, Vec<_>) =
        documents(&ran.stdout).into_iter().partition(|document| document["kind"] == "Result");
    let wanted = expected["composed"].as_array().cloned().unwrap_or_default();
    let generated: Vec<(String, String)> = wanted
        .iter()
        .zip(objects.iter().skip(1))
        .filter(|(wanted, _)| wanted["metadata"]["name"] == "GENERATED_NAME")
        .map(|(_, ours)| {
            let text = |key: &str| ours["metadata"][key].as_str().unwrap().to_owned();
            (text("generateName"), text("name"))
        })
        .collect();
    if let Some((prefix, name)) = generated.iter().find(|(prefix, name)| !name.starts_with(prefix))
    {
        return Some(format!("{name} does not start with {prefix}"));
    }
    for object in &mut objects {
        mask(object, &generated);
    }
    let mut all = vec![expected["composite"].clone()];
    all.extend(wanted);
    // What is not decided stays as it is, whether it is shown or not.
    let input = parse_one("xr.yaml", case.text("xr.yaml").unwrap()).unwrap().value;
    let whole = |decided: &Value| {
        let (input, decided) = (input.as_object().unwrap(), decided.as_object().unwrap());
        Value::Object(overlay(input.clone(), decided.clone()))
    };
    for composite in [&mut objects[0], &mut all[0]] {
        *composite = whole(composite);
    }
    if objects != all {
        return Some(format!("printed\n{}\ninstead of\n{:#}", ran.stdout, json!(all)));
    }
    let mut rest = results.iter();
    for event in expected["events"].as_array().into_iter().flatten() {
        let is = |result: &Value| {
            result["severity"] == event["type"]
                && result["reason"] == event["reason"]
                && result["message"] == event["message"]
        };
        if !rest.any(is) {
            return Some(format!("{event} is not among {results:#?}"));
        }
    }
    let deletes = ran.stderr.lines().filter(|line| line.starts_with("delete ")).count();
    let deleted = expected["deleted"].as_array().map_or(0, Vec::len);
    (deletes != deleted).then(|| format!("deleted {deletes} instead of {deleted}: {}", ran.stderr))
}

fn check(area: &str, count: usize) {
    let cases = Recording::load_area(area);
    assert_eq!(cases.len(), count);
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|case| Some(format!("{area}/{}: {}", case.name, complaint(area, case)?)))
        .collect();
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn templates_render_as_recorded() {
    check("resources", 27);
}

#[test]
fn environments_render_as_recorded() {
    check("nativeenv", 24);
}

const XR: &str = "apiVersion: example.org/v1
kind: XApp
metadata: {name: shop}
spec: {stage: prod}
";

const TEMPLATES: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: app}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XApp}
  mode: Resources
  resources:
  - name: settings
    base: {apiVersion: example.org/v1, kind: Settings}
    patches:
    - {fromFieldPath: spec.stage, toFieldPath: spec.stage}
";

fn render_templates(flags: &[&str]) -> Ran {
    let files = [("xr.yaml", XR), ("composition.yaml", TEMPLATES)];
    run_on(&files, &[&["render", "DIR/xr.yaml", "DIR/composition.yaml"], flags].concat())
}

#[test]
fn templates_are_deprecated_and_rendered_by_the_v1_line_only() {
    let ran = render_templates(&["--output-format=v1"]);
    let warning = "biplane: warning: Composition \"app\" is of mode Resources, which is deprecated: use mode Pipeline with function-patch-and-transform\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning));
    let printed = documents(&ran.stdout);
    assert_eq!(printed[1]["spec"], json!({"stage": "prod"}));

    // RX-4, T-5
    let ran = render_templates(&[]);
    assert_eq!(ran.exit, 1);
    let refused = "render only supports Composition Function pipelines: Composition \"app\" must use spec.mode: Pipeline";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    let hint =
        "--output-format=v1 renders it as Crossplane v1 composed it. The mode is deprecated.";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
}

#[test]
fn what_breaks_a_rule_is_refused_in_the_words_of_the_control_plane() {
    let none = TEMPLATES.split("  resources:").next().unwrap();
    let files = [("xr.yaml", XR), ("composition.yaml", none)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "--output-format=v1"];
    let ran = run_on(&files, &line);
    assert_eq!(ran.exit, 1);
    let refused = "refusing to use invalid Composition: spec.resources: Required value: an array of resources is required in Resources mode (the default if no mode is specified)";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
}

#[test]
fn the_whole_composite_resource_can_be_printed() {
    let ran = render_templates(&["--output-format=v1", "--include-full-xr"]);
    let printed = documents(&ran.stdout);
    assert_eq!(printed[0]["spec"]["stage"], "prod");
    assert!(printed[0]["spec"]["resourceRefs"].is_array());
}

#[test]
fn an_environment_is_on_where_a_composition_has_one() {
    let composition = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: app}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XApp}
  mode: Pipeline
  environment:
    environmentConfigs:
    - type: Selector
      selector:
      - matchLabels:
        - {key: stage, valueFromFieldPath: spec.stage}
  pipeline:
  - step: a
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: settings
        base: {apiVersion: example.org/v1, kind: Settings}
        patches:
        - {type: FromEnvironmentFieldPath, fromFieldPath: tier, toFieldPath: spec.tier}
";
    let config = |version: &str| {
        format!(
            "apiVersion: apiextensions.crossplane.io/{version}
kind: EnvironmentConfig
metadata: {{name: prod, labels: {{stage: prod}}}}
data: {{tier: gold}}
"
        )
    };
    for version in ["v1alpha1", "v1beta1"] {
        for flags in [&[][..], &["--output-format=v1"]] {
            let config = config(version);
            let files = [("xr.yaml", XR), ("composition.yaml", composition), ("e.yaml", &config)];
            let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "-e=DIR/e.yaml"];
            let ran = run_on(&files, &[&line[..], flags].concat());
            assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{version} {flags:?}");
            let settings = documents(&ran.stdout).remove(1);
            assert_eq!(settings["spec"], json!({"tier": "gold"}), "{version} {flags:?}");
        }
    }
}

#[test]
fn another_engine_has_no_environments() {
    let ran = render_templates(&["--enable-environment-configs", "--crossplane-version=v2.0.0"]);
    let refused = "--enable-environment-configs and --crossplane-version can't be used together";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
}
