//! Uses mutated schemas and field sets. None may cause a panic.

use biplane_model::{Gvk, Object, Value};
use biplane_schema::merge::{FieldManager, FieldSet, OneVersion, TypeRef};
use biplane_schema::structural::Schema;
use biplane_testkit::mutate;

const SCHEMA: &str = r#"{"type":"object","required":["spec"],"properties":{"spec":{"type":"object",
"properties":{"n":{"type":"integer","minimum":0,"maximum":9,"multipleOf":2,"format":"int32"},
"s":{"type":"string","pattern":"^[a-z]\\d+$","maxLength":3,"enum":["a1"],"format":"date-time"},
"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"],
"items":{"type":"object","properties":{"k":{"type":"string"},"p":{"type":"integer","default":1}}}},
"t":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"},"maxItems":2},
"m":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}},
"f":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"o":{"oneOf":[{"required":["a"]},{"not":{"required":["b"]}}]}}}}}"#;

const OBJECT: &str = r#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"x",
"labels":{"a":"b"},"finalizers":["f"],"managedFields":[{"manager":"a","operation":"Apply",
"apiVersion":"example.org/v1","time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":
{"f:spec":{"f:l":{"k:{\"k\":\"a\",\"p\":1}":{".":{},"f:k":{}}},"f:t":{"v:\"x\"":{}}}}}]},
"spec":{"n":2,"s":"a1","l":[{"k":"a"},{"k":"b","p":2}],"t":["x"],"m":{"q":1,"r":"s"},
"f":{"any":[1,{"x":null}]},"o":{"a":1}}}"#;

/// Runs every operation on a schema and two objects.
fn use_schema(schema: &Value, live: &Value, config: &Value) {
    let (Some(live), Some(config)) =
        (Object::from_value(live.clone()), Object::from_value(config.clone()))
    else {
        return;
    };
    if let Ok(schema) = Schema::parse(schema) {
        let mut object = config.clone();
        schema.prune(&mut object);
        schema.default(&mut object);
        let _ = schema.validate(&object, Some(&live));
        let _ = schema.validate_status(&object, None);
    }
    let api_version = "example.org/v1".to_owned();
    let gvk = Gvk::new(&api_version, "Widget");
    let versions = OneVersion { api_version, type_ref: TypeRef::of_resource(schema) };
    let ignored = FieldSet::default();
    let manager = FieldManager {
        versions: &versions,
        gvk: &gvk,
        subresource: "",
        ignored: &ignored,
        now: "2024-01-01T00:00:00Z",
    };
    let _ = manager.apply(Some(&live), &config, "a", true);
    let _ = manager.apply(None, &config, "a", false);
    let _ = manager.update(Some(&live), &config, "u");
}

#[test]
fn damaged_schemas_and_objects_do_no_harm() {
    let whole: Value = serde_json::from_str(SCHEMA).unwrap();
    let object: Value = serde_json::from_str(OBJECT).unwrap();
    mutate("use a schema", &[SCHEMA.as_bytes(), OBJECT.as_bytes()], 50_000, |bytes| {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
        use_schema(&value, &object, &object);
        use_schema(&whole, &value, &object);
        use_schema(&whole, &object, &value);
    });
}

#[test]
fn damaged_field_sets_are_refused_or_survive_a_round_trip() {
    let corpus: [&[u8]; 2] = [
        br#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:t":{"v:\"x\"":{},"v:1":{}}}}"#,
        br#"{"f:l":{"k:{\"a\":\"b\",\"p\":1}":{".":{},"f:k":{}},"i:0":{},"x:later":{}}}"#,
    ];
    mutate("read a field set", &corpus, 100_000, |bytes| {
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return };
        if let Ok(set) = FieldSet::from_json(&value) {
            assert_eq!(FieldSet::from_json(&set.to_json()), Ok(set));
        }
    });
}
