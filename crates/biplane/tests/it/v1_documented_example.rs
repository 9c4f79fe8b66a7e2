//! Renders the example of Crossplane v1's documentation, and compares with the output shown there.

use crate::support::{Folder, run};

const XR: &str = "\
apiVersion: example.crossplane.io/v1
kind: XBucket
metadata:
  name: example-render
spec:
  bucketRegion: us-east-2
";
const COMPOSITION: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: example-render
spec:
  compositeTypeRef:
    apiVersion: example.crossplane.io/v1
    kind: XBucket
  mode: Pipeline
  pipeline:
  - step: patch-and-transform
    functionRef:
      name: function-patch-and-transform
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources:
      - name: storage-bucket
        base:
          apiVersion: s3.aws.upbound.io/v1beta1
          kind: Bucket
        patches:
        - type: FromCompositeFieldPath
          fromFieldPath: spec.bucketRegion
          toFieldPath: spec.forProvider.region
";
const FUNCTIONS: &str = "\
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: function-patch-and-transform
spec:
  package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform:v0.8.2
";
const SHOWN: &str = "\
---
apiVersion: example.crossplane.io/v1
kind: XBucket
metadata:
  name: example-render
---
apiVersion: s3.aws.upbound.io/v1beta1
kind: Bucket
metadata:
  annotations:
    crossplane.io/composition-resource-name: storage-bucket
  generateName: example-render-
  labels:
    crossplane.io/composite: example-render
  ownerReferences:
  - apiVersion: example.crossplane.io/v1
    blockOwnerDeletion: true
    controller: true
    kind: XBucket
    name: example-render
    uid: \"\"
spec:
  forProvider:
    region: us-east-2
";
/// Output that the documented release did not print yet.
const LEFT_OUT: &str = "\
status:
  conditions:
  - lastTransitionTime: \"2024-01-01T00:00:00Z\"
    message: 'Unready resources: storage-bucket'
    reason: Creating
    status: \"False\"
    type: Ready
";

/// RL-1
#[test]
fn the_documented_example_renders_as_documented() {
    let folder = Folder::new();
    let files = [("xr.yaml", XR), ("composition.yaml", COMPOSITION), ("functions.yaml", FUNCTIONS)];
    let files = files.map(|(name, text)| folder.write(name, text));
    let ran = run(&["render", &files[0], &files[1], &files[2], "--output-format=v1"]);
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains(LEFT_OUT), "{}", ran.stdout);
    assert_eq!(ran.stdout.replace(LEFT_OUT, ""), SHOWN);
}
