//! Tests that errors about missing input name the flag that supplies it, and that timeouts are
//! reported.

use std::process::Command;

use crate::mistakes::{COMPOSITION, FUNCTIONS, XR, fails, render};
use crate::support::{Folder, run_on};

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_start).collect()
}

/// A Composition whose step needs a Secret.
fn with_credentials() -> String {
    COMPOSITION.replace(
        "      name: function-auto-ready\n",
        "      name: function-auto-ready\n    credentials:\n    - name: login\n      source: Secret\n      secretRef: {namespace: default, name: keys}\n",
    )
}

#[test]
fn a_missing_secret_names_the_flag() {
    for flags in [&[][..], &["--output-format=v1"]] {
        let ran = render(&[("composition.yaml", &with_credentials())], flags);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{ran:?}");
        let hint = "Secret default/keys is missing: pass it with --function-credentials.";
        assert_eq!(lines(&ran.stderr).last(), Some(&hint), "{ran:?}");
    }
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: default}\n";
    let files = [("composition.yaml", &*with_credentials()), ("s.yaml", secret)];
    let ran = render(&files, &["--function-credentials=DIR/s.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "the advice works");
}

#[test]
fn a_template_that_fails_is_shown_with_its_line() {
    let step = "  - step: templates
    functionRef:
      name: function-go-templating
    input:
      apiVersion: gotemplating.fn.crossplane.io/v1beta1
      kind: GoTemplate
      source: Inline
      inline:
        template: |
          # {{ 1 }}

          # {{ .observed | tooYaml }}
";
    let composition = COMPOSITION.replace("  - step: ready\n", &format!("{step}  - step: ready\n"));
    let files = [("xr.yaml", XR), ("composition.yaml", &*composition)];
    let ran = run_on(&files, &["render", "DIR/xr.yaml", "DIR/composition.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{ran:?}");
    for said in [
        "template: manifests:3: function \"tooYaml\" not defined\n",
        "--> DIR/composition.yaml, document 1, line 22, column 28\n",
        " 22 |           # {{ .observed | tooYaml }}\n",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    assert!(ran.stderr.contains("There is no `tooYaml`. Did you mean `toYaml`"), "{ran:?}");
}

#[test]
fn a_missing_environment_config_names_the_flag() {
    let step = "  - step: environment
    functionRef:
      name: function-environment-configs
    input:
      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
      kind: Input
      spec:
        environmentConfigs:
        - type: Reference
          ref: {name: region}
";
    let composition = COMPOSITION.replace("  - step: ready\n", &format!("{step}  - step: ready\n"));
    let files = [("xr.yaml", XR), ("composition.yaml", &*composition)];
    let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml"];
    let ran = run_on(&files, &line);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""), "{ran:?}");
    let hint = "EnvironmentConfig region is missing: pass it with --required-resources.";
    assert_eq!(lines(&ran.stderr).last(), Some(&hint), "{ran:?}");

    let config = "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: region}\ndata: {}\n";
    let files = [files[0], files[1], ("e.yaml", config)];
    let ran = run_on(&files, &[&line[..], &["-e=DIR/e.yaml"]].concat());
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "the advice works");
}

#[test]
fn resources_of_a_nested_composite_resource_need_it_beside_them() {
    let observed = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part-a\n  namespace: default\n  ownerReferences:\n  - {apiVersion: example.org/v1, kind: XPart, name: part, uid: u, controller: true}\n";
    let ran = render(&[("o.yaml", observed)], &["-o=DIR/o.yaml"]);
    let advice = "Leave out what belongs to XPart part. If the XR composes XPart part, render both with --until-stable and --compositions, and add XPart part itself to the observed resources.";
    assert!(lines(&ran.stderr).last().unwrap().ends_with(advice), "{ran:?}");
    let ran = render(&[("o.yaml", observed)], &["-o=DIR/o.yaml", "--until-stable"]);
    let advice = "If it composes XPart part, add XPart part itself to the observed resources; otherwise leave out what belongs to XPart part.";
    assert!(lines(&ran.stderr).last().unwrap().ends_with(advice), "{ran:?}");
}

#[test]
fn a_file_that_is_no_definition_is_named() {
    let ran = render(&[], &["--xrd=DIR/composition.yaml"]);
    let warning = "biplane: warning: DIR/composition.yaml is no CompositeResourceDefinition: its kind is \"Composition\"";
    assert_eq!(ran.stderr.lines().next(), Some(warning), "{ran:?}");
    assert_eq!(ran.exit, 1);
}

