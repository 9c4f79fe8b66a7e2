//! Tests every validation rule of Crossplane v1 for Compositions, with its message.

use serde_json::json;

use super::*;
use crate::yaml;

/// The errors of a Composition of mode Pipeline whose spec is overlaid with the given one.
fn findings(spec: &str) -> String {
    findings_of(spec, Rules::WithoutEnvironment)
}

fn findings_of(spec: &str, rules: Rules) -> String {
    let mut object = json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "c"},
        "spec": {"mode": "Pipeline", "pipeline": [{"step": "s", "functionRef": {"name": "f"}}]},
    });
    let given = yaml::parse_one("spec", spec).unwrap().value;
    for (key, value) in given.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    let object = Object::from_value(object).unwrap();
    summary(&super::findings(&object, rules)).unwrap_or_default()
}

/// RL-1
#[test]
fn pipelines_need_steps_of_different_names() {
    for (spec, want) in [
        ("{}", ""),
        (
            "pipeline: []",
            "spec.pipeline: Required value: an array of pipeline steps is required in Pipeline mode",
        ),
        (
            "mode: Resources",
            "spec.resources: Required value: an array of resources is required in Resources mode (the default if no mode is specified)",
        ),
        (
            "mode:",
            "spec.resources: Required value: an array of resources is required in Resources mode (the default if no mode is specified)",
        ),
        ("pipeline: [{step: a}, {step: b}]", ""),
        (
            "pipeline: [{step: a}, {step: b}, {step: a}]",
            "spec.pipeline[2].step: Duplicate value: \"a\"",
        ),
        // Repeated errors are reported once.
        (
            "pipeline: [{step: a}, {step: a}, {step: a}]",
            "[spec.pipeline[1].step: Duplicate value: \"a\", spec.pipeline[2].step: Duplicate value: \"a\"]",
        ),
        ("pipeline: [{step: a, credentials: [{name: c, source: None}]}]", ""),
        (
            "pipeline: [{step: a, credentials: [{name: c, source: Secret, secretRef: {name: s}}]}]",
            "",
        ),
        (
            "pipeline: [{step: a, credentials: [{name: c, source: Secret}]}]",
            "spec.pipeline[0].credentials[0].secretRef: Required value: must be specified when source is Secret",
        ),
        (
            "pipeline: [{step: a, credentials: [{name: c, source: None}, {name: c, source: None}]}]",
            "spec.pipeline[0].credentials[1].name: Duplicate value: \"c\"",
        ),
    ] {
        assert_eq!(findings(spec), want, "{spec}");
    }
}

/// RL-1
#[test]
fn resources_that_were_left_in_are_held_to_their_rules() {
    const MIXED: &str = "cannot mix named and anonymous resources, all resources must have a name or none must have a name";
    for (spec, want) in [
        ("resources: [{name: a}, {name: b}]", String::new()),
        (
            "resources: [{name: a}, {name: a}]",
            "spec.resources[1].name: Duplicate value: \"a\"".to_owned(),
        ),
        (
            "resources: [{name: a}, {}]",
            "spec.resources[1].name: Required value: cannot have anonymous resources when composition has functions".to_owned(),
        ),
        ("{mode: Resources, pipeline: [], resources: [{}, {}]}", String::new()),
        (
            "{mode: Resources, pipeline: [], resources: [{name: a}, {}]}",
            format!("spec.resources[1].name: Required value: {MIXED}"),
        ),
        (
            "{mode: Resources, pipeline: [], resources: [{}, {name: a}]}",
            format!("spec.resources[1].name: Invalid value: \"a\": {MIXED}"),
        ),
        (
            "patchSets: [{name: p, patches: [{type: PatchSet, patchSetName: q}]}]",
            "spec.patchSets[0].patches[0].type: Invalid value: \"PatchSet\": cannot use patches within patches".to_owned(),
        ),
        (
            "resources: [{name: a, patches: [{type: PatchSet, patchSetName: q}]}]",
            "spec.resources[0].patches[0].patchSetName: Invalid value: \"q\": patchSetName must be the name of a declared patchSet".to_owned(),
        ),
        (
            "resources: [{name: a, patches: [{type: PatchSet}]}]",
            "[spec.resources[0].patches[0].patchSetName: Required value: must be specified when type is patchSet, spec.resources[0].patches[0].patchSetName: Required value: patchSetName must be set for patch type PatchSet]".to_owned(),
        ),
    ] {
        assert_eq!(findings(spec), want, "{spec}");
    }
}

