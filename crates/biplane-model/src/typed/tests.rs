//! Tests of decoding and normalizing objects.

use serde_json::json;

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn what_does_not_fit_is_named_as_each_reader_does() {
    for (operation, want) in [
        (json!({"spec": "text"}), "cannot restore struct from: string"),
        (json!({"spec": []}), "cannot restore struct from: slice"),
        (json!({"spec": {"pipeline": {}}}), "cannot restore slice from map"),
        (json!({"spec": {"pipeline": [true]}}), "cannot restore struct from: bool"),
        (json!({"spec": {"mode": 5}}), "unrecognized type: string"),
        (json!({"metadata": {"labels": "x"}}), "cannot restore map from string"),
        (json!({"spec": {"retryLimit": 1.5}}), "cannot convert float64 to int64"),
        (json!({"spec": {"retryLimit": "1"}}), "unrecognized type: int64"),
        // The error names the first field that is read.
        (json!({"metadata": {"name": {}}, "spec": []}), "unrecognized type: string"),
    ] {
        let operation = object(operation);
        assert_eq!(restored(&operation, tables::OPERATION).unwrap_err(), want);
        let error = decoded(&operation, tables::OPERATION, Names::OPERATION).unwrap_err();
        assert!(error.text.starts_with("json: cannot unmarshal "), "{error}");
    }
}

#[test]
fn the_reader_of_json_names_fields_and_types_as_go_does() {
    type Decode = fn(&Object) -> Result<(), Misfit>;
    let composition: Decode = |o| decoded(o, tables::COMPOSITION, Names::COMPOSITION);
    let function: Decode = |o| decoded(o, tables::FUNCTION, Names::FUNCTION);
    let secret: Decode = |o| decoded(o, tables::SECRET, Names::SECRET);
    let definition: Decode = |o| decoded(o, tables::DEFINITION, Names::DEFINITION);
    let operation: Decode = |o| decoded(o, tables::OPERATION, Names::OPERATION);
    let cron: Decode = |o| decoded(o, tables::MAKER, Names::CRON_OPERATION);
    for (decode, value, want) in [
        (
            composition,
            json!({"spec": {"pipeline": {}}}),
            "object into Go struct field CompositionSpec.spec.pipeline of type []v1.PipelineStep",
        ),
        (
            composition,
            json!({"spec": {"pipeline": [true]}}),
            "bool into Go struct field CompositionSpec.spec.pipeline of type v1.PipelineStep",
        ),
        (
            composition,
            json!({"spec": {"pipeline": [{}, {"step": []}]}}),
            "array into Go struct field PipelineStep.spec.pipeline.step of type string",
        ),
        (
            composition,
            json!({"spec": {"mode": {}}}),
            "object into Go struct field CompositionSpec.spec.mode of type v1.CompositionMode",
        ),
        (
            composition,
            json!({"spec": {"pipeline": [{"credentials": [{"secretRef": 1}]}]}}),
            "number into Go struct field FunctionCredentials.spec.pipeline.credentials.secretRef of type v2.SecretReference",
        ),
        (
            composition,
            json!({"metadata": {"labels": {"a": []}}}),
            "array into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            composition,
            json!({"metadata": {"generation": 1.5}}),
            "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            composition,
            json!({"kind": []}),
            "array into Go struct field Composition.TypeMeta.kind of type string",
        ),
        // The error names the first key in order.
        (
            composition,
            json!({"spec": 1, "metadata": []}),
            "array into Go struct field Composition.metadata of type v1.ObjectMeta",
        ),
        (
            function,
            json!({"spec": {"package": {}}}),
            "object into Go struct field FunctionSpec.spec.PackageSpec.package of type string",
        ),
        (
            function,
            json!({"spec": {"runtimeConfigRef": {"name": []}}}),
            "array into Go struct field RuntimeConfigReference.spec.PackageRuntimeSpec.runtimeConfigRef.name of type string",
        ),
        (
            secret,
            json!({"data": []}),
            "array into Go struct field Secret.data of type map[string][]uint8",
        ),
        (
            secret,
            json!({"data": {"k": 5}}),
            "number into Go struct field Secret.data of type []uint8",
        ),
        (
            definition,
            json!({"spec": {"versions": {}}}),
            "object into Go struct field CompositeResourceDefinitionSpec.spec.versions of type []v1.CompositeResourceDefinitionVersion",
        ),
        (
            operation,
            json!({"status": {"conditions": [{"type": []}]}}),
            "array into Go struct field Condition.status.ConditionedStatus.conditions.type of type v2.ConditionType",
        ),
        (
            cron,
            json!({"spec": {"operationTemplate": {"spec": {"pipeline": {}}}}}),
            "object into Go struct field OperationSpec.spec.operationTemplate.spec.pipeline of type []v1alpha1.PipelineStep",
        ),
        (
            cron,
            json!({"spec": {"operationTemplate": {"metadata": {"uid": []}}}}),
            "array into Go struct field ObjectMeta.spec.operationTemplate.metadata.uid of type types.UID",
        ),
    ] {
        let misfit = decode(&object(value)).unwrap_err();
        assert_eq!(misfit.text, format!("json: cannot unmarshal {want}"));
    }
    assert_eq!(
        no_object(&json!([]), Names::FUNCTION),
        "json: cannot unmarshal array into Go value of type v1.Function"
    );
}

