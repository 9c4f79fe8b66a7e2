//! Tests renders until nothing changes, including nested composite resources.

use serde_json::Value;

use crate::fixtures::{composition, development};
use crate::support::{Folder, Ran, example, render_on, run, shown};

const XR: &str = "
apiVersion: example.org/v1
kind: XApp
metadata: {name: app}
spec: {colour: red}
";

/// A Composition whose function patches resources, followed by function-auto-ready.
fn composition(kind: &str, name: &str, resources: &str) -> String {
    format!(
        "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: {name}
spec:
  compositeTypeRef: {{apiVersion: example.org/v1, kind: {kind}}}
  mode: Pipeline
  pipeline:
  - step: patch
    functionRef: {{name: function-patch-and-transform}}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:{resources}
  - step: ready
    functionRef: {{name: function-auto-ready}}
"
    )
}

/// Composes a part and copies its address.
const APP: &str = "
      - name: part
        base: {apiVersion: example.org/v1, kind: XPart}
        patches:
        - {fromFieldPath: spec.colour, toFieldPath: spec.colour}
        - {type: ToCompositeFieldPath, fromFieldPath: status.address, toFieldPath: status.address}
";
/// Composes a leaf that is ready immediately and has an address.
const PART: &str = "
      - name: leaf
        base: {apiVersion: example.org/v1, kind: Leaf, spec: {address: there}}
        readinessChecks: [{type: None}]
        patches:
        - {fromFieldPath: spec.colour, toFieldPath: spec.colour}
        - {type: ToCompositeFieldPath, fromFieldPath: spec.address, toFieldPath: status.address}
";

/// Renders files until stable. `DIR` in flags and in the output denotes their folder.
fn settle(files: &[(&str, &str)], flags: &[&str]) -> Ran {
    let flags = [&["--until-stable"], flags].concat();
    render_on(&[&[("xr.yaml", XR)], files].concat(), "DIR/xr.yaml", &flags)
}

/// Renders an app with the Composition of its part.
fn nested(files: &[(&str, &str)], flags: &[&str]) -> Ran {
    let app = composition("XApp", "apps", APP);
    let part = composition("XPart", "parts", PART);
    let usual = [("composition.yaml", app.as_str()), ("apis/part/composition.yaml", &part)];
    settle(&[&usual, files].concat(), &[&["--compositions=DIR/apis"], flags].concat())
}

/// Kind and name of every document.
fn kinds(ran: &Ran) -> Vec<(String, String)> {
    documents(ran)
        .iter()
        .map(|document| {
            let text = |at: &str| document.pointer(at).and_then(|v| v.as_str()).unwrap_or_default();
            (text("/kind").to_owned(), text("/metadata/name").to_owned())
        })
        .collect()
}

fn documents(ran: &Ran) -> Vec<serde_json::Value> {
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let documents = biplane_model::yaml::parse_documents("stdout", &ran.stdout).unwrap();
    documents.into_iter().map(|document| document.value).collect()
}

fn fails(ran: &Ran, error: &str) {
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert_eq!(last, format!("biplane: error: {error}"));
}

#[test]
fn what_nested_composite_resources_become_reaches_the_top() {
    let ran = nested(&[], &[]);
    let documents = documents(&ran);
    let names: Vec<_> = kinds(&ran).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names, ["XApp", "XPart", "Leaf"]);
    assert_eq!(documents[0]["status"]["address"], "there");
    for xr in &documents[..2] {
        let conditions = xr["status"]["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
        assert_eq!(ready["status"], "True", "{xr}");
    }
    assert_eq!(documents[2]["spec"]["colour"], "red");
    let reference = &documents[1]["spec"]["crossplane"]["resourceRefs"][0];
    assert_eq!(reference["name"], documents[2]["metadata"]["name"]);
    // The label has the name of the top-level XR; the owner is the direct parent.
    assert_eq!(documents[2]["metadata"]["labels"]["crossplane.io/composite"], "app");
    assert_eq!(documents[2]["metadata"]["ownerReferences"][0]["kind"], "XPart");

    let part = documents[1]["metadata"]["name"].as_str().unwrap();
    let leaf = documents[2]["metadata"]["name"].as_str().unwrap();
    let (app, part) = ("XApp.example.org app", format!("XPart.example.org {part}"));
    let rounds = [
        format!(
            "round 1: created {part}; changed {app} (metadata.labels, spec.crossplane, status); not ready: {app}, {part}"
        ),
        format!(
            "round 2: created Leaf.example.org {leaf}; changed {part} (spec.crossplane, status); not ready: {app}, {part}"
        ),
        format!(
            "round 3: changed {part} (status.address, status.conditions[Ready]); not ready: {app}"
        ),
        format!("round 4: changed {app} (status.address, status.conditions[Ready]); ready"),
        "round 5: nothing changed; ready".to_owned(),
    ];
    assert_eq!(ran.stderr.lines().collect::<Vec<_>>(), rounds);
}

