//! The table of modes, and the rules of patches, readiness checks and connection details.

use super::*;
use serde_json::json;

fn crd(kind: &str, spec: &Value) -> Object {
    let crd = json!({
        "metadata": {"name": format!("{}s.nop.example.org", kind.to_lowercase())},
        "spec": {"group": "nop.example.org", "names": {"kind": kind}, "versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec},
                "status": {"type": "object", "properties": spec},
            }}}},
        ]},
    });
    Object::from_value(crd).unwrap()
}

fn crds() -> Vec<Object> {
    let fields = json!({
        "text": {"type": "string"}, "count": {"type": "integer"}, "share": {"type": "number"},
        "flag": {"type": "boolean"}, "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    });
    vec![crd("XNopResource", &fields), crd("NopResource", &fields)]
}

fn composition(mode: Option<&str>, resource: &Value) -> Object {
    let annotations = mode.map_or(json!({}), |mode| json!({ANNOTATION: mode}));
    let mut resource = resource.clone();
    resource["name"] = json!("a");
    resource["base"] = json!({"apiVersion": "nop.example.org/v1", "kind": "NopResource"});
    let composition = json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "c", "annotations": annotations},
        "spec": {
            "compositeTypeRef": {"apiVersion": "nop.example.org/v1", "kind": "XNopResource"},
            "resources": [resource],
        },
    });
    Object::from_value(composition).unwrap()
}

fn patch(from: &str, to: &str, transforms: Value) -> Value {
    let mut patch = json!({
        "type": "FromCompositeFieldPath", "fromFieldPath": from, "toFieldPath": to,
    });
    if !transforms.is_null() {
        patch["transforms"] = transforms;
    }
    json!({"patches": [patch]})
}

/// SAV-1, SAV-2, SAV-3, SAV-4, SAV-5, SAV-6
#[test]
fn the_mode_decides_what_is_an_error() {
    let wrong = patch("spec.text", "spec.count", Value::Null);
    let error = "spec.resources[0].patches[0].transforms: Required value: the fromFieldPath does not have a type compatible with the toFieldPath according to their schemas and no transforms were provided: string != integer";
    let missing =
        "CustomResourceDefinition.apiextensions.k8s.io \"XNopResource.nop.example.org\" not found";
    let all = crds();
    let without_composite = &all[1..];
    let warned = |text: String| Verdict { denial: None, warnings: vec![text] };
    let invalid =
        Verdict { denial: Some(Denial::Invalid(vec![error.to_owned()])), warnings: Vec::new() };
    for mode in [None, Some("warn")] {
        let composition = composition(mode, &wrong);
        let text = format!("Composition \"c\" invalid for schema-aware validation: {error}");
        assert_eq!(review(&composition, Some(&all)), warned(text), "{mode:?}");
        assert_eq!(review(&composition, Some(without_composite)), warned(missing.to_owned()));
    }
    let loose = composition(Some("loose"), &wrong);
    assert_eq!(review(&loose, Some(&all)), invalid);
    assert_eq!(review(&loose, Some(without_composite)), warned(missing.to_owned()));
    let strict = composition(Some("strict"), &wrong);
    assert_eq!(review(&strict, Some(&all)), invalid);
    let forbidden =
        |text: String| Verdict { denial: Some(Denial::Forbidden(text)), warnings: Vec::new() };
    assert_eq!(
        review(&strict, Some(without_composite)),
        forbidden(format!("cannot get the needed CRDs: [{missing}]"))
    );
    let lax = composition(Some("lax"), &wrong);
    assert_eq!(
        review(&lax, Some(&all)),
        forbidden(
            "cannot get validation mode: invalid schema-aware composition validation mode: lax"
                .to_owned()
        )
    );
    assert_eq!(review(&lax, None), Verdict::default());
    // Integrity comes first, in every mode.
    let broken = composition(Some("lax"), &json!({"patches": [{"type": "Nothing"}]}));
    let text = "spec.resources[0].patches[0].type: Invalid value: \"Nothing\": unknown patch type";
    let denial = Some(Denial::Invalid(vec![text.to_owned()]));
    assert_eq!(review(&broken, Some(&all)), Verdict { denial, warnings: Vec::new() });
}