/// Files are read first, like upstream.
#[test]
fn no_time_at_all_is_too_little() {
    for flags in [&["--timeout=0"][..], &["--timeout=0s", "--output-format=json"]] {
        fails(&[], flags, 1, "cannot render composite resource: context deadline exceeded");
    }
    let error = "composition's compositeTypeRef.kind (XApp) does not match XR's kind (XOther)";
    fails(&[("xr.yaml", &XR.replace("XApp", "XOther"))], &["--timeout=0"], 1, error);
}

#[test]
fn the_time_bounds_what_is_read_too() {
    let folder = Folder::new();
    let xr = folder.write("xr.yaml", XR);
    let functions = folder.write("functions.yaml", FUNCTIONS);
    let pipe = folder.at("composition.yaml");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // Without a writer, opening the pipe would block forever.
    let output = Command::new(env!("CARGO_BIN_EXE_biplane"))
        .args(["render", &xr, pipe.to_str().unwrap(), &functions, "--timeout=100ms"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.trim_end().ends_with(": context deadline exceeded"), "{stderr}");
}

#[test]
fn operations_know_no_v1_line() {
    let folder = Folder::new();
    let operation = folder.write("operation.yaml", "apiVersion: ops.crossplane.io/v1alpha1\n");
    let ran = crate::support::run(&["operation", "render", &operation, "--output-format=v1"]);
    let error = "biplane: error: --output-format must be one of \"v2\",\"json\" but got \"v1\"";
    assert_eq!((ran.exit, ran.stderr.lines().next()), (80, Some(error)));
}

/// A pipeline of one step with a misspelt path, a misspelt member and a patch that requires a value.
const PATCHED: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: apps}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XApp}
  mode: Pipeline
  pipeline:
  - step: patch
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets:
      - name: common
        patches:
        - fromFieldPath: spec.regoin
          toFieldPath: data.region
      resources:
      - name: settings
        base: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: n}}
        patches:
        - type: PatchSet
          patchSetName: common
        - fromFieldPath: spec.size
          toFieldPath: data.size
          policy: {fromFieldPath: Required}
";

const DEFINITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xapps.example.org}
spec:
  group: example.org
  names: {kind: XApp, plural: xapps}
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
              region: {type: string}
              size: {type: string}
";

/// Both commands look at the same, and say the same.
#[test]
fn mistakes_in_patches_are_told_with_their_place() {
    let files = [("xr.yaml", XR), ("composition.yaml", PATCHED), ("xrd.yaml", DEFINITION)];
    let render = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "--xrd=DIR/xrd.yaml"];
    let validate = [
        "validate",
        "DIR/xrd.yaml",
        "DIR/composition.yaml,DIR/xr.yaml",
        "--crossplane-image=",
        "--cache-dir=DIR/cache",
    ];
    let misspelt = "no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region, for resource \"settings\"";
    let held_back = "XApp app has no spec.size, which the patch requires: resource \"settings\" is not composed";
    let told = format!(
        "biplane: warning: {misspelt}
--> DIR/composition.yaml, document 1, line 16, column 26
 16 |         - fromFieldPath: spec.regoin
    |                          ^
biplane: warning: {held_back}
--> DIR/composition.yaml, document 1, line 24, column 26
 24 |         - fromFieldPath: spec.size
    |                          ^
"
    );
    for line in [&render[..], &validate[..]] {
        let ran = run_on(&files, &[line, &["--locations=always"]].concat());
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, told.as_str()), "{line:?}");
        for quiet in [&[][..], &["--locations=never"]] {
            let ran = run_on(&files, &[line, quiet].concat());
            assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{line:?}");
        }
    }

    // With a value, or if the resource exists, nothing is held back.
    let xr = XR.replace("spec: {}", "spec: {size: large}");
    let ran = run_on(
        &[("xr.yaml", &*xr), files[1], files[2]],
        &[&render[..], &["--locations=always"]].concat(),
    );
    assert!(ran.stderr.contains(misspelt) && !ran.stderr.contains("requires"), "{ran:?}");
    let observed = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-1\n  namespace: n\n  annotations: {crossplane.io/composition-resource-name: settings}\n  ownerReferences:\n  - {apiVersion: example.org/v1, kind: XApp, name: app, uid: u, controller: true}\n";
    let ran = run_on(
        &[files[0], files[1], files[2], ("o.yaml", observed)],
        &[&render[..], &["--locations=always", "-o=DIR/o.yaml"]].concat(),
    );
    assert!(ran.stderr.contains(misspelt) && !ran.stderr.contains("requires"), "{ran:?}");
}
