//! Tests output that is used as input again, and composite resources among the observed resources.

use std::process::Command;

use crate::fixtures::composition;
use crate::support::{Folder, Ran, render_on};

const XR: &str = "apiVersion: example.org/v1\nkind: XApp\nmetadata: {name: one}\nspec: {size: 3}\n";
const COMPOSITION: &str = composition!(
    "  - step: patch
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: settings
        base: {apiVersion: v1, kind: ConfigMap, metadata: {namespace: default}}
        readinessChecks: [{type: None}]
        patches:
        - fromFieldPath: spec.size
          toFieldPath: data.size
          transforms: [{type: convert, convert: {toType: string}}]
        - {fromFieldPath: status.seen, toFieldPath: data.seen}
        - {type: ToCompositeFieldPath, fromFieldPath: data.size, toFieldPath: status.seen}
  - step: ready
    functionRef: {name: function-auto-ready}
"
);

fn render(files: &[(&str, &str)], flags: &[&str]) -> Ran {
    let usual = [("xr.yaml", XR), ("composition.yaml", COMPOSITION)];
    render_on(&[&usual, files].concat(), "DIR/xr.yaml", flags)
}

fn rendered(files: &[(&str, &str)], flags: &[&str]) -> String {
    let ran = render(files, flags);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    ran.stdout
}

/// Two composite resources.
fn two() -> String {
    format!("{XR}---\n{}", XR.replace("name: one", "name: two").replace('3', "4"))
}

#[test]
fn the_whole_output_can_be_observed() {
    let state = rendered(&[], &["--until-stable"]);
    assert_eq!(state.matches("seen: \"3\"").count(), 2, "{state}");
    let files = [("state.yaml", state.as_str())];
    let again = render(&files, &["-o=DIR/state.yaml", "--until-stable"]);
    assert_eq!((again.exit, &again.stdout), (0, &state), "{}", again.stderr);
    let first = "round 1: changed XApp.example.org one (metadata.labels, spec.crossplane, status.conditions); ready\n";
    assert_eq!(again.stderr, format!("{first}round 2: nothing changed; ready\n"));
    // A single reconcile also needs the earlier status.
    assert_eq!(rendered(&files, &["-o=DIR/state.yaml"]), state);
}

#[test]
fn the_status_of_a_composite_resource_is_its_own_and_not_that_of_before() {
    let state = rendered(&[], &["--until-stable"]);
    let xr = format!("{XR}status: {{seen: mine}}\n");
    let ran = rendered(&[("xr.yaml", &xr), ("state.yaml", &state)], &["-o=DIR/state.yaml"]);
    assert!(ran.contains("seen: mine"), "{ran}");
}

#[test]
fn what_was_copied_from_a_cluster_goes_with_the_composite_resource_that_was() {
    let own = XR.replace("name: one", "name: one, uid: u-1");
    let state = rendered(&[("xr.yaml", &own)], &["--until-stable", "-x"]);
    assert!(state.contains("uid: u-1"), "{state}");
    let again = render(&[("state.yaml", &state)], &["-o=DIR/state.yaml"]);
    assert_eq!(again.exit, 0, "{}", again.stderr);
    assert!(again.stdout.contains("uid: u-1"), "{}", again.stdout);
}

#[test]
fn a_composite_resource_among_what_is_required_changes_nothing() {
    let plain = rendered(&[], &[]);
    assert_eq!(rendered(&[], &["-e=DIR/xr.yaml"]), plain);
    let settled = rendered(&[], &["--until-stable"]);
    let files = [("state.yaml", settled.as_str())];
    assert_eq!(rendered(&files, &["-e=DIR/state.yaml"]), plain);
    assert_eq!(rendered(&files, &["-e=DIR/state.yaml", "--until-stable"]), settled);
    let engine = concat!("--engine=", env!("CARGO_BIN_EXE_biplane"));
    assert_eq!(rendered(&[], &["-e=DIR/xr.yaml", engine]), plain);
}

/// A pipeline may leave a resource unnamed.
#[test]
fn names_that_nothing_is_known_for_are_the_same_every_time() {
    let composition = composition!(
        "  - step: compose
    functionRef: {name: function-dummy}
    input:
      apiVersion: dummy.fn.crossplane.io/v1beta1
      kind: Response
      response: {desired: {resources: {'': {resource: {apiVersion: v1, kind: ConfigMap}}}}}
"
    );
    let files = [("composition.yaml", composition)];
    let first = rendered(&files, &[]);
    assert!(first.contains("\n  name: one-"), "{first}");
    assert_eq!(rendered(&files, &[]), first);
}

