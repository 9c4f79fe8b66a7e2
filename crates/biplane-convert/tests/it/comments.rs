//! Tests that comments, order and style of a file survive where nothing changes.

use biplane_convert::composition_environment;

use crate::pipeline;

#[test]
fn comments_move_with_what_they_are_about() {
    let text = "\
# Copyright
---
# A bucket with a name.
kind: Composition # the kind
apiVersion: apiextensions.crossplane.io/v1
metadata:
    name: bucket   # four spaces

spec:
  # Which composite resource.
  compositeTypeRef: {kind: XBucket, apiVersion: 'example.org/v1'}

  # What all have.
  patchSets:
    - name: common
      patches:
        # The region.
        - fromFieldPath: spec.region
          toFieldPath: \"spec.forProvider.region\" # quoted
  # What is composed.
  resources: # one thing
    # The bucket.
    - name: bucket
      base:
        kind: Bucket # kept
        apiVersion: s3.example.org/v1
        spec:
          policy: |
            # not a comment
            text
      patches:
        - {type: PatchSet, patchSetName: common}
        - fromFieldPath: spec.size # of the bucket
          # How it is merged.
          policy:
            mergeOptions: # objects only
              keepMapValues: true
          transforms:
            # Twice.
            - math:
                multiply: 2
        # The end of the patches.
      readinessChecks:
        - type: None
    # No more.
# The end.
";
    let wanted = "\
# Copyright
---
# A bucket with a name.
kind: Composition # the kind
apiVersion: apiextensions.crossplane.io/v1
metadata:
    name: bucket   # four spaces

spec:
  # Which composite resource.
  compositeTypeRef: {kind: XBucket, apiVersion: 'example.org/v1'}
  mode: Pipeline
  pipeline:
  - step: patch-and-transform
    functionRef:
      name: function-patch-and-transform
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources

      # What all have.
      patchSets:
        - name: common
          patches:
            # The region.
            - fromFieldPath: spec.region
              toFieldPath: \"spec.forProvider.region\" # quoted
              type: FromCompositeFieldPath
      # What is composed.
      resources: # one thing
        # The bucket.
        - name: bucket
          base:
            kind: Bucket # kept
            apiVersion: s3.example.org/v1
            spec:
              policy: |
                # not a comment
                text
          patches:
            - {type: PatchSet, patchSetName: common}
            - fromFieldPath: spec.size # of the bucket
              # How it is merged.
              policy:
                toFieldPath: MergeObjects
              transforms:
                # Twice.
                - math:
                    multiply: 2
                    type: Multiply
                  type: math
              type: FromCompositeFieldPath
            # The end of the patches.
          readinessChecks:
            - type: None
        # No more.
# The end.
";
    assert_eq!(pipeline(text), wanted);
}

#[test]
fn the_environment_takes_its_comments_to_the_new_step() {
    let text = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
spec:
  mode: Pipeline
  # Where values come from.
  environment:
    policy:
      resolve: Always # gone
      resolution: Required # stays
    # In this order.
    environmentConfigs:
    # The base.
    - type: Reference
      ref: {name: base}
  pipeline:
  # The first.
  - step: patches
    functionRef: {name: f}
";
    let wanted = "\
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
spec:
  mode: Pipeline
  pipeline:
  - step: environment-configs
    functionRef:
      name: function-environment-configs
    input:
      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
      kind: Input
      # Where values come from.
      spec:
        policy:
          resolution: Required # stays
        # In this order.
        environmentConfigs:
        # The base.
        - type: Reference
          ref: {name: base}
  # The first.
  - step: patches
    functionRef: {name: f}
";
    let converted = composition_environment(text.as_bytes(), "").unwrap().unwrap();
    assert_eq!(converted, wanted);
}

#[test]
fn comments_within_brackets_come_before_what_is_printed_anew() {
    let text = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
spec:
  resources:
  - name: a
    patches:
    - { # the source
        fromFieldPath: a }
";
    let converted = pipeline(text);
    let wanted = "        patches:\n        # the source\n        - fromFieldPath: a\n          type: FromCompositeFieldPath\n";
    assert!(converted.contains(wanted), "{converted}");
}

/// Copied text would lose what anchors and aliases stand for.
#[test]
fn anchors_and_aliases_are_resolved() {
    let text = "\
# with an anchor
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
spec:
  resources:
  - name: a # first
    base: &base {kind: A}
  - name: b # second
    base: *base
";
    let converted = pipeline(text);
    assert!(converted.starts_with("---\n# with an anchor\n"), "{converted}");
    assert!(
        converted.contains("      - name: b # second\n        base:\n          kind: A\n"),
        "{converted}"
    );
    assert!(!converted.contains(['&', '*']), "{converted}");
}

#[test]
fn comments_of_a_controller_config_stay() {
    let text = "\
# For the provider.
apiVersion: pkg.crossplane.io/v1alpha1
kind: ControllerConfig
metadata:
  name: debug # its name
spec:
  # More logs.
  args:
  - --debug # all of them
";
    let converted = biplane_convert::deployment_runtime(text.as_bytes(), "2024-05-06T07:08:09Z");
    let wanted = "\
# For the provider.
apiVersion: pkg.crossplane.io/v1beta1
kind: DeploymentRuntimeConfig
metadata:
  name: debug # its name
  creationTimestamp: \"2024-05-06T07:08:09Z\"
spec:
  deploymentTemplate:
    spec:
      selector: {}
      strategy: {}
      template:
        metadata:
          creationTimestamp: \"2024-05-06T07:08:09Z\"
        spec:
          containers:
          - # More logs.
            args:
            - --debug # all of them
            name: package-runtime
            resources: {}
";
    assert_eq!(
        converted.unwrap(),
        wanted.replace("- # More logs.\n", "-\n            # More logs.\n")
    );
}
