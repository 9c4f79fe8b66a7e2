//! Tests of advice about Compositions.

#![allow(clippy::needless_pass_by_value)] // literals are easier to read

use super::*;
use serde_json::json;

const PT: &str = "function-patch-and-transform";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn composition(steps: Value) -> Object {
    object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "c"},
        "spec": {"compositeTypeRef": {"apiVersion": "x.org/v1", "kind": "XThing"},
                 "mode": "Pipeline", "pipeline": steps},
    }))
}

fn crds() -> Vec<Object> {
    let crd = |kind: &str| {
        object(json!({"spec": {"group": "x.org", "names": {"kind": kind}, "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object", "properties": {
                    "region": {"type": "string"}, "zone": {"type": "string", "default": "a"}}}}}}}]}}))
    };
    vec![crd("XThing"), crd("Thing")]
}

fn shown(remarks: Vec<Remark>) -> Vec<String> {
    let one = |remark: Remark| format!("{}: {}", remark.path.join("."), remark.text);
    remarks.into_iter().map(one).collect()
}

fn texts(steps: Value) -> Vec<String> {
    let crds = crds();
    let known = Known { crds: &crds, ..Known::default() };
    shown(of_composition(&composition(steps), &known))
}

fn step(name: &str, function: &str, input: Value) -> Value {
    json!({"step": name, "functionRef": {"name": function}, "input": input})
}

/// The input of a function with some members.
fn pt(members: Value) -> Value {
    let mut input =
        json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": []});
    input.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    input
}

fn thing(name: &str, patches: Value) -> Value {
    json!({"name": name, "base": {"apiVersion": "x.org/v1", "kind": "Thing"}, "patches": patches})
}

#[test]
fn every_input_of_the_box_is_known() {
    assert_eq!(KNOWN.len(), INPUTS.len());
    assert!(KNOWN.iter().all(|input| !input.versions.is_empty()));
}