#[test]
fn the_example_of_the_guide_settles_as_shown() {
    let file = |name: &str| example("nested-composition", name);
    let compositions = format!("--compositions={}", file("apis"));
    let ran = run(&[
        "render",
        &file("xr.yaml"),
        &file("composition.yaml"),
        "--until-stable",
        &compositions,
    ]);
    assert_eq!(ran.exit, 0);
    assert_eq!(ran.stderr, shown("render.md", "biplane render xr.yaml composition.yaml --until"));
}

#[test]
fn without_its_composition_a_nested_composite_resource_is_a_resource() {
    let app = composition("XApp", "apps", APP);
    let ran = settle(&[("composition.yaml", &app)], &["--summary"]);
    let names: Vec<_> = kinds(&ran).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names, ["XApp", "XPart"]);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("round 1: created XPart.example.org app-"), "{}", ran.stderr);
    assert!(lines[1].starts_with("round 2: nothing changed; not ready: XApp"), "{}", ran.stderr);
    assert!(lines[2].starts_with("create XPart.example.org app-"), "{}", ran.stderr);
    assert_eq!(lines[3], "not Ready (Creating): Unready resources: part");
}

#[test]
fn the_first_round_alone_is_what_render_prints() {
    let leaf = composition("XApp", "apps", PART);
    let stable = settle(&[("composition.yaml", &leaf)], &["-x"]);
    let folder = Folder::new();
    let xr = folder.write("xr.yaml", XR);
    let once = run(&["render", &xr, &folder.write("composition.yaml", &leaf), "-x"]);
    // The address needs a second round; the leaf does not.
    let (stable, once) = (documents(&stable), documents(&once));
    assert_eq!(stable[1], once[1]);
    assert_eq!(stable[0]["status"]["address"], "there");
    assert_eq!(stable[0]["spec"]["colour"], "red");
}

#[test]
fn another_engine_settles_the_same() {
    let own = nested(&[], &["-r", "-x", "-c"]);
    let engine = format!("--engine={}", env!("CARGO_BIN_EXE_biplane"));
    let other = nested(&[], &["-r", "-x", "-c", &engine]);
    assert_eq!(own, other);
    let names: Vec<_> = kinds(&own).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names[..3], ["XApp", "XPart", "Leaf"]);
    let (context, results) = names[3..].split_last().unwrap();
    assert_eq!(context, "Context");
    assert!(!results.is_empty() && results.iter().all(|kind| kind == "Result"), "{names:?}");
}

