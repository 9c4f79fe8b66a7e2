//! Tests files that are valid by themselves but do not fit each other: errors show where they
//! differ.

use crate::fixtures::composition;
use crate::mistakes::{COMPOSITION, FUNCTIONS, XR, render};
use crate::support::{Ran, run_on};

/// The error message without indentation.
fn said(ran: &Ran) -> String {
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let said = ran.stderr.replace("\n                ", "\n");
    said.strip_prefix("biplane: error: ").unwrap_or(&said).to_owned()
}

/// The location of a line in a file, as errors show it.
fn at(file: &str, document: usize, line: usize, column: usize, text: &str) -> String {
    let width = line.to_string().len();
    let (space, mark) = (" ".repeat(width), " ".repeat(column - 1));
    format!(
        "--> DIR/{file}, document {document}, line {line}, column {column}\n {line} | {text}\n {space} | {mark}^\n"
    )
}

/// T-2 to T-5
#[test]
fn a_composition_that_does_not_fit_is_shown_beside_the_composite_resource() {
    let with = |from: &str, to: &str| COMPOSITION.replace(from, to);
    let selecting = XR.replace(
        "spec: {}",
        "spec:\n  crossplane:\n    compositionSelector:\n      matchLabels:\n        env: prod",
    );
    let labelled = with("  name: apps\n", "  name: apps\n  labels:\n    env: dev\n");
    let mode = "render only supports Composition Function pipelines: Composition \"apps\" must use spec.mode: Pipeline\n";
    for (xr, composition, error, places) in [
        (
            XR,
            with("kind: XApp", "kind: XOther"),
            "composition's compositeTypeRef.kind (XOther) does not match XR's kind (XApp)\n",
            at("xr.yaml", 1, 2, 7, "kind: XApp")
                + &at("composition.yaml", 1, 8, 11, "    kind: XOther")
                + "If it is a claim, pass its CompositeResourceDefinition with --xrd.\n",
        ),
        (
            XR,
            with("example.org/v1", "example.org/v2"),
            "composition's compositeTypeRef.apiVersion (example.org/v2) does not match XR's apiVersion (example.org/v1)\n",
            at("xr.yaml", 1, 1, 13, "apiVersion: example.org/v1")
                + &at("composition.yaml", 1, 7, 17, "    apiVersion: example.org/v2"),
        ),
        (
            XR,
            with("mode: Pipeline", "mode: Resources"),
            mode,
            at("composition.yaml", 1, 9, 9, "  mode: Resources"),
        ),
        (XR, with("  mode: Pipeline\n", ""), mode, at("composition.yaml", 1, 5, 1, "spec:")),
        (
            &selecting,
            COMPOSITION.to_owned(),
            "composition \"apps\" is missing required label \"env\"\n",
            at("xr.yaml", 1, 9, 14, "        env: prod")
                + &at("composition.yaml", 1, 3, 1, "metadata:"),
        ),
        (
            &selecting,
            labelled,
            "composition \"apps\" has incorrect value for label \"env\": want \"prod\", got \"dev\"\n",
            at("xr.yaml", 1, 9, 14, "        env: prod")
                + &at("composition.yaml", 1, 6, 10, "    env: dev"),
        ),
    ] {
        let ran = render(&[("xr.yaml", xr), ("composition.yaml", &composition)], &[]);
        assert_eq!(said(&ran), format!("{error}{places}"));
    }
    let none = with("  mode: Pipeline\n", "");
    let ran = render(&[("composition.yaml", &none)], &["--output-format=v1"]);
    assert!(said(&ran).ends_with(&at("composition.yaml", 1, 5, 1, "spec:")), "{}", ran.stderr);
}

/// With several composite resources, the error names one.
#[test]
fn of_many_composite_resources_the_one_that_does_not_fit_is_shown() {
    let other = XR.replace("XApp", "XOther").replace("name: app", "name: second");
    let files = [("composition.yaml", COMPOSITION), ("xrs/a.yaml", &format!("{XR}---\n{other}"))];
    let line = ["render", "DIR/composition.yaml", "--xrs=DIR/xrs"];
    let text = "XOther \"second\": composition's compositeTypeRef.kind (XApp) does not match XR's kind (XOther)\n";
    let places = at("xrs/a.yaml", 2, 8, 7, "kind: XOther")
        + &at("composition.yaml", 1, 8, 11, "    kind: XApp")
        + "If it is a claim, pass its CompositeResourceDefinition with --xrd.\n";
    assert_eq!(said(&run_on(&files, &line)), format!("{text}{places}"));
}