#[test]
fn a_misfit_knows_where_it_is() {
    let broken = object(json!({"metadata": {"labels": {"a/b": []}}}));
    let misfit = decoded(&broken, tables::COMPOSITION, Names::COMPOSITION).unwrap_err();
    assert_eq!((misfit.path.join(" "), misfit.wanted), ("metadata labels a/b".into(), "a string"));
    let broken = object(json!({"spec": {"pipeline": [{}, {"functionRef": 1}]}}));
    let misfit = decoded(&broken, tables::COMPOSITION, Names::COMPOSITION).unwrap_err();
    assert_eq!(misfit.path, ["spec", "pipeline", "1", "functionRef"]);
    assert_eq!(misfit.wanted, "an object");
}

#[test]
fn null_and_unknown_fields_fit_everywhere() {
    let any = object(json!({"spec": null, "metadata": {"name": null, "x": 1}, "more": []}));
    assert_eq!(restored(&any, tables::OPERATION), Ok(()));
    assert_eq!(decoded(&any, tables::COMPOSITION, Names::COMPOSITION), Ok(()));
}

#[test]
fn bytes_say_where_they_are_wrong_and_not_what_they_are() {
    let text = |at| format!("illegal base64 data at input byte {at}");
    assert_eq!(bytes("Z\nGF0YQ=="), Ok(b"data".to_vec()));
    assert_eq!(bytes("%%%").unwrap_err(), text(0));
    assert_eq!(bytes("not base64!").unwrap_err(), text(3));
}

#[test]
fn a_type_drops_what_it_does_not_know_and_adds_what_it_always_has() {
    let operation = json!({
        "metadata": {"name": "a", "labels": {}, "generation": 2, "foreign": true},
        "spec": {"pipeline": [{"step": "s", "credentials": [], "input": {"any": [1]}}]},
        "status": {"failures": 0, "pipeline": [], "phase": "up"},
    });
    assert_eq!(
        Value::Object(normal(operation.as_object().unwrap(), tables::OPERATION)),
        json!({
            "metadata": {"name": "a", "generation": 2},
            "spec": {"mode": "", "pipeline": [
                {"step": "s", "functionRef": {"name": ""}, "input": {"any": [1]}},
            ]},
            "status": {},
        })
    );
}

