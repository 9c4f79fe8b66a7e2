//! Tests of merging.

use biplane_model::{Gvk, Object};
use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn widget_type() -> TypeRef {
    TypeRef::of_resource(&json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"},
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "args": {"type": "array", "items": {"type": "string"}},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "protocol": {"type": "string", "default": "TCP"},
                                "name": {"type": "string"},
                            },
                        },
                    },
                },
            },
        },
    }))
}

/// An object with its managed fields, and methods that write to it as a named manager.
struct World {
    versions: OneVersion,
    gvk: Gvk,
    object: Option<Object>,
}

impl World {
    fn new() -> Self {
        let api_version = "example.org/v1".to_owned();
        let gvk = Gvk::new(&api_version, "Widget");
        Self { versions: OneVersion { api_version, type_ref: widget_type() }, gvk, object: None }
    }

    fn apply(&mut self, manager: &str, spec: &Value, force: bool) -> Result<(), ApplyError> {
        let ignored = FieldSet::default();
        let endpoint = FieldManager {
            versions: &self.versions,
            gvk: &self.gvk,
            subresource: "",
            ignored: &ignored,
            now: "2024-01-01T00:00:00Z",
        };
        let config = object(json!({
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "metadata": {"name": "x"},
            "spec": spec,
        }));
        let applied = endpoint.apply(self.object.as_ref(), &config, manager, force)?;
        self.object = Some(applied.object);
        Ok(())
    }

    fn spec(&self) -> Value {
        self.object.as_ref().and_then(|o| o.at(&["spec"])).cloned().unwrap_or_default()
    }

    fn fields_of(&self, manager: &str) -> Value {
        let managers = ManagedFields::decode(self.object.as_ref().unwrap()).unwrap();
        let found = managers.0.iter().find(|(m, _)| m.name == manager);
        found.map_or(Value::Null, |(_, owned)| owned.fields.to_json())
    }
}

#[test]
fn field_sets_survive_their_json_form() {
    let document = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
        "f:spec": {
            "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
            "f:tags": {"v:\"a\"": {}, "v:1": {}},
            "f:rows": {"i:0": {}},
        },
    });
    let set = FieldSet::from_json(&document).unwrap();
    assert_eq!(set.to_json(), document);
    assert_eq!(set.len(), 8);
    assert!(set.has(&Path::fields(&["metadata", "labels", "a"]).0));
    assert!(!set.has(&Path::fields(&["metadata"]).0));
}

#[test]
fn path_elements_of_unknown_types_are_dropped_and_malformed_ones_refused() {
    let set = FieldSet::from_json(&json!({"x:later": {}, "f:spec": {}})).unwrap();
    assert_eq!(set.to_json(), json!({"f:spec": {}}));
    for (key, problem) in [
        ("f", PathElementError::TooShort),
        ("spec", PathElementError::MissingColon("spec".into())),
        ("k:[]", PathElementError::Malformed("k:[]".into())),
        ("i:one", PathElementError::Malformed("i:one".into())),
    ] {
        assert_eq!(PathElement::parse(key), Err(problem), "{key}");
    }
}

#[test]
fn an_item_of_a_keyed_list_is_found_by_its_defaulted_keys() {
    let mut world = World::new();
    world.apply("a", &json!({"ports": [{"port": 80, "name": "http"}]}), false).unwrap();
    assert_eq!(
        world.fields_of("a"),
        json!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}},
        }}})
    );
}

#[test]
fn what_others_own_is_taken_only_by_force_and_the_text_is_the_api_servers() {
    let mut world = World::new();
    world.apply("a", &json!({"replicas": 1, "args": ["x"]}), false).unwrap();
    let one = world.apply("b", &json!({"replicas": 2}), false).unwrap_err();
    assert_eq!(
        one.to_string(),
        "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"
    );
    let two = world.apply("b", &json!({"replicas": 2, "args": []}), false).unwrap_err();
    assert_eq!(
        two.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.args\n- .spec.replicas"
    );
    world.apply("b", &json!({"replicas": 2}), true).unwrap();
    assert_eq!(world.spec(), json!({"args": ["x"], "replicas": 2}));
    assert_eq!(world.fields_of("a"), json!({"f:spec": {"f:args": {}}}));
}

#[test]
fn what_only_the_applier_owned_goes_when_it_is_no_longer_mentioned() {
    let mut world = World::new();
    world.apply("a", &json!({"replicas": 1, "tags": ["x", "y"]}), false).unwrap();
    world.apply("b", &json!({"tags": ["y", "z"]}), false).unwrap();
    world.apply("a", &json!({"replicas": 1}), false).unwrap();
    assert_eq!(world.spec(), json!({"replicas": 1, "tags": ["y", "z"]}));
    world.apply("b", &json!({}), false).unwrap();
    assert_eq!(world.spec(), json!({"replicas": 1}));
}

#[test]
fn values_of_the_wrong_type_are_refused_with_their_path() {
    let mut world = World::new();
    for (spec, text) in [
        (json!({"replicas": "one"}), ".spec.replicas: expected numeric (int or float), got string"),
        (json!({"other": 1}), ".spec.other: field not declared in schema"),
        (json!({"tags": ["a", "a"]}), ".spec.tags: duplicate entries for key [=\"a\"]"),
        (
            json!({"ports": [{"name": "n", "port": 1}, {"port": 1, "protocol": "TCP"}]}),
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
    ] {
        let error = world.apply("a", &spec, false).unwrap_err();
        let expected = format!(
            "failed to create typed patch object (/x; example.org/v1, Kind=Widget): {text}"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn two_lists_are_merged_in_the_applied_order() {
    let list =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let type_ref = TypeRef::of_resource(&json!({"type": "object", "properties": {"l": list}}));
    for (live, applied, merged) in [
        (json!(["a", "b", "c"]), json!(["c", "a"]), json!(["b", "c", "a"])),
        (json!(["a", "b", "c"]), json!(["x", "b"]), json!(["a", "x", "b", "c"])),
        (json!([]), json!(["b", "a"]), json!(["b", "a"])),
        (json!(["a", "a"]), json!(["b"]), json!(["a", "a", "b"])),
    ] {
        let combined = combine(&type_ref, &json!({"l": live}), &json!({"l": applied})).unwrap();
        assert_eq!(combined, json!({"l": merged}), "{live} {applied}");
    }
}

#[test]
fn ownership_of_parts_becomes_ownership_of_the_whole_when_a_list_turns_atomic() {
    let set = FieldSet::from_json(&json!({"f:spec": {"f:args": {"v:\"a\"": {}}}})).unwrap();
    let reconciled = reconcile(&widget_type(), &set);
    assert_eq!(reconciled.to_json(), json!({"f:spec": {"f:args": {}}}));
}

#[test]
fn more_than_ten_updaters_are_remembered_as_ancient_changes() {
    let mut managers = ManagedFields::default();
    for i in 0..12 {
        let manager = Manager {
            name: format!("m{i:02}"),
            operation: Operation::Update,
            api_version: "v1".into(),
            subresource: String::new(),
        };
        let fields = FieldSet::of([Path::fields(&[&format!("f{i:02}")])]);
        let time = Some(format!("2024-01-01T00:00:{i:02}Z"));
        managers.0.insert(manager, Owned { fields, api_version: "v1".into(), time });
    }
    managers.cap(10);
    assert_eq!(managers.0.len(), 10);
    let entries = managers.encode();
    assert_eq!(
        entries[0],
        json!({
            "manager": "ancient-changes",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2024-01-01T00:00:02Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:f00": {}, "f:f01": {}, "f:f02": {}},
        })
    );
}
