//! Tests observed resources that were copied from a cluster and have another owner UID.

use crate::mistakes::{XR, render};

const REFUSED: &str = "biplane: error: cannot render composite resource: invalid observed resources: observed resource settings has a controller ref but is not controlled by the XR";
const THEIRS: &str = "0b8b9a34-2f6c-4c4e-9a53-0d6ad6a3c1f1";
/// The UID that is derived from the XR's name (RX-26).
const OURS: &str = "3cd107d0-dda8-5e38-b30a-ffff75c631d4";

fn observed(controller: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: default\n  annotations: {{crossplane.io/composition-resource-name: {name}}}\n  ownerReferences:\n  - {{apiVersion: example.org/v1, kind: XApp, name: {controller}, uid: {THEIRS}, controller: true}}\n"
    )
}

/// ENG-9, ENG-10, T-34
#[test]
fn a_resource_that_another_uid_controls_is_refused_with_both_uids_and_advice() {
    let file = observed("app", "settings");
    let ran = render(&[("o.yaml", &file)], &["-o=DIR/o.yaml"]);
    let lines: Vec<_> = ran.stderr.lines().map(str::trim_start).collect();
    let made = "The XR, XApp app, is rendered with uid ";
    assert_eq!(lines[0], REFUSED, "{ran:?}");
    assert_eq!(
        lines[1],
        format!("ConfigMap default/settings is controlled by XApp app of uid {THEIRS}.")
    );
    assert!(lines[2].starts_with(made) && lines[2].contains(", made from its name. "), "{ran:?}");
    let advice = format!(
        "Set metadata.uid of the XR to {THEIRS}, or remove the owner references from the observed resources."
    );
    assert!(lines[2].ends_with(&advice), "{ran:?}");
    assert_eq!((ran.exit, lines.len()), (1, 3));

    // The UID in the message is the one that the render uses.
    let uid = lines[2].strip_prefix(made).unwrap().split(',').next().unwrap();
    let file = file.replace(THEIRS, uid);
    let ran = render(&[("o.yaml", &file)], &["-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert_eq!(uid, OURS);
}

/// ENG-10
#[test]
fn the_advice_works() {
    let file = observed("app", "settings");
    let own = XR.replace("  name: app\n", &format!("  name: app\n  uid: {THEIRS}\n"));
    let ran = render(&[("xr.yaml", &own), ("o.yaml", &file)], &["-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let (free, _) = file.split_once("  ownerReferences:").unwrap();
    let ran = render(&[("o.yaml", free)], &["-o=DIR/o.yaml"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

/// ENG-10
#[test]
fn resources_of_somebody_else_are_told_from_those_of_the_xr() {
    let own = XR.replace("  name: app\n", "  name: app\n  uid: mine\n");
    let names = ["settings", "b", "c", "d", "e"];
    let files: Vec<_> = names.iter().map(|name| observed("other", name)).collect();
    let file = files.join("---\n");
    let ran = render(&[("xr.yaml", &own), ("o.yaml", &file)], &["-o=DIR/o.yaml"]);
    let lines: Vec<_> = ran.stderr.lines().map(str::trim_start).collect();
    assert_eq!(lines.len(), 6, "{ran:?}");
    assert_eq!(
        lines[1],
        format!("ConfigMap default/settings is controlled by XApp other of uid {THEIRS}.")
    );
    assert_eq!(lines[4], "So are 2 more by others.");
    let advice = "The XR, XApp app, is rendered with uid mine. Leave out what belongs to others; ";
    assert!(lines[5].starts_with(advice), "{ran:?}");
}

/// ENG-10: output of v1 has owner references without a UID.
#[test]
fn owners_without_a_uid_are_called_so() {
    let file = observed("app", "settings").replace(THEIRS, "''");
    let ran = render(&[("o.yaml", &file)], &["-o=DIR/o.yaml"]);
    let lines: Vec<_> = ran.stderr.lines().map(str::trim_start).collect();
    assert_eq!(lines[1], "ConfigMap default/settings is controlled by XApp app without a uid.");
    let advice = "made from its name. Remove the owner references from the observed resources.";
    assert!(lines[2].ends_with(advice), "{ran:?}");
}
