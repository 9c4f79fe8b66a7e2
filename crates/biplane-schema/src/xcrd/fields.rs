//! What the control plane adds to the kinds of a definition: fields, and columns of `kubectl get`.

use biplane_model::{Map, Object, Value};
use serde_json::json;

use super::{Kind, MAX_NAME, Scope};

/// The columns after those of the definition.
pub(super) fn columns(kind: Kind, scope: Scope) -> Vec<Value> {
    let text = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let condition = |name: &str, r#type: &str| {
        text(name, &format!(".status.conditions[?(@.type=='{type}')].status"))
    };
    let mut columns = vec![condition("SYNCED", "Synced"), condition("READY", "Ready")];
    match kind {
        Kind::Composite => {
            let machinery = match scope {
                Scope::LegacyCluster => ".spec",
                Scope::Cluster | Scope::Namespaced => ".spec.crossplane",
            };
            columns.push(text("COMPOSITION", &format!("{machinery}.compositionRef.name")));
            let path = format!("{machinery}.compositionRevisionRef.name");
            let mut revision = text("COMPOSITIONREVISION", &path);
            revision["priority"] = 1.into();
            columns.push(revision);
        }
        Kind::Claim => {
            columns.push(text("CONNECTION-SECRET", ".spec.writeConnectionSecretToRef.name"));
        }
    }
    columns.push(json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"}));
    columns
}

/// The schema of a kind: that of the user, as far as the user decides, with the control plane's
/// fields. These win over fields of the same name.
pub(super) fn schema(definition: &Object, kind: Kind, mut users: Map<String, Value>) -> Value {
    let mut parts = match users.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let longest = parts
        .get("metadata")
        .and_then(|metadata| metadata.pointer("/properties/name/maxLength"))
        .and_then(Value::as_i64)
        .map_or(MAX_NAME, |longest| longest.min(MAX_NAME));
    let scope = Scope::of(definition);
    let decided = ["properties", "required", "description", "x-kubernetes-validations", "oneOf"];
    let spec = merged(
        parts.remove("spec"),
        &[&decided[..], &["x-kubernetes-preserve-unknown-fields"]].concat(),
        spec_fields(definition, kind, scope),
    );
    let status = merged(parts.remove("status"), &decided, status_fields(kind, scope));
    let mut schema = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": longest}},
            },
            "spec": spec,
            "status": status,
        },
    });
    for field in ["description", "x-kubernetes-validations"] {
        if let Some(value) = users.remove(field) {
            schema[field] = value;
        }
    }
    schema
}

/// An object of which users decide some keys, with these properties.
fn merged(users: Option<Value>, decided: &[&str], fields: Map<String, Value>) -> Value {
    let mut merged = Map::new();
    merged.insert("type".into(), "object".into());
    let mut properties = Map::new();
    if let Some(Value::Object(users)) = users {
        for (key, value) in users {
            match value {
                Value::Object(given) if key == "properties" => properties = given,
                value if decided.contains(&key.as_str()) => {
                    merged.insert(key, value);
                }
                _ => {}
            }
        }
    }
    properties.extend(fields);
    merged.insert("properties".into(), properties.into());
    merged.into()
}

fn text() -> Value {
    json!({"type": "string"})
}

/// An object of texts, all of which are required.
fn texts(required: &[&str]) -> Value {
    let properties: Map<_, _> = required.iter().map(|name| ((*name).to_owned(), text())).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

fn selector() -> Value {
    json!({"type": "object", "required": ["matchLabels"], "properties": {
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
    }})
}

fn choice(options: [&str; 2], default: Option<&Value>) -> Value {
    let mut choice = json!({"type": "string", "enum": options});
    if let Some(default) = default {
        choice["default"] = default.clone();
    }
    choice
}

fn spec_fields(definition: &Object, kind: Kind, scope: Scope) -> Map<String, Value> {
    let default = |field: &str| definition.at(&["spec", field]).filter(|value| !value.is_null());
    let policy = match kind {
        Kind::Composite => default("defaultCompositionUpdatePolicy"),
        // The composite resource has the default already.
        Kind::Claim => None,
    };
    let common = [
        ("compositionRef", texts(&["name"])),
        ("compositionSelector", selector()),
        ("compositionRevisionRef", texts(&["name"])),
        ("compositionRevisionSelector", selector()),
        ("compositionUpdatePolicy", choice(["Automatic", "Manual"], policy)),
    ];
    let mut fields: Map<_, _> =
        common.map(|(name, schema)| (name.to_owned(), schema)).into_iter().collect();
    let mut add = |name: &str, schema| fields.insert(name.to_owned(), schema);
    match (kind, scope) {
        (Kind::Claim, _) => {
            let policy = default("defaultCompositeDeletePolicy");
            add("compositeDeletePolicy", choice(["Background", "Foreground"], policy));
            add("resourceRef", texts(&["apiVersion", "kind", "name"]));
            add("writeConnectionSecretToRef", texts(&["name"]));
            fields
        }
        (Kind::Composite, Scope::LegacyCluster) => {
            add("resourceRefs", resource_refs(true));
            add("claimRef", texts(&["apiVersion", "kind", "namespace", "name"]));
            add("writeConnectionSecretToRef", texts(&["name", "namespace"]));
            fields
        }
        (Kind::Composite, scope) => {
            // A namespaced composite resource composes resources of its own namespace.
            add("resourceRefs", resource_refs(scope == Scope::Cluster));
            let machinery = json!({
                "type": "object",
                "description": "Configures how Crossplane will reconcile this composite resource",
                "properties": fields,
            });
            Map::from_iter([("crossplane".to_owned(), machinery)])
        }
    }
}

fn resource_refs(namespaces: bool) -> Value {
    let mut item = texts(&["apiVersion", "kind"]);
    item["properties"]["name"] = text();
    if namespaces {
        item["properties"]["namespace"] = text();
    }
    json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": item})
}

/// The references to EnvironmentConfigs.
pub(super) fn environment_config_refs() -> Value {
    let mut item = texts(&["apiVersion", "kind"]);
    item["properties"]["name"] = text();
    json!({"type": "array", "items": item})
}

fn status_fields(kind: Kind, scope: Scope) -> Map<String, Value> {
    let time = json!({"type": "string", "format": "date-time"});
    let mut condition = texts(&["lastTransitionTime", "reason", "status", "type"]);
    condition["properties"]["lastTransitionTime"] = time.clone();
    condition["properties"]["message"] = text();
    condition["properties"]["observedGeneration"] = json!({"type": "integer", "format": "int64"});
    let conditions = json!({
        "type": "array",
        "description": "Conditions of the resource.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": condition,
    });
    let mut fields = Map::from_iter([
        ("conditions".to_owned(), conditions),
        // Without it, a handled request for a reconcile would be handled again and again. Claims
        // have it because their status is a copy.
        ("lastHandledReconcileAt".to_owned(), text()),
    ]);
    if kind == Kind::Claim || scope == Scope::LegacyCluster {
        let details = json!({"type": "object", "properties": {"lastPublishedTime": time}});
        fields.insert("connectionDetails".into(), details);
        let types = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text()});
        fields.insert("claimConditionTypes".into(), types);
    }
    fields
}
