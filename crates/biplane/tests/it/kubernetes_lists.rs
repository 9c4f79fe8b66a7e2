//! Tests lists, as printed by `kubectl get -o yaml` for several objects: every item is read.

use crate::fixtures::composition;
use crate::mistakes::{COMPOSITION, XR, render};
use crate::support::{Folder, run, run_on};

fn map(name: &str) -> String {
    format!(
        "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: {name}\n    annotations: {{crossplane.io/composition-resource-name: {name}}}\n"
    )
}

fn list() -> String {
    format!("apiVersion: v1\nkind: List\nmetadata: {{}}\nitems:\n{}{}", map("one"), map("two"))
}

const COMPOSING: &str = composition!(
    "  - step: compose
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - {name: one, base: {apiVersion: v1, kind: ConfigMap}}
      - {name: two, base: {apiVersion: v1, kind: ConfigMap}}
"
);

/// Observed objects keep their names.
#[test]
fn observed_resources_may_be_in_a_list() {
    let compose = |observed: &str| {
        let files = [("xr.yaml", XR), ("composition.yaml", COMPOSING), ("o.yaml", observed)];
        let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", "-o=DIR/o.yaml"];
        let ran = run_on(&files, &line);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
        ran.stdout
    };
    let alone = |name: &str| map(name).replacen("- ", "", 1).replace("\n  ", "\n");
    let plain = compose(&format!("{}---\n{}", alone("one"), alone("two")));
    assert!(plain.contains("\n  name: one\n") && plain.contains("\n  name: two\n"), "{plain}");
    assert_eq!(compose(&list()), plain);
    let of_one_kind = list().replace("kind: List", "kind: ConfigMapList");
    assert_eq!(compose(&of_one_kind), plain);
    // In a typed list, items may omit their kind.
    let bare = of_one_kind.replace("- apiVersion: v1\n  kind: ConfigMap\n  metadata", "- metadata");
    assert_eq!(compose(&bare), plain);
}

#[test]
fn what_is_wrong_in_a_list_is_shown_where_it_is() {
    let nameless = list().replacen("  kind: ConfigMap\n", "", 1);
    let twice = list().replace("    name: two", "    name: one");
    for (text, place) in [
        (nameless, "--> DIR/o.yaml, document 1, line 5, column 3\n"),
        (twice, "--> DIR/o.yaml, document 1, line 13, column 11\n"),
    ] {
        let ran = render(&[("o.yaml", &text)], &["-o=DIR/o.yaml"]);
        assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
        assert!(ran.stderr.contains(place), "{}", ran.stderr);
    }
}

/// Required resources and composite resources.
#[test]
fn other_resources_may_be_in_a_list() {
    let composition = COMPOSITION.replace("function-auto-ready", "function-environment-configs")
        + "    input:\n      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1\n      kind: Input\n      spec:\n        environmentConfigs:\n        - type: Reference\n          ref: {name: e}\n";
    let list = "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfigList\nitems:\n- metadata: {name: e}\n  data: {region: eu}\n";
    for flag in ["-e=DIR/e.yaml", "--extra-resources=DIR/e.yaml"] {
        let files = [("xr.yaml", XR), ("composition.yaml", &composition), ("e.yaml", list)];
        let line = ["render", "DIR/xr.yaml", "DIR/composition.yaml", flag, "-c"];
        let ran = run_on(&files, &line);
        assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains("region: eu\n"), "{}", ran.stdout);
    }

    let folder = Folder::new();
    let composition = folder.write("composition.yaml", COMPOSITION);
    let xr = |name: &str| {
        format!("{{apiVersion: example.org/v1, kind: XApp, metadata: {{name: {name}}}}}")
    };
    let text = format!("{{apiVersion: v1, kind: List, items: [{}, {}]}}\n", xr("a"), xr("b"));
    let xrs = format!("--xrs={}", folder.write("xrs.yaml", &text));
    let ran = run(&["render", &composition, &xrs]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let found: Vec<_> = ran.stdout.lines().filter_map(|l| l.strip_prefix("  name: ")).collect();
    assert_eq!(found, ["a", "b"]);
}