/// RL-1
#[test]
fn patches_and_their_transforms_need_what_their_type_needs() {
    for (patch, want) in [
        ("{fromFieldPath: a}", ""),
        ("{}", "fromFieldPath: Required value: fromFieldPath must be set for patch type "),
        (
            "{type: ToCompositeFieldPath}",
            "fromFieldPath: Required value: fromFieldPath must be set for patch type ToCompositeFieldPath",
        ),
        (
            "{type: CombineToComposite}",
            "combine: Required value: combine must be set for patch type CombineToComposite",
        ),
        (
            "{type: CombineFromComposite, combine: {}}",
            "toFieldPath: Required value: toFieldPath must be set for patch type CombineFromComposite",
        ),
        ("{type: Odd}", "type: Invalid value: \"Odd\": unknown patch type"),
    ] {
        let want = if want.is_empty() {
            String::new()
        } else {
            format!("spec.patchSets[0].patches[0].{want}")
        };
        assert_eq!(findings(&format!("patchSets: [{{name: p, patches: [{patch}]}}]")), want);
    }
    for (transform, want) in [
        ("{type: math, math: {multiply: 2}}", ""),
        ("{type: odd}", "type: Invalid value: \"odd\": unknown transform type"),
        ("{type: math}", "math: Required value: given transform type math requires configuration"),
        (
            "{type: math, math: {}}",
            "math.multiply: Required value: must specify a value if a multiply math transform is specified",
        ),
        (
            "{type: math, math: {type: ClampMin}}",
            "math.clampMin: Required value: must specify a value if a clamp min math transform is specified",
        ),
        (
            "{type: math, math: {type: ClampMax}}",
            "math.clampMax: Required value: must specify a value if a clamp max math transform is specified",
        ),
        (
            "{type: math, math: {type: Odd}}",
            "math.type: Invalid value: \"Odd\": unknown math transform type",
        ),
        ("{type: map, map: {a: b}}", ""),
        (
            "{type: map, map: {}}",
            "map.pairs: Required value: at least one pair must be specified if a map transform is specified",
        ),
        (
            "{type: match, match: {}}",
            "match.patterns: Required value: at least one pattern must be specified if a match transform is specified",
        ),
        (
            "{type: match, match: {patterns: [{literal: a}, {type: regexp}]}}",
            "match.patterns[1].regexp: Required value: regexp pattern type requires a regexp",
        ),
        (
            "{type: match, match: {patterns: [{}]}}",
            "match.patterns[0].literal: Required value: literal pattern type requires a literal",
        ),
        (
            "{type: match, match: {patterns: [{type: regexp, regexp: '('}]}}",
            "match.patterns[0].regexp: Invalid value: \"(\": invalid regexp",
        ),
        (
            "{type: match, match: {patterns: [{type: odd}]}}",
            "match.patterns[0].type: Invalid value: \"odd\": unknown pattern type",
        ),
        ("{type: string, string: {fmt: '%s'}}", ""),
        (
            "{type: string, string: {}}",
            "string.fmt: Required value: format transform requires a format",
        ),
        (
            "{type: string, string: {type: Convert}}",
            "string.convert: Required value: convert transform requires a conversion type",
        ),
        (
            "{type: string, string: {type: TrimSuffix}}",
            "string.trim: Required value: trim transform requires a trim value",
        ),
        (
            "{type: string, string: {type: Join}}",
            "string.join: Required value: join transform requires a join",
        ),
        (
            "{type: string, string: {type: Regexp}}",
            "string.regexp: Required value: regexp transform requires a regexp",
        ),
        (
            "{type: string, string: {type: Regexp, regexp: {}}}",
            "string.regexp.match: Required value: regexp transform requires a match",
        ),
        (
            "{type: string, string: {type: Regexp, regexp: {match: '['}}}",
            "string.regexp.match: Invalid value: \"[\": invalid regexp",
        ),
        (
            "{type: string, string: {type: Odd}}",
            "string.type: Invalid value: \"Odd\": unknown string transform type",
        ),
        ("{type: convert, convert: {toType: int64, format: quantity}}", ""),
        (
            "{type: convert, convert: {toType: int64, format: odd}}",
            "convert.format: Invalid value: \"odd\": invalid format",
        ),
        (
            "{type: convert, convert: {toType: odd}}",
            "convert.toType: Invalid value: \"odd\": invalid type",
        ),
    ] {
        let path = "spec.resources[0].patches[0].transforms[0].";
        let want = if want.is_empty() { String::new() } else { format!("{path}{want}") };
        let patch = format!("{{fromFieldPath: a, transforms: [{transform}]}}");
        assert_eq!(findings(&format!("resources: [{{name: a, patches: [{patch}]}}]")), want);
    }
}

