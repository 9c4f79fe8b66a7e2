//! Tests claims as input: they are rendered as their composite resources.

use crate::support::{Ran, example, render_on, run, shown};

const CLAIM: &str = "
apiVersion: example.org/v1
kind: Database
metadata:
  name: orders
  namespace: shop
  labels: {team: a}
spec:
  size: 3
  writeConnectionSecretToRef: {name: secret}
";
const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: databases}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XDatabase}
  mode: Pipeline
  pipeline:
  - step: patch
    functionRef: {name: function-patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: instance
        base: {apiVersion: example.org/v1, kind: Instance}
        patches:
        - {fromFieldPath: spec.size, toFieldPath: spec.size}
        - {fromFieldPath: spec.engine, toFieldPath: spec.engine}
        - {fromFieldPath: spec.claimRef.name, toFieldPath: spec.for}
";
const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xdatabases.example.org}
spec:
  group: example.org
  names: {kind: XDatabase, plural: xdatabases}
  claimNames: {kind: Database, plural: databases}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              engine: {type: string, default: postgres}
";

fn render(files: &[(&str, &str)], flags: &[&str]) -> Ran {
    let usual =
        [("claim.yaml", CLAIM), ("composition.yaml", COMPOSITION), ("xrd.yaml", DEFINITION)];
    render_on(&[&usual, files].concat(), "DIR/claim.yaml", flags)
}

/// RX-2, SYN-1 to SYN-3, RX-25
#[test]
fn a_claim_is_rendered_as_the_composite_resource_that_it_becomes() {
    let ran = render(&[], &["--xrd=DIR/xrd.yaml", "-x"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let documents = biplane_model::yaml::parse_documents("stdout", &ran.stdout).unwrap();
    let [xr, instance] = &documents[..] else { panic!("{}", ran.stdout) };
    let (xr, instance) = (&xr.value, &instance.value);
    assert_eq!(xr["kind"], "XDatabase");
    let name = xr["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("orders-") && name.len() == "orders-".len() + 5, "{name}");
    assert_eq!(xr["metadata"].get("namespace"), None);
    let labels = serde_json::json!({
        "crossplane.io/claim-name": "orders",
        "crossplane.io/claim-namespace": "shop",
        "team": "a",
    });
    assert_eq!(xr["metadata"]["labels"], labels);
    let claim = serde_json::json!({
        "apiVersion": "example.org/v1", "kind": "Database", "name": "orders", "namespace": "shop",
    });
    assert_eq!(xr["spec"]["claimRef"], claim);
    assert_eq!(xr["spec"].get("writeConnectionSecretToRef"), None);
    // The definition's defaults are applied, and the layout is the legacy one.
    let spec = serde_json::json!({"engine": "postgres", "for": "orders", "size": 3});
    assert_eq!(instance["spec"], spec);
    assert_eq!(xr["spec"]["resourceRefs"][0]["kind"], "Instance");
    let labels = serde_json::json!({
        "crossplane.io/claim-name": "orders",
        "crossplane.io/claim-namespace": "shop",
        "crossplane.io/composite": name,
    });
    assert_eq!(instance["metadata"]["labels"], labels);
    assert_eq!(render(&[], &["--xrd=DIR/xrd.yaml", "-x"]), ran);
}

#[test]
fn the_v1_line_and_many_at_a_time_take_claims_too() {
    let ran = render(&[], &["--xrd=DIR/xrd.yaml", "--output-format=v1"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("kind: XDatabase\n"), "{}", ran.stdout);

    // Claims and composite resources may be mixed.
    let xr = "{apiVersion: example.org/v1, kind: XDatabase, metadata: {name: direct}}";
    let many = format!("{CLAIM}---\n{xr}\n");
    let ran = render(&[("xrs.yaml", &many)], &["--xrs=DIR/xrs.yaml", "--xrd=DIR/xrd.yaml"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("kind: XDatabase\nmetadata:").count(), 2, "{}", ran.stdout);
}

/// RX-2, T-2
#[test]
fn without_its_definition_a_claim_is_refused_with_a_hint() {
    let mismatch = "biplane: error: composition's compositeTypeRef.kind (XDatabase) does not match XR's kind (Database)\n";
    let hint =
        "                If it is a claim, pass its CompositeResourceDefinition with --xrd.\n";
    let ran = render(&[], &[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.starts_with(mismatch) && ran.stderr.ends_with(hint), "{}", ran.stderr);
    // Another definition does not help, and the user already knows the flag.
    let other = DEFINITION.replace("kind: Database", "kind: Store");
    let ran = render(&[("xrd.yaml", &other)], &["--xrd=DIR/xrd.yaml"]);
    assert_eq!(ran.exit, 1);
    assert!(ran.stderr.starts_with(mismatch) && !ran.stderr.contains("--xrd"), "{}", ran.stderr);
}

#[test]
fn a_claim_that_cannot_be_is_refused() {
    let modern = DEFINITION.replace("  group:", "  scope: Namespaced\n  group:");
    let ran = render(&[("xrd.yaml", &modern)], &["--xrd=DIR/xrd.yaml"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (1, ""));
    assert_eq!(
        ran.stderr,
        "biplane: error: cannot make a composite resource of Database \"orders\": Only LegacyCluster composite resources can offer claims\n"
    );
}

#[test]
fn the_example_of_the_guide_becomes_what_is_shown() {
    let file = |name: &str| example("nested-composition", name);
    let definition = format!("--xrd={}", file("definition.yaml"));
    let ran = run(&["render", &file("claim.yaml"), &file("composition.yaml"), &definition, "-x"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    let shown = shown("render.md", "biplane render claim.yaml");
    let shown = shown.strip_suffix("...\n").unwrap();
    assert!(shown.contains("claimRef:") && ran.stdout.starts_with(shown), "{}", ran.stdout);
}
