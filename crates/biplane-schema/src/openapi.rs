//! Finds the schema of a kind in an OpenAPI v3 document and inlines its references.

use biplane_model::{Gvk, Map, Object, Value};
use serde_json::json;

const PREFIX: &str = "#/components/schemas/";
/// Deeper than any real document. A chain of distinct references cannot be longer than the number
/// of schemas.
const MAX_DEPTH: usize = 400;

/// Why a schema cannot be inlined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    /// References and properties nest too deeply.
    #[error("schema nests too deeply")]
    TooDeep,
    /// A reference leads nowhere.
    #[error("internal error: cannot resolve Ref {0:?}: schema not found")]
    Unresolved(String),
}

type Schemas = Map<String, Value>;

fn schemas(document: &Object) -> Option<&Schemas> {
    document.at(&["components", "schemas"])?.as_object()
}

/// Returns the kind of a schema, if it has exactly one.
fn kind_of(schema: &Value) -> Option<Gvk> {
    match schema.get("x-kubernetes-group-version-kind")?.as_array()?.as_slice() {
        [one] => {
            let text = |key| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            Some(Gvk { group: text("group"), version: text("version"), kind: text("kind") })
        }
        _ => None,
    }
}

/// Returns the groups and versions that a document serves: those of schemas that have exactly one
/// kind.
pub fn served_by(document: &Object) -> Vec<(String, String)> {
    let mut served: Vec<_> = schemas(document)
        .into_iter()
        .flat_map(|all| all.values())
        .filter_map(kind_of)
        .map(|gvk| (gvk.group, gvk.version))
        .collect();
    served.sort();
    served.dedup();
    served
}

/// Returns the schema of a kind with all references inlined, if the document has one.
pub fn schema_of(document: &Object, gvk: &Gvk) -> Result<Option<Object>, OpenApiError> {
    let Some(all) = schemas(document) else { return Ok(None) };
    let Some((name, root)) = all.iter().find(|(_, schema)| kind_of(schema).as_ref() == Some(gvk))
    else {
        return Ok(None);
    };
    let mut path = vec![format!("{PREFIX}{name}")];
    Ok(Object::from_value(flatten(all, root, &mut path, MAX_DEPTH)?))
}

/// Returns the reference of a schema. It may be in `allOf`, next to a description.
fn reference(schema: &Value) -> Option<&str> {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return Some(reference);
    }
    schema.get("allOf")?.as_array()?.iter().find_map(reference)
}

fn flatten(
    all: &Schemas,
    schema: &Value,
    path: &mut Vec<String>,
    depth: usize,
) -> Result<Value, OpenApiError> {
    let depth = depth.checked_sub(1).ok_or(OpenApiError::TooDeep)?;
    let Some(reference) = reference(schema) else { return inside(all, schema, path, depth) };
    if path.iter().any(|visited| visited == reference) {
        return Ok(json!({"type": "object"}));
    }
    let target = all
        .get(reference.strip_prefix(PREFIX).unwrap_or(reference))
        .ok_or_else(|| OpenApiError::Unresolved(reference.to_owned()))?;
    path.push(reference.to_owned());
    let flat = inside(all, target, path, depth);
    path.pop();
    flat
}

fn inside(
    all: &Schemas,
    schema: &Value,
    path: &mut Vec<String>,
    depth: usize,
) -> Result<Value, OpenApiError> {
    let mut flat = schema.clone();
    drop_empty(&mut flat);
    if let Some(properties) = flat.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            *property = flatten(all, property, path, depth)?;
        }
    }
    for key in ["additionalProperties", "items"] {
        if let Some(child) = flat.get_mut(key).filter(|child| child.is_object()) {
            *child = flatten(all, child, path, depth)?;
        }
    }
    Ok(flat)
}

/// Keywords whose empty values are dropped.
const EMPTY_IS_ABSENT: [&str; 23] = [
    "$ref",
    "$schema",
    "allOf",
    "anyOf",
    "definitions",
    "dependencies",
    "description",
    "discriminator",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Drops empty values, as decoding a schema into a Go type and encoding it again does.
fn drop_empty(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    map.retain(|key, value| {
        let absent = match value {
            Value::Null => true,
            Value::Bool(set) => !*set,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Number(_) => false,
        };
        !(absent && EMPTY_IS_ABSENT.contains(&key.as_str()))
    });
    for key in ["allOf", "anyOf", "oneOf"] {
        map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(drop_empty);
    }
    if let Some(not) = map.get_mut("not") {
        drop_empty(not);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schemas: &Value, want: Option<&Value>) {
        let document = json!({"components": {"schemas": schemas}});
        let gvk = Gvk::new("example.org/v1", "Thing");
        let found = schema_of(&Object::from_value(document).unwrap(), &gvk).unwrap();
        assert_eq!(found.map(Object::into_value).as_ref(), want);
    }

    fn gvk(kind: &str) -> Value {
        json!([{"group": "example.org", "version": "v1", "kind": kind}])
    }

    #[test]
    fn keywords_that_say_nothing_are_gone() {
        // FN-S5
        let empty = json!({
            "type": "string", "description": "", "enum": [], "nullable": false, "default": "",
            "readOnly": false, "anyOf": [{"title": "", "type": "integer"}],
        });
        let left = json!({"type": "string", "default": "", "anyOf": [{"type": "integer"}]});
        check(
            &json!({"thing": {
                "x-kubernetes-group-version-kind": gvk("Thing"), "required": [],
                "properties": {"a": empty, "b": {"type": "object", "properties": {}}},
            }}),
            Some(&json!({
                "x-kubernetes-group-version-kind": gvk("Thing"),
                "properties": {"a": left, "b": {"type": "object"}},
            })),
        );
    }

    #[test]
    fn references_are_put_in_place_and_cycles_end_in_an_object() {
        // FN-S5, case 33
        check(
            &json!({
                "thing": {
                    "x-kubernetes-group-version-kind": gvk("Thing"),
                    "properties": {
                        "a": {"allOf": [{"$ref": "#/components/schemas/part"}], "description": "lost"},
                        "self": {"$ref": "#/components/schemas/thing"},
                    },
                },
                "part": {"type": "array", "items": {"$ref": "#/components/schemas/leaf"}},
                "leaf": {"type": "string"},
            }),
            Some(&json!({
                "x-kubernetes-group-version-kind": gvk("Thing"),
                "properties": {
                    "a": {"type": "array", "items": {"type": "string"}},
                    "self": {"type": "object"},
                },
            })),
        );
    }

    #[test]
    fn a_schema_of_several_kinds_or_of_another_case_never_matches() {
        // FN-S4, case 32
        check(&json!({"thing": {"x-kubernetes-group-version-kind": gvk("thing")}}), None);
        let both = json!([gvk("Thing")[0], gvk("Other")[0]]);
        check(&json!({"thing": {"x-kubernetes-group-version-kind": both}}), None);
    }

    #[test]
    fn a_reference_to_nothing_is_an_error() {
        let document = json!({"components": {"schemas": {"thing": {
            "x-kubernetes-group-version-kind": gvk("Thing"),
            "items": {"$ref": "#/components/schemas/nothing"},
        }}}});
        let document = Object::from_value(document).unwrap();
        let error = schema_of(&document, &Gvk::new("example.org/v1", "Thing")).unwrap_err();
        let nothing = "#/components/schemas/nothing".to_owned();
        assert_eq!(error, OpenApiError::Unresolved(nothing));
    }
}