#[test]
fn results_of_every_round_say_which_and_whose() {
    let ran = nested(&[], &["-r"]);
    let documents = documents(&ran);
    let results: Vec<_> = documents.iter().filter(|d| d["kind"] == "Result").collect();
    let said = |round: u32, name: &str, message: &str| {
        let about = |result: &&&Value| {
            result["round"] == round
                && result["resource"].as_str().unwrap().starts_with(name)
                && result["message"] == message
        };
        results.iter().filter(about).count()
    };
    let selected = "Successfully selected composition: ";
    assert_eq!(said(1, "XApp.example.org app", &format!("{selected}apps")), 1, "{ran:?}");
    assert_eq!(said(1, "XPart.example.org app-", &format!("{selected}parts")), 0);
    assert_eq!(said(2, "XPart.example.org app-", &format!("{selected}parts")), 1);
    let waits = "Composed resource \"part\" is not yet ready";
    assert_eq!((said(1, "XApp", waits), said(2, "XApp", waits)), (1, 1));
    // Once everything is ready, there are no more results.
    let rounds: Vec<_> = results.iter().map(|result| result["round"].as_u64().unwrap()).collect();
    assert!(rounds.is_sorted(), "{rounds:?}");
    let last = ran.stderr.lines().filter(|line| line.starts_with("round ")).count() as u64;
    assert!(rounds.iter().all(|round| *round < last), "{rounds:?} of {last}");
}