#[test]
fn mistakes_in_inputs_are_told_with_their_place() {
    let resources = json!([
        thing("a", json!([
            {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.regoin", "toFieldPath": "spec.region"},
        ])),
        {"name": "a", "base": {"apiVersion": "x.org/v1", "kind": "Thing"}, "patchs": []},
    ]);
    let found = texts(json!([
        step("one", PT, pt(json!({"resources": resources}))),
        step("one", "function-auto-ready", pt(json!({}))),
        step("two", "upbound-function-auto-ready", pt(json!({}))),
    ]));
    assert_eq!(
        found,
        [
            "spec.pipeline.0.input.resources.1.patchs: function-patch-and-transform has no resources[1].patchs in its input, and refuses it",
            "spec.pipeline.0.input.resources.0.patches.0.fromFieldPath: no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region",
            "spec.pipeline.0.input.resources.1.name: another resource is named \"a\" too",
            "spec.pipeline.1.step: another step of the pipeline is named \"one\" too",
            "spec.pipeline.1.input.kind: function-auto-ready takes an input of kind Input of autoready.fn.crossplane.io, not \"Resources\" of \"pt.fn.crossplane.io\"",
            "spec.pipeline.2.input.kind: upbound-function-auto-ready takes an input of kind Input of autoready.fn.crossplane.io, not \"Resources\" of \"pt.fn.crossplane.io\"",
        ]
    );
}

/// Every place in which a patch can stand, with a path that is known and one that is not.
#[test]
fn unknown_paths_are_told_in_every_place() {
    let wrong =
        "field 'regoin' is not valid according to the schema; the nearest field is spec.region";
    let combined = |kind: &str, to: &str| {
        json!({"type": kind, "toFieldPath": to, "combine": {"strategy": "string", "string": {"fmt": "%s%s"},
            "variables": [{"fromFieldPath": "spec.region"}, {"fromFieldPath": "spec.regoin"}]}})
    };
    let plain = |kind: &str, from: &str, to: &str| json!({"type": kind, "fromFieldPath": from, "toFieldPath": to});
    for (input, want) in [
        // A patch without a target writes where it reads.
        (
            json!({"resources": [thing("a", json!([{"fromFieldPath": "spec.zone"}, {"type": "FromEnvironmentFieldPath", "fromFieldPath": "spec.regoin"}]))]}),
            vec!["resources.0.patches.1.fromFieldPath"],
        ),
        (
            json!({"resources": [thing("a", json!([combined("CombineFromComposite", "spec.region")]))]}),
            vec!["resources.0.patches.0.combine.variables.1.fromFieldPath"],
        ),
        (
            json!({"resources": [thing("a", json!([combined("CombineToComposite", "spec.regoin")]))]}),
            vec![
                "resources.0.patches.0.combine.variables.1.fromFieldPath",
                "resources.0.patches.0.toFieldPath",
            ],
        ),
        // What an environment has is not known.
        (
            json!({"resources": [thing("a", json!([combined("CombineFromEnvironment", "spec.region"), combined("CombineToEnvironment", "any")]))]}),
            vec!["resources.0.patches.1.combine.variables.1.fromFieldPath"],
        ),
        (
            json!({"resources": [thing("a", json!([plain("FromEnvironmentFieldPath", "any", "spec.regoin"), plain("ToEnvironmentFieldPath", "spec.regoin", "any")]))]}),
            vec!["resources.0.patches.0.toFieldPath", "resources.0.patches.1.fromFieldPath"],
        ),
        (
            json!({"environment": {"patches": [plain("FromCompositeFieldPath", "spec.regoin", "any"), plain("ToCompositeFieldPath", "any", "spec.regoin"), combined("CombineFromComposite", "any")]}}),
            vec![
                "environment.patches.0.fromFieldPath",
                "environment.patches.1.toFieldPath",
                "environment.patches.2.combine.variables.1.fromFieldPath",
            ],
        ),
        (
            json!({"writeConnectionSecretToRef": {"name": "n", "patches": [plain("FromCompositeFieldPath", "spec.regoin", "name")]}}),
            vec!["writeConnectionSecretToRef.patches.0.fromFieldPath"],
        ),
        (
            json!({"resources": [{"name": "a", "base": {"apiVersion": "x.org/v1", "kind": "Thing"},
                "connectionDetails": [{"name": "d", "type": "FromFieldPath", "fromFieldPath": "spec.regoin"}],
                "readinessChecks": [{"type": "NonEmpty", "fieldPath": "spec.regoin"}]}]}),
            vec![
                "resources.0.connectionDetails.0.fromFieldPath",
                "resources.0.readinessChecks.0.fieldPath",
            ],
        ),
    ] {
        let found = texts(json!([step("one", PT, pt(input.clone()))]));
        let want: Vec<String> = want
            .iter()
            .map(|path| format!("spec.pipeline.0.input.{path}: no schema has spec.regoin: {wrong}"))
            .collect();
        assert_eq!(found, want, "{input}");
    }
}

#[test]
fn patch_sets_are_looked_at_for_each_resource_that_uses_them() {
    let using = |set: &str| json!([{"type": "PatchSet", "patchSetName": set}]);
    let mut other = thing("b", using("common"));
    other["base"]["kind"] = json!("Unknown");
    let set = |name: &str| json!({"name": name, "patches": [{"fromFieldPath": "spec.zone", "toFieldPath": "spec.regoin"}]});
    let input = json!({
        "patchSets": [set("common"), set("common"), set("unused")],
        "resources": [thing("a", using("common")), other, thing("c", using("comon"))],
    });
    assert_eq!(
        texts(json!([step("one", PT, pt(input))])),
        [
            "spec.pipeline.0.input.patchSets.1.name: another patch set is named \"common\" too",
            "spec.pipeline.0.input.patchSets.0.patches.0.toFieldPath: no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region, for resource \"a\"",
            "spec.pipeline.0.input.resources.2.patches.0.patchSetName: no patch set is named \"comon\"; the nearest is \"common\"",
        ]
    );
}

/// What a composite resource lacks, for one whose resources are given.
fn held_back(steps: Value, xr: Value, existing: &[&str], has_context: bool) -> Vec<String> {
    let (crds, xr) = (crds(), object(xr));
    let composites = vec![Composite { object: &xr, existing: existing.iter().copied().collect() }];
    shown(of_composition(&composition(steps), &Known { crds: &crds, composites, has_context }))
}

fn xr(spec: Value) -> Value {
    json!({"apiVersion": "x.org/v1", "kind": "XThing", "metadata": {"name": "x"}, "spec": spec})
}

#[test]
fn resources_that_required_patches_hold_back_are_told() {
    let required = |kind: &str, from: &str| json!({"type": kind, "fromFieldPath": from, "toFieldPath": "spec.region", "policy": {"fromFieldPath": "Required"}});
    let only = |patch: Value| {
        json!([step("one", PT, pt(json!({"resources": [thing("a", json!([patch]))]})))])
    };
    let at = "spec.pipeline.0.input.resources.0.patches.0";
    let region = only(required("FromCompositeFieldPath", "spec.region"));

    let found = held_back(region.clone(), xr(json!({})), &[], false);
    let want = format!(
        "{at}.fromFieldPath: XThing x has no spec.region, which the patch requires: resource \"a\" is not composed"
    );
    assert_eq!(found, [want]);
    let none = [""; 0];
    assert_eq!(held_back(region.clone(), xr(json!({"region": "eu"})), &[], false), none);
    assert_eq!(held_back(region, xr(json!({})), &["a"], false), none, "it exists");

    let combine = json!({"type": "CombineFromComposite", "toFieldPath": "spec.region", "policy": {"fromFieldPath": "Required"},
        "combine": {"strategy": "string", "string": {"fmt": "%s%s"}, "variables": [{"fromFieldPath": "spec.zone"}, {"fromFieldPath": "spec.region"}]}});
    let found = held_back(only(combine), xr(json!({"zone": "a"})), &[], false);
    let want = format!(
        "{at}.combine.variables.1.fromFieldPath: XThing x has no spec.region, which the patch requires: resource \"a\" is not composed"
    );
    assert_eq!(found, [want]);

    // What no schema has is told once, with what comes of it.
    let found = held_back(
        only(required("FromCompositeFieldPath", "spec.regoin")),
        xr(json!({})),
        &[],
        false,
    );
    let want = format!(
        "{at}.fromFieldPath: no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region; the patch requires it, so resource \"a\" is not composed"
    );
    assert_eq!(found, [want]);
}

#[test]
fn an_environment_holds_resources_back_if_it_is_known_to_be_empty() {
    let patch = json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": "key", "toFieldPath": "spec.region", "policy": {"fromFieldPath": "Required"}});
    let input = pt(json!({"resources": [thing("a", json!([patch]))]}));
    let (first, ready) = (
        step("one", PT, input.clone()),
        json!({"step": "ready", "functionRef": {"name": "function-auto-ready"}}),
    );
    let told = |steps: Value, has_context: bool| held_back(steps, xr(json!({})), &[], has_context);
    let want = "spec.pipeline.0.input.resources.0.patches.0.fromFieldPath: the environment is empty here, and has no key, which the patch requires: resource \"a\" is not composed";
    let none = [""; 0];
    assert_eq!(told(json!([first]), false), [want]);
    assert_eq!(told(json!([ready, first]), false), [want.replace("pipeline.0", "pipeline.1")]);
    assert_eq!(told(json!([first]), true), none, "the context may have one");
    let other = json!({"step": "other", "functionRef": {"name": "function-environment-configs"}});
    assert_eq!(told(json!([other, first]), false), none, "another function writes one");
    let mut own = input;
    own["environment"] = json!({"patches": [{"fromFieldPath": "spec.zone", "toFieldPath": "key"}]});
    assert_eq!(told(json!([step("one", PT, own)]), false), none, "patches write one");
}

#[test]
fn patches_of_the_environment_and_in_patch_sets_are_required_too() {
    let policy = json!({"fromFieldPath": "Required"});
    let input = json!({
        "environment": {"patches": [{"fromFieldPath": "spec.region", "toFieldPath": "key", "policy": policy}]},
        "patchSets": [{"name": "s", "patches": [{"fromFieldPath": "spec.region", "policy": policy}]}],
        "resources": [thing("a", json!([{"type": "PatchSet", "patchSetName": "s"}]))],
    });
    assert_eq!(
        held_back(json!([step("one", PT, pt(input))]), xr(json!({})), &[], false),
        [
            "spec.pipeline.0.input.environment.patches.0.fromFieldPath: XThing x has no spec.region, which the patch requires: the function fails",
            "spec.pipeline.0.input.patchSets.0.patches.0.fromFieldPath: XThing x has no spec.region, which the patch requires: resource \"a\" is not composed",
        ]
    );
}

#[test]
fn templates_of_mode_resources_are_looked_at_too() {
    let composition = object(json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "c"},
        "spec": {"compositeTypeRef": {"apiVersion": "x.org/v1", "kind": "XThing"},
                 "environment": {"patches": [{"type": "FromCompositeFieldPath", "fromFieldPath": "spec.regoin", "toFieldPath": "key"}]},
                 "resources": [thing("a", json!([{"fromFieldPath": "spec.zone", "toFieldPath": "spec.zoen"}]))]},
    }));
    let crds = crds();
    let known = Known { crds: &crds, ..Known::default() };
    assert_eq!(
        shown(of_composition(&composition, &known)),
        [
            "spec.environment.patches.0.fromFieldPath: no schema has spec.regoin: field 'regoin' is not valid according to the schema; the nearest field is spec.region",
            "spec.resources.0.patches.0.toFieldPath: no schema has spec.zoen: field 'zoen' is not valid according to the schema; the nearest field is spec.zone",
        ]
    );
}

