//! Property tests of apply, for any objects.

use biplane_model::{Gvk, Object};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn type_ref() -> TypeRef {
    let item = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "value": {"type": "integer"},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    });
    TypeRef::of_resource(&json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {
                "number": {"type": "integer"},
                "atomic": {"type": "array", "items": {"type": "string"}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "sealed": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": item,
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }},
    }))
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set("[a-d]", 1..4).prop_map(|set| set.into_iter().collect())
}

fn pairs() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", "[x-z]", 1..4).prop_map(|map| json!(map))
}

fn items() -> impl Strategy<Value = Value> {
    let item = (prop::option::of(0..3), prop::option::of(words()));
    prop::collection::btree_map("[a-d]", item, 1..4).prop_map(|items| {
        let items = items.into_iter().map(|(name, (value, tags))| {
            let mut item = Map::from_iter([("name".to_owned(), json!(name))]);
            item.extend(value.map(|value| ("value".to_owned(), json!(value))));
            item.extend(tags.map(|tags| ("tags".to_owned(), json!(tags))));
            Value::Object(item)
        });
        items.collect()
    })
}

/// Some of the fields of the type, none of them empty.
fn spec() -> impl Strategy<Value = Value> {
    let fields: Vec<(&str, BoxedStrategy<Value>)> = vec![
        ("number", (0..3).prop_map(|n| json!(n)).boxed()),
        ("atomic", words().prop_map(|words| json!(words)).boxed()),
        ("set", words().prop_shuffle().prop_map(|words| json!(words)).boxed()),
        ("map", pairs().boxed()),
        ("sealed", pairs().boxed()),
        ("items", items().boxed()),
        ("free", pairs().prop_map(|pairs| json!({"x": pairs, "l": [1]})).boxed()),
    ];
    let chosen: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| prop::option::of(value).prop_map(move |v| Some((name.to_owned(), v?))))
        .collect();
    chosen.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()))
}

fn apply(
    live: Option<&Object>,
    spec: &Value,
    manager: &str,
    force: bool,
) -> Result<Object, ApplyError> {
    let api_version = "example.org/v1".to_owned();
    let gvk = Gvk::new(&api_version, "Widget");
    let versions = OneVersion { api_version, type_ref: type_ref() };
    let ignored = FieldSet::default();
    let endpoint = FieldManager {
        versions: &versions,
        gvk: &gvk,
        subresource: "",
        ignored: &ignored,
        now: "2024-01-01T00:00:00Z",
    };
    let config = json!({
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": spec,
    });
    let config = Object::from_value(config).unwrap();
    endpoint.apply(live, &config, manager, force).map(|applied| applied.object)
}

/// Sorts lists, to compare values after merging and removing.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by(crate::value::compare);
            Value::Array(items)
        }
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect(),
        scalar => scalar.clone(),
    }
}

/// A spec that lost its last field is null, as in the API server.
fn spec_of(object: &Object) -> Value {
    object.at(&["spec"]).filter(|spec| !spec.is_null()).map_or_else(|| json!({}), sorted)
}

proptest! {
    #[test]
    fn applying_the_same_again_changes_nothing(first in spec(), second in spec()) {
        let live = apply(None, &first, "a", false).unwrap();
        let once = apply(Some(&live), &second, "b", true).unwrap();
        let twice = apply(Some(&once), &second, "b", false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_an_applier_adds_without_conflict_goes_when_it_applies_nothing(
        first in spec(),
        second in spec(),
    ) {
        let live = apply(None, &first, "a", false).unwrap();
        if let Ok(both) = apply(Some(&live), &second, "b", false) {
            let after = apply(Some(&both), &json!({}), "b", false).unwrap();
            prop_assert_eq!(spec_of(&after), spec_of(&live));
        }
    }

    #[test]
    fn an_applied_configuration_is_found_in_the_object(first in spec(), second in spec()) {
        let live = apply(None, &first, "a", false).unwrap();
        let object = apply(Some(&live), &second, "b", true).unwrap();
        let with = combine(&type_ref(), &object.to_value(), &json!({"spec": second})).unwrap();
        prop_assert_eq!(sorted(&with["spec"]), spec_of(&object));
    }

    #[test]
    fn a_change_of_mind_leaves_no_trace_of_the_first_configuration(
        first in spec(),
        second in spec(),
    ) {
        let live = apply(None, &first, "a", false).unwrap();
        let changed = apply(Some(&live), &second, "a", false).unwrap();
        let direct = apply(None, &second, "a", false).unwrap();
        prop_assert_eq!(spec_of(&changed), spec_of(&direct));
        let managers = |object: &Object| ManagedFields::decode(object).unwrap();
        prop_assert_eq!(managers(&changed), managers(&direct));
    }

    #[test]
    fn set_arithmetic_agrees_with_membership(a in spec(), b in spec()) {
        let of = |spec: &Value| field_set(&type_ref(), &json!({"spec": spec})).unwrap();
        let (a, b) = (of(&a), of(&b));
        let (both, either, left) = (a.intersection(&b), a.union(&b), a.difference(&b));
        for path in either.paths() {
            let (in_a, in_b) = (a.has(&path.0), b.has(&path.0));
            prop_assert_eq!(both.has(&path.0), in_a && in_b);
            prop_assert_eq!(left.has(&path.0), in_a && !in_b);
            prop_assert!(in_a || in_b);
            prop_assert!(a.is_subset(&either) && both.is_subset(&b));
        }
        prop_assert_eq!(a.is_subset(&b), left.is_empty());
        prop_assert_eq!(either.len(), a.len() + b.len() - both.len());
    }
}