#[test]
fn no_composite_resource_at_all_is_an_error() {
    for text in ["", "---\n# nothing\n", "apiVersion: v1\nkind: List\nitems: []\n"] {
        let files = [("composition.yaml", COMPOSITION), ("none.yaml", text)];
        let ran = run_on(&files, &["render", "DIR/composition.yaml", "--xrs=DIR/none.yaml"]);
        let text = "cannot load composite resources from \"DIR/none.yaml\": there is none in it\n";
        assert_eq!(said(&ran), text);
    }
}

#[test]
fn whoever_adds_the_flag_and_leaves_the_argument_is_told() {
    let files = [("composition.yaml", COMPOSITION), ("xr.yaml", XR)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "--xrs=DIR/xr.yaml"];
    let text = "cannot load Composition from \"DIR/xr.yaml\": not a composition: XApp/app\n";
    let hint = "--xrs takes the place of the composite resource argument, so that the Composition comes first.\n";
    let place = at("xr.yaml", 1, 2, 7, "kind: XApp");
    assert_eq!(said(&run_on(&files, &line)), format!("{text}{place}{hint}"));
}

const DEFINITION: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: xapps.example.org
spec:
  group: example.org
  names: {kind: XApp, plural: xapps}
  claimNames: {kind: App, plural: apps}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: string, default: small}
";

/// T-33
#[test]
fn a_definition_that_does_not_fit_is_shown() {
    let attempted = "cannot apply XRD defaults to XR \"app\": ";
    for (from, to, error, places) in [
        (
            "- name: v1",
            "- name: v2",
            "the specified API version 'example.org/v1' does not exist in the XRD\n",
            at("xr.yaml", 1, 1, 13, "apiVersion: example.org/v1")
                + &at("xrd.yaml", 1, 9, 3, "  versions:"),
        ),
        (
            "    schema:\n      openAPIV3Schema:",
            "    schemas:\n      openAPIV3Schema:",
            "cannot derive CRD from XRD \"xapps.example.org\": custom resource validation cannot be nil\n",
            at("xrd.yaml", 1, 10, 5, "  - name: v1"),
        ),
    ] {
        let definition = DEFINITION.replace(from, to);
        let ran = render(&[("xrd.yaml", &definition)], &["--xrd=DIR/xrd.yaml"]);
        assert_eq!(said(&ran), format!("{attempted}{error}{places}"));
    }
}

/// The cause is the same for all, so one warning is enough.
#[test]
fn a_definition_is_read_once_for_all_composite_resources() {
    let definition = format!("{DEFINITION}---\nkind: Other\n");
    let many = |text: &str| {
        let one = |n| text.replace("name: app", &format!("name: app-{n}"));
        (0..5).map(one).collect::<Vec<_>>().join("---\n")
    };
    let (xrs, claims) = (many(XR), many(&XR.replace("XApp", "App")));
    for many in [&xrs, &claims] {
        let files =
            [("composition.yaml", COMPOSITION), ("xrs.yaml", many), ("xrd.yaml", &definition)];
        let line =
            ["render", "DIR/composition.yaml", "--xrs=DIR/xrs.yaml", "--xrd=DIR/xrd.yaml", "-x"];
        let ran = run_on(&files, &line);
        let warning =
            "biplane: warning: DIR/xrd.yaml holds more than one document; only the first is used\n";
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, warning));
        assert_eq!(ran.stdout.matches("  size: small\n").count(), 5, "{}", ran.stdout);
    }
}

/// T-38
#[test]
fn what_is_no_operation_is_shown() {
    let operation = "apiVersion: ops.crossplane.io/v1alpha1\nkind: Opration\n";
    for (text, error) in [
        (
            "apiVersion: v1\nkind: ConfigMap\n",
            "not an operation type: ConfigMap/v1\n".to_owned()
                + &at("op.yaml", 1, 1, 13, "apiVersion: v1"),
        ),
        (
            operation,
            "not an operation type: Opration/ops.crossplane.io/v1alpha1\n".to_owned()
                + &at("op.yaml", 1, 2, 7, "kind: Opration"),
        ),
        (
            "# nothing\n",
            "not an operation type: /\n--> DIR/op.yaml: there is no object in it\n".to_owned(),
        ),
    ] {
        let files = [("op.yaml", text), ("functions.yaml", FUNCTIONS)];
        let ran = run_on(&files, &["operation", "render", "DIR/op.yaml", "DIR/functions.yaml"]);
        assert_eq!(said(&ran), error);
    }
}

/// Other API groups also have a kind Composition.
#[test]
fn compositions_of_other_groups_are_left_alone() {
    let other = "apiVersion: music.example.org/v1\nkind: Composition\nmetadata: {name: 4'33}\nspec: {pipeline: silence}\n";
    let nested = composition!("  - {step: ready, functionRef: {name: function-auto-ready}}\n");
    let files = [("apis/other.yaml", other), ("apis/ours.yaml", nested)];
    let ran = render(&files, &["--until-stable", "--compositions=DIR/apis"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}