/// The defaults of a composite resource count, and one that asks for another Composition does not.
#[test]
fn composite_resources_among_the_files_are_used() {
    let required = |from: &str| json!({"fromFieldPath": from, "toFieldPath": "spec.region", "policy": {"fromFieldPath": "Required"}});
    let input = pt(json!({"resources": [
        thing("a", json!([required("spec.zone")])), thing("b", json!([required("spec.region")])),
    ]}));
    let text =
        serde_json::to_string(&composition(json!([step("one", PT, input)])).to_value()).unwrap();
    let mut resources = Vec::new();
    let mut read = |text: String| {
        crate::sources::parse(
            std::path::Path::new("f.yaml"),
            text.into_bytes(),
            "file",
            &mut resources,
        )
        .unwrap();
    };
    read(text);
    read(xr(json!({})).to_string());
    let extensions = Extensions { crds: crds(), ..Extensions::default() };
    let told = of(&resources, &extensions);
    assert_eq!(told.len(), 1, "{told:?}");
    let want = "XThing x has no spec.region, which the patch requires: resource \"b\" is not composed\n--> f.yaml, document 1, line 1, column ";
    assert!(told[0].starts_with(want), "{told:?}");

    let other = xr(json!({"compositionRef": {"name": "another"}}));
    resources.last_mut().unwrap().object = object(other);
    assert_eq!(of(&resources, &extensions), [""; 0]);
}

#[test]
fn definitions_without_versions_are_told() {
    let mut resources = Vec::new();
    let text = "apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xs.x.org}
spec:
  group: x.org
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ys.x.org}
spec: {group: x.org, versions: [{name: v1}]}
";
    let path = std::path::Path::new("f.yaml");
    crate::sources::parse(path, text.into(), "file", &mut resources).unwrap();
    let want = "CompositeResourceDefinition \"xs.x.org\" has no versions, so no resource is checked against it
--> f.yaml, document 1, line 4, column 1
 4 | spec:
   | ^";
    assert_eq!(of_definitions(&resources), [want]);
}