#[test]
fn scalars_become_texts_where_the_type_has_texts_and_keys_are_found_in_any_case() {
    let mut composition = json!({
        "metadata": {"name": 12, "labels": {"a": true, "b": 1.50, "c": "x"}},
        "Spec": {"mode": false, "pipeline": [
            {"step": 1, "functionref": {"NAME": 2}, "input": {"kept": 1, "functionref": 3}},
        ]},
    });
    let names = Names::COMPOSITION;
    text_scalars(composition.as_object_mut().unwrap(), tables::COMPOSITION, names);
    assert_eq!(
        composition,
        json!({
            "metadata": {"name": "12", "labels": {"a": "true", "b": "1.5", "c": "x"}},
            "spec": {"mode": "false", "pipeline": [
                {"step": "1", "functionRef": {"name": "2"}, "input": {"kept": 1, "functionref": 3}},
            ]},
        })
    );
}

#[test]
fn scalars_stay_what_they_are_in_structs_without_a_key() {
    let spec = json!({"package": 5, "commonLabels": {"a": 1}, "runtimeConfigRef": {"name": true}});
    let mut function = json!({"kind": 1, "metadata": {"name": 2}, "spec": spec});
    text_scalars(function.as_object_mut().unwrap(), tables::FUNCTION, Names::FUNCTION);
    assert_eq!(function, json!({"kind": 1, "metadata": {"name": "2"}, "spec": spec}));
    let mut kind = json!({"apiVersion": 1, "kind": 2});
    text_scalars(kind.as_object_mut().unwrap(), tables::TYPE, Names::TYPE);
    assert_eq!(kind, json!({"apiVersion": "1", "kind": "2"}), "on its own it has keys");
}

/// RL-1
#[test]
fn compositions_of_the_v1_line_have_resources_and_patch_sets() {
    let patch = |patch: Value| json!({"spec": {"patchSets": [{"name": "a", "patches": [patch]}]}});
    let resource = |key: &str, value: Value| json!({"spec": {"resources": [{key: value}]}});
    for (composition, want) in [
        (
            json!({"spec": {"resources": {}}}),
            "object into Go struct field CompositionSpec.spec.resources of type []v1.ComposedTemplate",
        ),
        (
            json!({"spec": {"patchSets": ["x"]}}),
            "string into Go struct field CompositionSpec.spec.patchSets of type v1.PatchSet",
        ),
        (
            resource("name", json!([])),
            "array into Go struct field ComposedTemplate.spec.resources.name of type string",
        ),
        (
            resource("connectionDetails", json!([{"type": {}}])),
            "object into Go struct field ConnectionDetail.spec.resources.connectionDetails.type of type v1.ConnectionDetailType",
        ),
        (
            resource("patches", json!([{"combine": "x"}])),
            "string into Go struct field Patch.spec.resources.patches.combine of type v1.Combine",
        ),
        (
            resource("readinessChecks", json!([{"matchCondition": 5}])),
            "number into Go struct field ReadinessCheck.spec.resources.readinessChecks.matchCondition of type v1.MatchConditionReadinessCheck",
        ),
        (
            patch(json!({"transforms": {}})),
            "object into Go struct field Patch.spec.patchSets.patches.transforms of type []v1.Transform",
        ),
        (
            patch(json!({"transforms": [{"map": 5}]})),
            "number into Go struct field Transform.spec.patchSets.patches.transforms.map of type map[string]v1.JSON",
        ),
        (
            patch(json!({"transforms": [{"math": {"type": []}}]})),
            "array into Go struct field MathTransform.spec.patchSets.patches.transforms.math.type of type v1.MathTransformType",
        ),
        (
            json!({"spec": {"pipeline": [{"credentials": [{"secretRef": 1}]}]}}),
            "number into Go struct field FunctionCredentials.spec.pipeline.credentials.secretRef of type v1.SecretReference",
        ),
        // Steps of v1 had no requirements.
        (json!({"spec": {"pipeline": [{"requirements": 1}]}}), ""),
    ] {
        let object = Object::from_value(composition).unwrap();
        let fits = decoded(&object, tables::v1::COMPOSITION, Names::COMPOSITION_V1);
        let text = fits.map_or_else(|misfit| misfit.text, |()| String::new());
        assert_eq!(text.strip_prefix("json: cannot unmarshal ").unwrap_or_default(), want);
    }
}
