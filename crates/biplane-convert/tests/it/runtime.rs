//! Tests of the conversion of ControllerConfigs.

const NOW: &str = "2024-05-06T07:08:09Z";

fn convert(text: &str) -> String {
    match biplane_convert::deployment_runtime(text.as_bytes(), NOW) {
        Ok(text) => text,
        Err(error) => format!("{error:#}"),
    }
}

fn with(spec: &str) -> String {
    convert(&format!(
        "apiVersion: pkg.crossplane.io/v1alpha1\nkind: ControllerConfig\nspec: {spec}"
    ))
}

/// PTC-20
#[test]
fn empty_maps_make_a_template_and_empty_lists_do_not() {
    for spec in ["{nodeSelector: {}}", "{metadata: {}}", "{affinity: {}}", "{image: ''}"] {
        assert!(with(spec).contains("deploymentTemplate:"), "{spec}");
    }
    for spec in ["{}", "null", "{args: []}", "{tolerations: []}", "{volumes: []}", "{image: null}"]
    {
        assert!(with(spec).ends_with("spec: {}\n"), "{spec}");
    }
}

/// PTC-20: structs that are no pointers are always written.
#[test]
fn fields_are_written_as_the_types_of_kubernetes_write_them() {
    let text = with(
        "{volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu}}]}}, \
         {name: e, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1000m}}}}}}]}",
    );
    let wanted = "          volumes:
          - downwardAPI:
              items:
              - path: p
                resourceFieldRef:
                  divisor: \"0\"
                  resource: limits.cpu
            name: v
          - ephemeral:
              volumeClaimTemplate:
                metadata:
                  creationTimestamp: null
                spec:
                  resources:
                    requests:
                      storage: \"1\"
            name: e
";
    assert!(text.contains(wanted), "{text}");
}

/// PTC-20
#[test]
fn wrong_types_and_kinds_are_refused_in_the_words_of_the_reference() {
    for (text, error) in [
        (
            "{a: 1}",
            "couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of object key string",
        ),
        (
            "kind: 5",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
        ),
        ("apiVersion: a/b/c", "unexpected GroupVersion string: a/b/c"),
        (
            "kind: Foo",
            "no kind \"Foo\" is registered for version \"pkg.crossplane.io/v1alpha1\" in scheme \"pkg/runtime/scheme.go:100\"",
        ),
        (
            "spec: {replicas: 1.5}",
            "json: cannot unmarshal number 1.5 into Go struct field ControllerConfigSpec.spec.replicas of type int32",
        ),
        (
            "spec: {nodeSelector: {a: 1}}",
            "json: cannot unmarshal number into Go struct field ControllerConfigSpec.spec.nodeSelector of type string",
        ),
        (
            "spec: {ports: [{containerPort: x}]}",
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.ports.containerPort of type int32",
        ),
        // A quantity that is none is worse than a wrong type before it.
        (
            "spec: {args: x, resources: {limits: {cpu: lots}}}",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ] {
        assert_eq!(convert(text), format!("Decode Error: {error}"), "{text}");
    }
}

/// PTC-20: the reference decodes other kinds into other types, and converts an empty object.
#[test]
fn other_kinds_that_the_reference_knows_become_an_empty_configuration() {
    for text in
        ["apiVersion: apps/v1\nkind: DeploymentList", "", "# nothing", "apiVersion: v1\nkind: Pod"]
    {
        assert!(
            convert(text).ends_with("  creationTimestamp: \"2024-05-06T07:08:09Z\"\nspec: {}\n"),
            "{text}"
        );
    }
}