#[test]
fn documents_can_be_json_and_calls_are_timed_by_round() {
    let ran = nested(&[], &["--output-format=json", "--timing"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 3);
    assert!(ran.stdout.starts_with("{\"apiVersion\":\"example.org/v1\",\"kind\":\"XApp\""));
    let first = ran.stderr.lines().next().unwrap();
    let start = "round 1, XApp.example.org app: step patch, function function-patch-and-transform, call 1: ";
    assert!(first.starts_with(start), "{first}");
}

#[test]
fn many_composite_resources_settle_each_by_itself() {
    let two = XR.replace("name: app", "name: two").replace("red", "blue");
    let many = format!("{XR}---{two}");
    let ran = nested(&[("xrs.yaml", &many)], &["--xrs=DIR/xrs.yaml"]);
    let names: Vec<_> = kinds(&ran).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names, ["XApp", "XPart", "Leaf", "XApp", "XPart", "Leaf"]);
    assert!(ran.stderr.starts_with("XApp.example.org app, round 1: created "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\nXApp.example.org two, round 1: created "), "{}", ran.stderr);
}

#[test]
fn what_exists_keeps_its_status_and_loses_what_is_no_longer_wanted() {
    let paint = |patch: &str| {
        composition(
            "XApp",
            "apps",
            &format!(
                "
      - name: paint
        base: {{apiVersion: example.org/v1, kind: Paint}}
        patches:
        - {{fromFieldPath: {patch}, toFieldPath: spec.colour}}
        - {{type: ToCompositeFieldPath, fromFieldPath: status.dry, toFieldPath: status.dry}}
"
            ),
        )
    };
    let observed = "
apiVersion: example.org/v1
kind: Paint
metadata:
  name: old
  annotations: {crossplane.io/composition-resource-name: paint}
spec: {coats: 2}
status:
  dry: 'yes'
  conditions: [{type: Ready, status: 'True'}]
";
    let flags = ["-o=DIR/observed.yaml"];
    let ran =
        settle(&[("composition.yaml", &paint("spec.colour")), ("observed.yaml", observed)], &flags);
    let [app, paint_after] = &documents(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(app["status"]["dry"], "yes");
    assert_eq!(paint_after["metadata"]["name"], "old");
    assert_eq!(paint_after["spec"], serde_json::json!({"coats": 2, "colour": "red"}));
    assert_eq!(paint_after["status"]["dry"], "yes");
    assert!(ran.stderr.ends_with("round 2: nothing changed; ready\n"), "{}", ran.stderr);

    // The address is requested only until the paint is dry.
    let ran = settle(
        &[
            ("composition.yaml", &paint("status.dry")),
            ("observed.yaml", &observed.replace("dry: 'yes'", "dry: 'no'")),
        ],
        &flags,
    );
    assert_eq!(documents(&ran)[1]["spec"], serde_json::json!({"coats": 2, "colour": "no"}));
}

#[test]
fn what_has_settled_stays_as_it_is() {
    let once = nested(&[], &[]);
    let (_, composed) = once.stdout.split_once("\n---\n").unwrap();
    let again = nested(&[("observed.yaml", composed)], &["-o=DIR/observed.yaml"]);
    assert_eq!(again.stdout, once.stdout);
    let rounds: Vec<_> = again.stderr.lines().collect();
    let first =
        "round 1: changed XApp.example.org app (metadata.labels, spec.crossplane, status); ready";
    assert_eq!(rounds, [first, "round 2: nothing changed; ready"]);
}

/// RE-31
#[test]
fn a_paused_composite_resource_settles_at_once() {
    let paused = "name: app, annotations: {crossplane.io/paused: 'true'}";
    let xr = XR.replace("name: app", paused);
    let ran = nested(&[("xr.yaml", &xr)], &[]);
    let documents = documents(&ran);
    assert_eq!(documents.len(), 1);
    let conditions = documents[0]["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["reason"] == "ReconcilePaused"), "{}", ran.stdout);
    assert_eq!(documents[0].get("spec"), None);
    assert!(ran.stderr.contains("\nround 2: nothing changed; not ready"), "{}", ran.stderr);
}

/// SC-5
#[test]
fn everything_below_a_namespaced_composite_resource_is_in_its_namespace() {
    let xr = XR.replace("name: app", "name: app, namespace: shop");
    let ran = nested(&[("xr.yaml", &xr)], &[]);
    let documents = documents(&ran);
    assert_eq!(documents.len(), 3, "{}", ran.stderr);
    assert!(documents.iter().all(|document| document["metadata"]["namespace"] == "shop"));
    assert_eq!(documents[0]["status"]["address"], "there");
    assert!(ran.stderr.contains("changed XApp.example.org shop/app ("), "{}", ran.stderr);
}

#[test]
fn a_function_that_hangs_runs_into_the_deadline() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let target = silent.local_addr().unwrap().to_string();
    let functions = ["function-patch-and-transform", "function-auto-ready"]
        .map(|name| development(name, &target))
        .concat();
    let app = composition("XApp", "apps", APP);
    let ran = settle(
        &[("composition.yaml", &app), ("functions.yaml", &functions)],
        &["DIR/functions.yaml", "--timeout=300ms"],
    );
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("code = DeadlineExceeded"), "{}", ran.stderr);
}

#[test]
fn what_a_composite_resource_composed_goes_with_it() {
    let nothing = composition!(
        "  - step: ready
    functionRef: {name: function-auto-ready}
"
    );
    let observed = "
apiVersion: example.org/v1
kind: XPart
metadata:
  name: part
  uid: u-part
  annotations: {crossplane.io/composition-resource-name: part}
  ownerReferences: [{apiVersion: example.org/v1, kind: XApp, name: app, uid: u-app, controller: true}]
---
apiVersion: example.org/v1
kind: Leaf
metadata:
  name: leaf
  annotations: {crossplane.io/composition-resource-name: leaf}
  ownerReferences: [{apiVersion: example.org/v1, kind: XPart, name: part, uid: u-part, controller: true}]
";
    let xr = XR.replace("name: app", "name: app, uid: u-app");
    let part = composition("XPart", "parts", PART);
    let ran = settle(
        &[
            ("xr.yaml", &xr),
            ("composition.yaml", nothing),
            ("part.yaml", &part),
            ("observed.yaml", observed),
        ],
        &["-o=DIR/observed.yaml", "--compositions=DIR/part.yaml", "--summary"],
    );
    assert_eq!(documents(&ran).len(), 1);
    let first = ran.stderr.lines().next().unwrap();
    assert!(
        first.ends_with("; deleted Leaf.example.org leaf, XPart.example.org part; ready"),
        "{first}"
    );
    assert!(ran.stderr.contains("\ndelete Leaf.example.org leaf\n"), "{}", ran.stderr);
}

#[test]
fn what_was_composed_can_be_required() {
    let composition = composition!(
        "  - step: environment
    functionRef: {name: function-environment-configs}
    input:
      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
      kind: Input
      spec:
        policy: {resolution: Optional}
        environmentConfigs: [{type: Reference, ref: {name: settings}}]
  - step: patch
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: settings
        base:
          apiVersion: apiextensions.crossplane.io/v1beta1
          kind: EnvironmentConfig
          metadata: {name: settings}
          data: {region: eu}
      - name: paint
        base: {apiVersion: example.org/v1, kind: Paint}
        patches:
        - {type: FromEnvironmentFieldPath, fromFieldPath: region, toFieldPath: spec.region}
"
    );
    let ran = settle(&[("composition.yaml", composition)], &[]);
    let documents = documents(&ran);
    let paint = documents.iter().find(|document| document["kind"] == "Paint").unwrap();
    assert_eq!(paint["spec"]["region"], "eu", "{}", ran.stderr);
    assert!(ran.stderr.contains("\nround 2: changed Paint.example.org app-"), "{}", ran.stderr);
}

/// Composes a thing whose text depends on the status, which depends on the thing.
fn feedback(transform: &str) -> String {
    let resources = format!(
        "
      - name: thing
        base: {{apiVersion: example.org/v1, kind: Thing}}
        patches:
        - {{fromFieldPath: status.text, toFieldPath: spec.text, transforms: [{transform}]}}
        - {{type: ToCompositeFieldPath, fromFieldPath: spec.text, toFieldPath: status.text}}
"
    );
    composition("XApp", "apps", &resources)
}

#[test]
fn states_that_come_back_are_an_error() {
    let flips = feedback("{type: map, map: {a: b, b: a}}");
    let xr = format!("{XR}status: {{text: a}}\n");
    let ran = settle(&[("xr.yaml", &xr), ("composition.yaml", &flips)], &[]);
    let thing = "Thing.example.org app-";
    let last = ran.stderr.lines().last().unwrap();
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let start = "biplane: error: does not settle: round 5 leads back to the state after round 1; what still changes: ";
    assert!(last.starts_with(start), "{}", ran.stderr);
    assert!(last.contains(thing) && last.contains("(status.text)"), "{last}");
}

#[test]
fn growth_without_end_is_an_error() {
    let grows = feedback("{type: string, string: {type: Format, fmt: '%sx'}}");
    let xr = format!("{XR}status: {{text: a}}\n");
    let files = [("xr.yaml", xr.as_str()), ("composition.yaml", &grows)];
    let ran = settle(&files, &["--max-rounds=7"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let last = ran.stderr.lines().last().unwrap();
    let start = "biplane: error: did not settle within 7 rounds (--max-rounds); what still changes: changed ";
    assert!(last.starts_with(start), "{last}");
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("round ")).count(), 7);
    let ran = settle(&files, &[]);
    assert!(ran.stderr.contains("did not settle within 20 rounds"), "{}", ran.stderr);
}

#[test]
fn a_composite_resource_that_composes_itself_is_an_error() {
    let itself = "
      - name: self
        base: {apiVersion: example.org/v1, kind: XApp, metadata: {name: app}}
";
    let ran = settle(&[("composition.yaml", &composition("XApp", "apps", itself))], &[]);
    fails(
        &ran,
        "a composite resource composes itself: XApp.example.org app composes XApp.example.org app",
    );
    let back = "
      - name: app
        base: {apiVersion: example.org/v1, kind: XApp, metadata: {name: app}}
";
    let ran = nested(&[("apis/part/composition.yaml", &composition("XPart", "parts", back))], &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let last = ran.stderr.lines().last().unwrap();
    let start = "biplane: error: a composite resource composes itself: XApp.example.org app composes XPart.example.org app-";
    assert!(last.starts_with(start), "{last}");
    assert!(last.ends_with(" composes XApp.example.org app"), "{last}");
}

#[test]
fn a_kind_that_composes_its_own_kind_for_ever_is_an_error() {
    let child = "
      - name: child
        base: {apiVersion: example.org/v1, kind: XApp}
";
    let ran = settle(&[("composition.yaml", &composition("XApp", "apps", child))], &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let last = ran.stderr.lines().last().unwrap();
    let start = "biplane: error: composite resources nest more than 10 deep: XApp.example.org app composes XApp.example.org app-";
    assert!(last.starts_with(start), "{last}");
}

#[test]
fn what_two_composite_resources_compose_is_an_error() {
    let shared = "
      - name: one
        base: {apiVersion: example.org/v1, kind: Leaf, metadata: {name: shared}}
";
    let app = composition("XApp", "apps", &format!("{APP}{shared}"));
    let part = composition("XPart", "parts", shared);
    let ran = nested(&[("composition.yaml", &app), ("apis/part/composition.yaml", &part)], &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let start = "biplane: error: Leaf.example.org shared is composed by both XApp.example.org app and XPart.example.org app-";
    assert!(ran.stderr.lines().last().unwrap().starts_with(start), "{}", ran.stderr);
}

#[test]
fn a_definition_gives_nested_composite_resources_their_defaults_and_layout() {
    let definition = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xparts.example.org}
spec:
  group: example.org
  names: {kind: XPart, plural: xparts}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              gloss: {type: string, default: matt}
";
    let part = PART
        .replace("spec.colour, toFieldPath: spec.colour", "spec.gloss, toFieldPath: spec.gloss");
    let part = composition("XPart", "parts", &part);
    let ran = nested(
        &[("apis/part/definition.yaml", definition), ("apis/part/composition.yaml", &part)],
        &[],
    );
    let documents = documents(&ran);
    assert_eq!(documents[1]["spec"]["gloss"], "matt");
    assert_eq!(documents[2]["spec"]["gloss"], "matt");
    assert!(documents[1]["spec"]["resourceRefs"].is_array(), "{}", ran.stdout);
    // A definition may also be given without a Composition.
    let ran = nested(
        &[("xpart.yaml", definition), ("apis/part/composition.yaml", &part)],
        &["--xrd=DIR/xpart.yaml", &format!("--xrd={}", "DIR/xapp.yaml")],
    );
    assert_eq!(ran.exit, 80, "{}", ran.stderr);
    let app = definition.replace("XPart", "XApp").replace("xparts", "xapps");
    let ran = nested(
        &[("xpart.yaml", definition), ("xapp.yaml", &app), ("apis/part/composition.yaml", &part)],
        &["--xrd=DIR/xpart.yaml", "--xrd=DIR/xapp.yaml", "-x"],
    );
    let documents = self::documents(&ran);
    assert_eq!(documents[0]["spec"]["gloss"], "matt");
    assert_eq!(documents[2]["spec"]["gloss"], "matt");
}

#[test]
fn a_failure_of_a_nested_render_says_whose_it_is() {
    let part = composition("XPart", "parts", PART).replace("mode: Pipeline", "mode: Resources");
    let ran = nested(&[("apis/part/composition.yaml", &part)], &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let last = ran.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("biplane: error: cannot render nested XPart.example.org app-"),
        "{last}"
    );
    assert!(last.contains("must use spec.mode: Pipeline"), "{last}");
}

#[test]
fn flags_that_make_no_sense_are_usage_errors() {
    let app = composition("XApp", "apps", APP);
    let files = [("composition.yaml", app.as_str())];
    let ran = settle(&files, &["--output-format=v1"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""));
    assert_eq!(
        ran.stderr,
        "biplane: error: --until-stable and --output-format=v1 can't be used together\n"
    );
    assert_eq!(settle(&files, &["--max-rounds=0"]).exit, 80);
    let folder = Folder::new();
    let (xr, app) = (folder.write("xr.yaml", XR), folder.write("composition.yaml", &app));
    for flag in ["--max-rounds=3", &format!("--compositions={app}")] {
        let ran = run(&["render", &xr, &app, flag]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (80, ""), "{flag}");
    }
    let ran = settle(&files, &["--compositions=DIR/xr.yaml"]);
    fails(&ran, r#"cannot load Compositions from "DIR/xr.yaml": there is no Composition in it"#);
}

/// A definition of parts that can be claimed.
const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xparts.example.org}
spec:
  group: example.org
  names: {kind: XPart, plural: xparts}
  claimNames: {kind: Part, plural: parts}
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
              colour: {type: string}
              gloss: {type: string, default: matt}
";

const CLAIM: &str = "
apiVersion: example.org/v1
kind: Part
metadata: {name: mine, namespace: shop}
spec: {colour: blue}
";

#[test]
fn a_claim_gets_its_composite_resource_and_everything_below() {
    let part = composition("XPart", "parts", PART);
    let files = [("composition.yaml", &*part), ("xrd.yaml", DEFINITION), ("claim.yaml", CLAIM)];
    let flags = ["--xrd=DIR/xrd.yaml", "-x"];
    let once = documents(&render_on(&files, "DIR/claim.yaml", &flags));
    let stable = [&flags[..], &["--until-stable"]].concat();
    let ran = render_on(&files, "DIR/claim.yaml", &stable);
    let [xr, leaf] = &documents(&ran)[..] else { panic!("{}", ran.stdout) };
    assert_eq!(xr["metadata"]["name"], once[0]["metadata"]["name"]);
    let label = |xr: &Value, name: &str| xr["metadata"]["labels"][name].clone();
    for name in ["crossplane.io/claim-name", "crossplane.io/claim-namespace"] {
        assert_eq!(label(xr, name), label(&once[0], name));
    }
    assert_eq!(xr["spec"]["claimRef"], once[0]["spec"]["claimRef"]);
    assert_eq!(xr["spec"]["claimRef"]["name"], "mine");
    assert_eq!((&xr["spec"]["gloss"], &xr["status"]["address"]), (&"matt".into(), &"there".into()));
    assert_eq!(leaf, &once[1]);
    assert_eq!(leaf["metadata"]["labels"]["crossplane.io/claim-namespace"], "shop");
    let name = xr["metadata"]["name"].as_str().unwrap();
    let first = format!("round 1: created Leaf.example.org {name}-");
    assert!(ran.stderr.starts_with(&first), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("round 3: nothing changed; ready\n"), "{}", ran.stderr);

    // What came of it can be observed.
    let files = [&files[..], &[("state.yaml", &*ran.stdout)]].concat();
    let flags = [&stable[..], &["-o=DIR/state.yaml"]].concat();
    let again = render_on(&files, "DIR/claim.yaml", &flags);
    assert_eq!(again.stdout, ran.stdout, "{}", again.stderr);
}

#[test]
fn a_claim_that_is_composed_leads_to_a_composite_resource_too() {
    let claims = "
      - name: claim
        base: {apiVersion: example.org/v1, kind: Part, metadata: {namespace: shop}}
        patches:
        - {fromFieldPath: spec.colour, toFieldPath: spec.colour}
";
    let ran = nested(
        &[
            ("composition.yaml", &composition("XApp", "apps", claims)),
            ("apis/part/definition.yaml", DEFINITION),
        ],
        &[],
    );
    let documents = documents(&ran);
    let names: Vec<_> = kinds(&ran).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(names, ["XApp", "Part", "XPart", "Leaf"], "{}", ran.stderr);
    assert_eq!(documents[3]["spec"]["colour"], "red");
    assert_eq!(documents[1]["metadata"].get("finalizers"), None);
    let ready = |document: &Value| {
        let conditions = document["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    assert!(ready(&documents[0]) && ready(&documents[1]), "{}", ran.stdout);
}

/// SEL-4
#[test]
fn a_default_that_is_not_there_is_missed_as_in_a_control_plane() {
    let default = DEFINITION
        .replace("  claimNames:", "  defaultCompositionRef: {name: missing}\n  claimNames:");
    let ran = nested(&[("apis/part/definition.yaml", &default)], &[]);
    assert_eq!(ran.exit, 1);
    let last = ran.stderr.lines().last().unwrap();
    assert!(last.ends_with("uses Composition \"missing\", which is not given"), "{last}");
}

#[test]
fn a_claim_that_has_no_definition_of_its_own_is_a_resource() {
    let claims = "
      - name: claim
        base: {apiVersion: example.org/v1, kind: Part, metadata: {namespace: shop}}
";
    let ran = nested(&[("composition.yaml", &composition("XApp", "apps", claims))], &[]);
    assert_eq!(documents(&ran).len(), 2, "{}", ran.stderr);
}