/// RL-1
#[test]
fn readiness_checks_need_what_their_type_needs() {
    for (check, want) in [
        ("{type: None}", ""),
        ("{type: MatchTrue, fieldPath: a}", ""),
        ("{type: NonEmpty}", "fieldPath: Required value: cannot be empty"),
        (
            "{type: MatchString, fieldPath: a}",
            "matchString: Required value: cannot be empty for type MatchString",
        ),
        (
            "{type: MatchInteger, fieldPath: a}",
            "matchInteger: Required value: cannot be 0 for type MatchInteger",
        ),
        ("{type: MatchInteger, matchInteger: 2}", "fieldPath: Required value: cannot be empty"),
        ("{type: MatchCondition}", ""),
        (
            "{type: MatchCondition, matchCondition: {status: 'True'}}",
            "matchCondition.type: Required value: cannot be empty for type MatchCondition",
        ),
        (
            "{type: MatchCondition, matchCondition: {type: Ready}}",
            "matchCondition.status: Required value: cannot be empty for type MatchCondition",
        ),
        ("{type: Odd}", "type: Invalid value: \"Odd\": unknown readiness check type"),
    ] {
        let want = if want.is_empty() {
            String::new()
        } else {
            format!("spec.resources[0].readinessChecks[0].{want}")
        };
        assert_eq!(
            findings(&format!("resources: [{{name: a, readinessChecks: [{check}]}}]")),
            want
        );
    }
}

#[test]
fn sources_and_patches_of_environments_are_complete() {
    // ENV-V1 to ENV-V11
    let check = |environment: &str, want: &str| {
        let spec = format!("environment: {environment}");
        let want = if want.is_empty() { String::new() } else { format!("spec.environment.{want}") };
        assert_eq!(findings_of(&spec, Rules::WithEnvironment), want, "{environment}");
        assert_eq!(findings_of(&spec, Rules::WithoutEnvironment), "", "{environment}");
    };
    check("{}", "");
    check("{environmentConfigs: [{ref: {name: a}}, {reference: {name: b}}]}", "");
    let first = "environmentConfigs[0]";
    check(
        "{environmentConfigs: [{type: Reference}]}",
        &format!("{first}.ref: Required value: ref is required"),
    );
    check(
        "{environmentConfigs: [{ref: {}}]}",
        &format!("{first}.ref.name: Required value: name is required"),
    );
    check(
        "{environmentConfigs: [{type: Selector}]}",
        &format!("{first}.selector: Required value: selector is required"),
    );
    check(
        "{environmentConfigs: [{type: Other}]}",
        &format!("{first}.type: Invalid value: \"Other\": invalid type"),
    );
    let selector = |selector: &str, want: &str| {
        let source = format!("{{environmentConfigs: [{{type: Selector, selector: {selector}}}]}}");
        let want = if want.is_empty() { String::new() } else { format!("{first}.selector.{want}") };
        check(&source, &want);
    };
    let label = "matchLabels: [{key: a, valueFromFieldPath: b}]";
    selector(&format!("{{{label}}}"), "");
    selector(&format!("[{{{label}}}]"), "");
    selector(&format!("{{mode: Multiple, maxMatch: 1, minMatch: 0, {label}}}"), "");
    selector("{}", "matchLabels: Required value: selector must have at least one match label");
    selector(
        &format!("{{maxMatch: 1, {label}}}"),
        "maxMatch: Forbidden: maxMatch is not supported in Single mode",
    );
    selector(
        &format!("{{minMatch: 0, {label}}}"),
        "minMatch: Forbidden: minMatch is not supported in Single mode",
    );
    let matcher = |matcher: &str, want: &str| {
        selector(&format!("{{matchLabels: [{matcher}]}}"), &format!("matchLabels[0].{want}"));
    };
    matcher("{}", "key: Required value: key is required");
    matcher("{key: a}", "valueFromFieldPath: Required value: valueFromFieldPath is required");
    matcher(
        "{key: a, valueFromFieldPath: ''}",
        "valueFromFieldPath: Required value: valueFromFieldPath must not be empty",
    );
    matcher("{key: a, type: Value}", "value: Required value: value is required");
    matcher("{key: a, type: Value, value: ''}", "value: Required value: value must not be empty");
    matcher("{key: a, type: Other}", "type: Invalid value: \"Other\": invalid type");
    check(
        "{patches: [{type: FromEnvironmentFieldPath}]}",
        "patches[0].fromFieldPath: Required value: fromFieldPath must be set for patch type \
         ToCompositeFieldPath",
    );
}

#[test]
fn patches_with_the_environment_exist_where_environments_do() {
    let spec =
        "resources: [{name: a, patches: [{type: FromEnvironmentFieldPath, fromFieldPath: x}]}]";
    assert_eq!(findings_of(spec, Rules::WithEnvironment), "");
    assert_eq!(
        findings_of(spec, Rules::WithoutEnvironment),
        "spec.resources[0].patches[0].type: Invalid value: \"FromEnvironmentFieldPath\": unknown patch type"
    );
}
