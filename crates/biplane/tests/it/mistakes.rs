//! Tests invalid input and the resulting error messages.

use crate::fixtures::{composition, function, project};
use crate::support::{Folder, Ran, run, run_on, run_with};

pub(crate) const XR: &str =
    "apiVersion: example.org/v1\nkind: XApp\nmetadata:\n  name: app\nspec: {}\n";
pub(crate) const COMPOSITION: &str = composition!(
    "  - step: ready
    functionRef:
      name: function-auto-ready
"
);
pub(crate) const FUNCTIONS: &str = function!("function-auto-ready", "v0.5.0");

/// Renders with some files replaced. The output has `DIR` instead of the folder.
pub(crate) fn render(files: &[(&str, &str)], flags: &[&str]) -> Ran {
    let usual = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "DIR/functions.yaml"];
    run_on(&[&usual, files].concat(), &[&line, flags].concat())
}

pub(crate) fn fails(files: &[(&str, &str)], flags: &[&str], exit: u8, error: &str) {
    let ran = render(files, flags);
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert_eq!(first, format!("biplane: error: {error}"), "{ran:?}");
    assert_eq!((ran.exit, ran.stdout.as_str()), (exit, ""), "{error}");
}

#[test]
fn good_input_renders() {
    let ran = render(&[], &[]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("---\napiVersion: example.org/v1\nkind: XApp\n"));
}

/// T-2, T-3, T-4, T-5
#[test]
fn a_composition_that_does_not_fit_is_refused() {
    let with = |from: &str, to: &str| COMPOSITION.replace(from, to);
    let selecting = XR.replace(
        "spec: {}",
        "spec:\n  crossplane:\n    compositionSelector:\n      matchLabels:\n        env: prod",
    );
    let labelled = with("  name: apps\n", "  name: apps\n  labels:\n    env: dev\n");
    let mode = "render only supports Composition Function pipelines: Composition \"apps\" must use spec.mode: Pipeline";
    for (xr, composition, error) in [
        (
            XR,
            with("kind: XApp", "kind: XOther"),
            "composition's compositeTypeRef.kind (XOther) does not match XR's kind (XApp)",
        ),
        (
            XR,
            with("example.org/v1", "example.org/v2"),
            "composition's compositeTypeRef.apiVersion (example.org/v2) does not match XR's apiVersion (example.org/v1)",
        ),
        (XR, with("  mode: Pipeline\n", ""), mode),
        (XR, with("mode: Pipeline", "mode: Resources"), mode),
        (
            &selecting,
            COMPOSITION.to_owned(),
            "composition \"apps\" is missing required label \"env\"",
        ),
        (
            &selecting,
            labelled,
            "composition \"apps\" has incorrect value for label \"env\": want \"prod\", got \"dev\"",
        ),
    ] {
        fails(&[("xr.yaml", xr), ("composition.yaml", &composition)], &[], 1, error);
    }
}

