//! Derives merge types from structural schemas, and defines the type of `metadata`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::types::{Atom, FieldType, ListType, MapType, Scalar, TypeRef};

impl TypeRef {
    /// The type of objects with a structural schema, as in a CRD.
    ///
    /// `apiVersion`, `kind` and `metadata` have their usual types, whatever the schema contains.
    pub fn of_resource(schema: &Value) -> Self {
        let preserve = flag(schema, PRESERVE);
        let map = Reader { preserve }.map(schema, true);
        Self::Given(Arc::new(Atom { map: Some(map), ..Atom::default() }))
    }

    /// The type of objects without a schema: `metadata` is typed, the rest is deduced.
    pub fn of_unknown_resource() -> Self {
        static UNKNOWN: LazyLock<TypeRef> = LazyLock::new(|| {
            let mut map =
                MapType { fields: BTreeMap::new(), element: Some(TypeRef::Deduced), atomic: false };
            add_resource_fields(&mut map);
            TypeRef::Given(Arc::new(Atom { map: Some(map), ..Atom::default() }))
        });
        UNKNOWN.clone()
    }
}

fn add_resource_fields(map: &mut MapType) {
    for name in ["apiVersion", "kind"] {
        map.fields.insert(name.into(), plain(scalar(Scalar::String)));
    }
    map.fields.insert("metadata".into(), plain(OBJECT_META.clone()));
}

fn plain(type_ref: TypeRef) -> FieldType {
    FieldType { type_ref, default: None }
}

fn scalar(scalar: Scalar) -> TypeRef {
    TypeRef::Given(Arc::new(Atom { scalar: Some(scalar), ..Atom::default() }))
}

fn list(element: TypeRef, associative: bool, keys: &[&str]) -> TypeRef {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    let list = ListType { element, associative, keys };
    TypeRef::Given(Arc::new(Atom { list: Some(list), ..Atom::default() }))
}

fn object(fields: Vec<(&str, TypeRef)>, element: Option<TypeRef>, atomic: bool) -> TypeRef {
    let fields = fields.into_iter().map(|(name, t)| (name.to_owned(), plain(t))).collect();
    let map = MapType { fields, element, atomic };
    TypeRef::Given(Arc::new(Atom { map: Some(map), ..Atom::default() }))
}

static OBJECT_META: LazyLock<TypeRef> = LazyLock::new(|| {
    let text = || scalar(Scalar::String);
    let time = || scalar(Scalar::Untyped);
    let number = || scalar(Scalar::Numeric);
    let owner = vec![
        ("apiVersion", text()),
        ("blockOwnerDeletion", scalar(Scalar::Boolean)),
        ("controller", scalar(Scalar::Boolean)),
        ("kind", text()),
        ("name", text()),
        ("uid", text()),
    ];
    let managed = vec![
        ("apiVersion", text()),
        ("fieldsType", text()),
        ("fieldsV1", object(Vec::new(), Some(TypeRef::Deduced), false)),
        ("manager", text()),
        ("operation", text()),
        ("subresource", text()),
        ("time", time()),
    ];
    object(
        vec![
            ("annotations", object(Vec::new(), Some(text()), false)),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", number()),
            ("deletionTimestamp", time()),
            ("finalizers", list(text(), true, &[])),
            ("generateName", text()),
            ("generation", number()),
            ("labels", object(Vec::new(), Some(text()), false)),
            ("managedFields", list(object(managed, None, false), false, &[])),
            ("name", text()),
            ("namespace", text()),
            ("ownerReferences", list(object(owner, None, true), true, &["uid"])),
            ("resourceVersion", text()),
            ("selfLink", text()),
            ("uid", text()),
        ],
        None,
        false,
    )
});

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// Reads a schema. Everything below a part that preserves unknown fields also preserves them.
#[derive(Clone, Copy)]
struct Reader {
    preserve: bool,
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}

fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Reader {
    fn reference(self, schema: &Value) -> TypeRef {
        TypeRef::Given(Arc::new(self.atom(schema)))
    }

    fn atom(mut self, schema: &Value) -> Atom {
        self.preserve |= flag(schema, PRESERVE);
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        match text(schema, "type") {
            "object" => Atom { map: Some(self.map(schema, embedded)), ..Atom::default() },
            "array" => Atom { list: Some(self.list(schema)), ..Atom::default() },
            "integer" | "number" => Atom { scalar: Some(Scalar::Numeric), ..Atom::default() },
            "string" => Atom { scalar: Some(Scalar::String), ..Atom::default() },
            "boolean" => Atom { scalar: Some(Scalar::Boolean), ..Atom::default() },
            _ => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema)),
                map: Some(self.map(schema, embedded)),
            },
        }
    }

    fn map(self, schema: &Value, resource: bool) -> MapType {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&NONE);
        let fields = properties
            .iter()
            .map(|(name, property)| {
                let default = property.get("default").filter(|d| !d.is_null()).cloned();
                (name.clone(), FieldType { type_ref: self.reference(property), default })
            })
            .collect();
        let element = match schema.get("additionalProperties") {
            None if self.preserve || (properties.is_empty() && !resource) => Some(TypeRef::Deduced),
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(TypeRef::Deduced),
            Some(inner) => Some(self.reference(inner)),
        };
        let atomic = text(schema, "x-kubernetes-map-type") == "atomic";
        let mut map = MapType { fields, element, atomic };
        if resource {
            add_resource_fields(&mut map);
        }
        map
    }

    fn list(self, schema: &Value) -> ListType {
        let (associative, keys) = match text(schema, "x-kubernetes-list-type") {
            "set" => (true, Vec::new()),
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let names = keys.into_iter().flatten().filter_map(Value::as_str);
                (true, names.map(str::to_owned).collect())
            }
            _ => (false, Vec::new()),
        };
        let element = schema.get("items").map_or(TypeRef::Atomic, |items| self.reference(items));
        ListType { element, associative, keys }
    }
}
