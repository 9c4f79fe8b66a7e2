//! Tests of what conversions refuse, and of input on which the reference crashes.

use crate::{pipeline, refusal};

const HEAD: &str = "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\n";

fn with(spec: &str) -> String {
    format!("{HEAD}spec:\n{spec}")
}

/// PTC-2, PTC-4, PTC-6
#[test]
fn errors_say_what_was_attempted() {
    let generating = "Error generating new Composition: ";
    for (text, error) in [
        (format!("{HEAD}spec: text"), "failed to get composition mode: spec: not an object"),
        (
            format!("{HEAD}spec: null"),
            "failed to set Composition mode to Pipeline: spec is not an object",
        ),
        (
            with("  patchSets: text"),
            "failed to migrate patchSets: failed to get patchSets: cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type []map[string]interface {}",
        ),
        (
            with("  patchSets: [{patches: text}]"),
            "failed to migrate patchSets: failed to expand patchSets: cannot expand wildcards for segments: \"patchSets[*].patches[*]\": \"patchSets[0].patches[*]\": cannot expand wildcards: \"patchSets[0].patches\": unexpected wildcard usage",
        ),
        (
            with("  patchSets: [{patches: [text]}]"),
            "failed to migrate patchSets: failed to get patch: cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
        (
            with("  resources: [{patches: [{policy: {mergeOptions: text}}]}]"),
            "failed to migrate resources: failed to migrate resource: failed to migrate patch: failed to get mergeOptions: cannot unmarshal value from JSON: json: cannot unmarshal string into Go value of type v1.MergeOptions",
        ),
        (
            with("  pipeline: [{functionRef: text}]"),
            "failed to set pipeline functionRef name: spec.pipeline[0].functionRef is not an object",
        ),
    ] {
        assert_eq!(refusal(&text), format!("{generating}{error}"), "{text}");
    }
    let text = "apiVersion: a/b/c\nkind: Composition\n";
    assert_eq!(
        refusal(text),
        "Unmarshalling Error: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{\"apiVersion\":\"a/b/c\",\"kind\":\"Composition\"}'"
    );
}

/// PTC-8: the reference dereferences what is not there.
#[test]
fn input_that_crashes_the_reference_is_an_error() {
    for (spec, error) in [
        (
            "  resources: [{patches: [{transforms: [{type: math}]}]}]",
            "failed to migrate resources: failed to migrate resource: failed to migrate patch: transforms[0]: type is math, but there is no math",
        ),
        (
            "  resources: [{patches: [{transforms: [{type: string, math: {}}]}]}]",
            "failed to migrate resources: failed to migrate resource: failed to migrate patch: transforms[0]: type is string, but there is no string",
        ),
        (
            "  resources: [null]",
            "failed to migrate resources: failed to migrate resource: item 0 of the list is null",
        ),
        (
            "  resources: [{patches: [{}, null]}]",
            "failed to migrate resources: failed to migrate resource: failed to migrate patch: item 1 of the list is null",
        ),
        (
            "  patchSets: [{patches: [null]}]",
            "failed to migrate patchSets: failed to migrate patch: it is null",
        ),
        (
            "  environment: {patches: [null]}",
            "failed to migrate environment: failed to set environment patch type: item 0 of the list is null",
        ),
    ] {
        let wanted = format!("Error generating new Composition: {error}");
        assert_eq!(refusal(&with(spec)), wanted, "{spec}");
    }
}

/// PTC-4: what is no list of resources is thrown away, and the rest of the document stays.
#[test]
fn resources_that_are_no_list_are_dropped() {
    let text = pipeline(&with("  resources: text\n  unknown: {a: 1}"));
    assert!(!text.contains("resources:"), "{text}");
    assert!(text.contains("  unknown:\n    a: 1\n"), "{text}");
}