/// LOAD-4 to LOAD-11, T-6
#[test]
fn files_that_cannot_be_used_are_named() {
    let function = |text: &str| FUNCTIONS.replace("function-auto-ready:v0.5.0", text);
    let cases: &[(&str, &str, &[&str], &str)] = &[
        (
            "functions.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n",
            &[],
            "cannot load functions from \"DIR/functions.yaml\": not a function: ConfigMap/c",
        ),
        (
            "functions.yaml",
            &format!("{FUNCTIONS}---\n{}", function("other")),
            &[],
            "cannot load functions from \"DIR/functions.yaml\": there are two different Functions named \"function-auto-ready\"",
        ),
        (
            "composition.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n",
            &[],
            "cannot load Composition from \"DIR/composition.yaml\": not a composition: ConfigMap/c",
        ),
        (
            "xr.yaml",
            "spec: {}\n",
            &[],
            "cannot load composite resource from \"DIR/xr.yaml\": cannot unmarshal composite resource YAML: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"spec\":{}}'",
        ),
        (
            "o.yaml",
            "a: 1\n",
            &["-o=DIR/o.yaml"],
            "cannot load observed composed resources from \"DIR/o.yaml\": cannot parse YAML composed resource manifest: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"a\":1}'",
        ),
        (
            "s.yaml",
            "data: {k: '%'}\n",
            &["--function-credentials=DIR/s.yaml"],
            "cannot load secrets from \"DIR/s.yaml\": cannot parse YAML secret manifest: error unmarshaling JSON: while decoding JSON: illegal base64 data at input byte 0",
        ),
        (
            "e/readme.md",
            "",
            &["-e=DIR/e"],
            "cannot load required resources from \"DIR/e\": cannot load YAML stream from file: no YAML files found in \"DIR/e\" (.yaml or .yml)",
        ),
        (
            "unused",
            "",
            &["--extra-resources=DIR/none"],
            "cannot load extra resources from \"DIR/none\": cannot load YAML stream from file: cannot open file: open DIR/none: no such file or directory",
        ),
        (
            "s/a.json",
            "{",
            &["-s=DIR/s"],
            "cannot load required schemas from \"DIR/s\": cannot parse OpenAPI JSON from \"DIR/s/a.json\": EOF while parsing an object at line 1 column 1",
        ),
        (
            "unused",
            "",
            &["--context-files=k=none.yaml"],
            "cannot build context data: cannot read context value for key \"k\": open none.yaml: no such file or directory",
        ),
        (
            "unused",
            "",
            &["--context-files=k=DIR/none"],
            "cannot build context data: cannot read context value for key \"k\": open DIR/none: no such file or directory",
        ),
        (
            "unused",
            "",
            &[
                "-a=render.crossplane.io/runtime=Process",
                "-a=render.crossplane.io/runtime-process-command=[\"true\"]",
            ],
            "cannot start function runtimes: cannot start Function \"function-auto-ready\": it is a program on this machine; pass --allow-process if you trust what the Functions file or the project runs",
        ),
        (
            "functions.yaml",
            "",
            &[],
            "cannot render composite resource: reconcile failed: cannot compose resources: cannot run Composition pipeline step \"ready\": unknown function \"function-auto-ready\" - is it listed in the render input?",
        ),
    ];
    for (file, text, flags, error) in cases {
        fails(&[(file, text)], flags, 1, error);
    }
}

#[test]
fn broken_yaml_is_shown_where_it_breaks() {
    let ran = render(&[("xr.yaml", "apiVersion: v1\nkind: [A\nname: b\n")], &[]);
    assert_eq!(ran.exit, 1);
    let mut lines = ran.stderr.lines();
    let first = lines.next().unwrap();
    let words =
        "cannot unmarshal composite resource YAML: error converting YAML to JSON: yaml: line ";
    assert!(first.contains(words), "{}", ran.stderr);
    let place = lines.next().unwrap().trim_start();
    assert!(place.starts_with("--> DIR/xr.yaml, document 1, line "), "{}", ran.stderr);
    assert!(lines.next().unwrap().contains(" | "), "{}", ran.stderr);
}