#[test]
fn each_of_many_composite_resources_observes_its_own() {
    let two = two();
    let many = |files: &[(&str, &str)], flags: &[&str]| {
        rendered(
            &[&[("xrs.yaml", &*two)], files].concat(),
            &[&["--xrs=DIR/xrs.yaml"], flags].concat(),
        )
    };
    let state = many(&[], &["--until-stable"]);
    let files = [("state.yaml", state.as_str())];
    assert_eq!(many(&files, &["-o=DIR/state.yaml"]), state);
    assert_eq!(many(&files, &["-o=DIR/state.yaml", "--until-stable"]), state);
    // Without owner references; the label replaces them.
    let owner = "  ownerReferences:\n  - apiVersion: example.org/v1\n    blockOwnerDeletion: true\n    controller: true\n    kind: XApp\n";
    let mut free = String::new();
    let mut skipped = 0;
    for block in state.split(owner) {
        // The name and the UID of the reference are kept.
        let rest = if free.is_empty() { block } else { block.splitn(3, '\n').last().unwrap() };
        skipped += usize::from(!free.is_empty());
        free.push_str(rest);
    }
    assert_eq!((skipped, free.contains("ownerReferences")), (2, false), "{free}");
    assert_eq!(many(&[("state.yaml", &free)], &["-o=DIR/state.yaml"]), state);
}

#[test]
fn what_belongs_to_none_of_many_composite_resources_is_refused() {
    let observed = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: stray\n  annotations: {crossplane.io/composition-resource-name: settings}\n";
    let files = [("xrs.yaml", &*two()), ("o.yaml", observed)];
    let ran = render(&files, &["--xrs=DIR/xrs.yaml", "-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    let first = "biplane: error: invalid observed resources: these belong to none of the composite resources, or to several: ConfigMap stray";
    assert_eq!(ran.stderr.lines().next(), Some(first));
    // With a single composite resource, ownership is not checked.
    let ran = render(&files[1..], &["-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

#[test]
fn a_composite_resource_that_is_there_twice_is_refused() {
    let twice = format!("{XR}---\n{}---\n{XR}", XR.replace("name: one", "name: two"));
    let ran = render(&[("xrs.yaml", &twice)], &["--xrs=DIR/xrs.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("composite resource XApp.example.org one is there twice"),
        "{ran:?}"
    );
}

#[test]
fn what_is_both_observed_and_required_is_mentioned_if_it_differs() {
    let state = rendered(&[], &[]);
    let (_, map) = state.split_once("\n---\n").unwrap();
    let other = map.replace("size: \"3\"", "size: \"5\"");
    let files = [("o.yaml", map), ("same.yaml", map), ("other.yaml", &*other)];
    let said = |flags: &[&str]| render(&files, &[&["-o=DIR/o.yaml"], flags].concat()).stderr;
    assert_eq!(said(&["-e=DIR/same.yaml"]), "");
    let warning = "biplane: warning: ConfigMap default/one-";
    let stderr = said(&["-e=DIR/other.yaml"]);
    assert!(
        stderr.starts_with(warning) && stderr.ends_with("the required one counts\n"),
        "{stderr}"
    );
    let stderr = said(&["-e=DIR/other.yaml", "--until-stable"]);
    assert!(
        stderr.starts_with(warning) && stderr.contains("the observed one counts\n"),
        "{stderr}"
    );
}

/// T-18
#[test]
fn a_hundred_processes_print_the_same_bytes() {
    let folder = Folder::new();
    let state = rendered(&[], &["--until-stable"]);
    for (name, text) in [
        ("xr.yaml", XR),
        ("composition.yaml", COMPOSITION),
        ("xrs.yaml", &two()),
        ("state.yaml", &state),
    ] {
        folder.write(name, text);
    }
    let given = ["-o=state.yaml", "-e=state.yaml", "-rxc", "--summary"];
    for line in [
        &["render", "xr.yaml", "composition.yaml"][..],
        &["render", "composition.yaml", "--xrs=xrs.yaml", "--until-stable"],
    ] {
        let run = |_| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
            let output =
                command.args(line).args(given).current_dir(folder.path()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            output
        };
        let first = run(0);
        assert!(!first.stdout.is_empty());
        assert!((1..100).map(run).all(|other| other == first), "{line:?}");
    }
}