/// SAV-14, SAV-15, SAV-16, SAV-17, SAV-18, SAV-19, SAV-20, SAV-21, SAV-22, SAV-23
#[test]
fn fields_and_types_of_patches_are_checked() {
    let all = crds();
    let convert = |to: &str| json!({"type": "convert", "convert": {"toType": to}});
    let math = json!({"type": "math", "math": {"type": "Multiply", "multiply": 2}});
    let upper = json!({"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}});
    let to_json = json!({"type": "string", "string": {"type": "Convert", "convert": "ToJson"}});
    let join = json!({"type": "string", "string": {"type": "Join", "join": {"separator": ","}}});
    let at = "spec.resources[0].patches[0]";
    for (resource, want) in [
        (patch("spec.text", "spec.text", Value::Null), vec![]),
        (patch("spec.count", "spec.share", Value::Null), vec![]),
        (
            patch("spec.share", "spec.count", Value::Null),
            vec![format!("{at}.transforms: Required value: the fromFieldPath does not have a type compatible with the toFieldPath according to their schemas and no transforms were provided: number != integer")],
        ),
        (patch("spec.text", "spec.count", json!([convert("int64")])), vec![]),
        (patch("spec.text", "spec.share", json!([convert("float64"), convert("int64")])), vec![]),
        (
            patch("spec.count", "spec.count", json!([math])),
            vec![format!("{at}.transforms: Invalid value: [{math}]: the provided transforms do not output a type compatible with the toFieldPath according to the schema: integer != integer")],
        ),
        (
            patch("spec.text", "spec.free.x", json!([math])),
            vec![format!("{at}.transforms[0]: Invalid value: {math}: math transform can only be used with numeric types, got string")],
        ),
        (patch("spec.map", "spec.text", json!([to_json])), vec![]),
        (
            patch("spec.count", "spec.text", json!([upper])),
            vec![format!("{at}.transforms[0]: Invalid value: {upper}: string transform can only be used with string input types, got int64")],
        ),
        (
            patch("spec.list", "spec.text", json!([join])),
            vec![format!("{at}.transforms[0]: Invalid value: {join}: string transform join type can only be used with arrays as input, got object")],
        ),
        (
            patch("spec.flag", "spec.map", json!([convert("object")])),
            vec![format!("{at}.transforms[0]: Invalid value: {}: conversion from bool to object is not supported with format none", convert("object"))],
        ),
        (
            patch("spec.wrong", "spec.alsoWrong", Value::Null),
            vec![format!("{at}.fromFieldPath: Invalid value: \"spec.wrong\": field 'wrong' is not valid according to the schema")],
        ),
        (
            patch("spec.text", "spec.wrong", Value::Null),
            vec![format!("{at}.toFieldPath: Invalid value: \"spec.wrong\": field 'wrong' is not valid according to the schema")],
        ),
        (
            json!({"patches": [{"type": "CombineFromComposite", "toFieldPath": "spec.text", "combine": {
                "variables": [{"fromFieldPath": "spec.text"}, {"fromFieldPath": "spec.wrong"}],
                "strategy": "string", "string": {"fmt": "%s-%s"}}}]}),
            vec![format!("{at}.combine: Invalid value: [{{\"fromFieldPath\":\"spec.text\"}},{{\"fromFieldPath\":\"spec.wrong\"}}]: fromFieldPath: Invalid value: \"spec.wrong\": field 'wrong' is not valid according to the schema")],
        ),
        (
            json!({"readinessChecks": [{"type": "MatchInteger", "fieldPath": "status.text", "matchInteger": 1}]}),
            vec!["spec.resources[0].readinessCheck[0].fieldPath: Invalid value: \"status.text\": expected field path to be of type integer".to_owned()],
        ),
        (json!({"readinessChecks": [{"type": "MatchInteger", "fieldPath": "status.free.x", "matchInteger": 1}]}), vec![]),
        (
            json!({"connectionDetails": [{"type": "FromValue", "name": "a", "value": "b", "fromFieldPath": "status.no"}]}),
            vec!["spec.resources[0].connectionDetails[0].fromFieldPath: Invalid value: \"status.no\": field 'no' is not valid according to the schema".to_owned()],
        ),
    ] {
        let composition = composition(Some("strict"), &resource);
        let found = match review(&composition, Some(&all)).denial {
            None => vec![],
            Some(Denial::Invalid(errors)) => errors,
            Some(Denial::Forbidden(text)) => vec![text],
        };
        assert_eq!(found, want, "{resource}");
    }
}