/// CLI-10 to CLI-15, T-1, T-9, T-28
#[test]
fn mistakes_on_the_command_line_are_usage_errors() {
    for (flags, error) in [
        (
            &["--include-function-result"][..],
            "unknown flag --include-function-result, did you mean \"--include-function-results\"?",
        ),
        (&["--xrd=DIR/none.yaml"], "--xrd: stat DIR/none.yaml: no such file or directory"),
        (&["--context-values=a"], "--context-values: expected \"<key>=<value>\" but got \"a\""),
        (
            &["--crossplane-version=v2.3.4", "--crossplane-image=i"],
            "--crossplane-version and --crossplane-image can't be used together",
        ),
        (
            &["--output-format=v3"],
            "--output-format must be one of \"v2\",\"v1\",\"json\" but got \"v3\"",
        ),
        (&["--timeout=soon"], "--timeout: expected duration but got \"soon\": write it as 1m30s"),
        (&["surplus"], "unexpected argument surplus"),
    ] {
        fails(&[], flags, 80, error);
    }
    fails(
        &[],
        &["-a=foo"],
        1,
        "cannot apply function annotation overrides: invalid function annotation format \"foo\", expected key=value",
    );
    let ran = run(&["render", "/nowhere/xr.yaml", "/nowhere/composition.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""));
    let first = ran.stderr.lines().next().unwrap();
    assert_eq!(
        first,
        "biplane: error: <composite-resource>: stat /nowhere/xr.yaml: no such file or directory"
    );
    let ran = run(&["rendr"]);
    assert_eq!(ran.exit, 80);
    assert!(ran.stderr.starts_with("biplane: error: unexpected argument rendr, did you mean"));
}

/// CLI-13, CLI-14: as in scripts that pass variables which may be empty.
#[test]
fn lists_may_be_empty_and_end_with_a_separator() {
    let e = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
    for flags in [
        &["--context-values=a=1;"][..],
        &["--context-values="],
        &["--context-files="],
        &["-a", ""],
        &["-a", "example.org/a=b,"],
        &["-e", ""],
        &["-e", "DIR/e.yaml,"],
        &["--extra-resources=DIR/e.yaml,"],
    ] {
        let ran = render(&[("e.yaml", e)], flags);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{flags:?}");
    }
}

/// T-4
#[test]
fn a_selector_that_cannot_be_read_selects_nothing() {
    for (labels, error) in [
        ("{env: 5}", ""),
        ("[env]", ""),
        ("{env: null}", "composition \"apps\" is missing required label \"env\""),
        ("{env: '5'}", "composition \"apps\" is missing required label \"env\""),
    ] {
        let selector = format!("{{compositionSelector: {{matchLabels: {labels}}}}}");
        let modern = XR.replace("spec: {}", &format!("spec: {{crossplane: {selector}}}"));
        let legacy = XR.replace("spec: {}", &format!("spec: {selector}"));
        for (xr, flag) in [(modern, "--output-format=v2"), (legacy, "--output-format=v1")] {
            let files = [("xr.yaml", xr.as_str())];
            if error.is_empty() {
                let ran = render(&files, &[flag]);
                assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{xr}");
            } else {
                fails(&files, &[flag], 1, error);
            }
        }
    }
}

/// RL-2
#[test]
fn the_v1_line_refuses_input_that_is_no_object() {
    for (input, token) in [("5", "5"), ("text", "\"text\""), ("[1]", "[")] {
        let composition = format!("{COMPOSITION}    input: {input}\n");
        let error = format!(
            "cannot render composite resource: cannot unmarshal input for Composition pipeline step \"ready\": proto: syntax error (line 1:1): unexpected token {token}"
        );
        let flags = ["--output-format=v1"];
        fails(&[("composition.yaml", &composition)], &flags, 1, &error);
    }
}

/// T-8
#[test]
fn functions_in_the_box_need_no_functions_file() {
    let folder = Folder::new();
    let xr = folder.write("xr.yaml", XR);
    let composition = folder.write("composition.yaml", COMPOSITION);
    let none = folder.at("none.yaml");
    let project = format!("--project-file={}", none.display());
    let ran = run(&["render", &xr, &composition, &project]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));

    let other = COMPOSITION.replace("function-auto-ready", "function-other");
    let composition = folder.write("composition.yaml", &other);
    let ran = run(&["render", &xr, &composition, &project]);
    assert_eq!(ran.exit, 1);
    let text = "biplane: error: functions argument is required when not in a project: function \"function-other\" is not one of those that run in process";
    assert!(ran.stderr.starts_with(text), "{}", ran.stderr);
}

#[test]
fn functions_in_the_box_can_be_turned_off_unless_they_are_asked_for() {
    let folder = Folder::new();
    let files = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let [xr, composition, functions] = files.map(|(name, text)| folder.write(name, text));
    let project = format!("--project-file={}", folder.at("none.yaml").display());
    let ran = run(&["render", &xr, &composition, &project, "--no-builtin"]);
    let text = "biplane: error: functions argument is required when not in a project: --no-builtin keeps function \"function-auto-ready\" from running in process\n";
    assert_eq!((ran.exit, ran.stderr.as_str()), (1, text));
    let project = format!("--project-file={}", folder.write("project.yaml", project!("")));
    let ran = run(&["render", &xr, &composition, &project, "--no-builtin"]);
    let text = "biplane: error: cannot load project functions: function \"function-auto-ready\" is not one of the project, and --no-builtin keeps it from running in process\n";
    assert!(ran.exit == 1 && ran.stderr.ends_with(text), "{}", ran.stderr);

    let asked = "-a=render.crossplane.io/runtime=InProcess";
    let ran = run(&["render", &xr, &composition, &functions, "--no-builtin", asked]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_dash_reads_standard_input() {
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let functions = folder.write("functions.yaml", FUNCTIONS);
    let ran = run_with(&["beta", "render", "-", &composition, &functions], XR);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains("name: app\n"));
}

/// RL-1
#[test]
fn the_v1_line_checks_the_composition_first() {
    let twice = COMPOSITION.replace(
        "  pipeline:\n",
        "  pipeline:\n  - step: ready\n    functionRef:\n      name: function-auto-ready\n",
    );
    let composition = [("composition.yaml", twice.as_str())];
    let error = "invalid Composition \"apps\": spec.pipeline[1].step: Duplicate value: \"ready\"";
    fails(&composition, &["--output-format=v1"], 1, error);
    let none = COMPOSITION.replace("  mode: Pipeline\n", "");
    let composition = [("composition.yaml", none.as_str())];
    let error = "invalid Composition \"apps\": spec.resources: Required value: an array of resources is required in Resources mode (the default if no mode is specified)";
    fails(&composition, &["--output-format=v1"], 1, error);
}

/// T-14, T-15
#[test]
fn context_is_seeded_and_captured() {
    let ran = render(
        &[("j.yaml", "9\n")],
        &["--context-values=k={\"a\":1};j=2", "--context-files=j=DIR/j.yaml", "-c"],
    );
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let context = "---\napiVersion: render.crossplane.io/v1beta1\nfields:\n  j: 2\n  k:\n    a: 1\nkind: Context\n";
    assert!(ran.stdout.ends_with(context), "{}", ran.stdout);
}

#[test]
fn json_is_one_line_per_document() {
    let ran = render(&[], &["--output-format=json", "-rx"]);
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["XApp", "Result"]);
}

/// T-38, T-39
#[test]
fn an_operation_must_be_one() {
    let folder = Folder::new();
    let functions = folder.write("functions.yaml", FUNCTIONS);
    let map = folder.write("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let ran = run(&["operation", "render", &map, &functions]);
    assert_eq!(ran.exit, 1);
    let first = ran.stderr.lines().next();
    assert_eq!(first, Some("biplane: error: not an operation type: ConfigMap/v1"));
    let operation = folder.write(
        "op.yaml",
        "apiVersion: ops.crossplane.io/v1alpha1\nkind: WatchOperation\nmetadata: {name: a}\n",
    );
    let two = folder.write("two.yaml", "kind: A\n---\nkind: B\n");
    let ran = run(&["alpha", "render", "op", &operation, &functions, "-w", &two]);
    assert_eq!(
        ran.stderr,
        "biplane: error: --watched-resource must contain exactly one resource, got 2\n"
    );
    assert_eq!(ran.exit, 1);
}

#[test]
fn many_composite_resources_render_in_the_order_of_their_files() {
    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let functions = folder.write("functions.yaml", FUNCTIONS);
    let names: Vec<_> = (10..60).map(|n| format!("app-{n}")).collect();
    for name in &names {
        folder
            .write(&format!("xrs/{name}.yaml"), &XR.replace("name: app", &format!("name: {name}")));
    }
    let xrs = format!("--xrs={}", folder.at("xrs").display());
    let ran = run(&["render", &composition, &functions, &xrs]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let found: Vec<_> = ran.stdout.lines().filter_map(|l| l.strip_prefix("  name: ")).collect();
    assert_eq!(found, names);
    let ran = run(&["render", &composition, &xrs, "--output-format=v1"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    for more in [&[][..], &["--watch"]] {
        let line = ["render", &composition, &composition, &functions, &xrs];
        let ran = run(&[&line, more].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""));
        assert_eq!(
            ran.stderr,
            "biplane: error: --xrs takes the place of the composite resource argument\n"
        );
    }
}
