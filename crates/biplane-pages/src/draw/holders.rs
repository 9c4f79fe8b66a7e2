//! Where the values of a step's answer stood in what the step was given.

use std::collections::BTreeMap;

use biplane_recorder::query::blame::leaves;
use biplane_recorder::query::difference::{NODES, is_redacted};
use biplane_recorder::query::path::{Path, Segment};
use biplane_recorder::query::state;
use serde_json::Value;

/// The shortest text that says where it comes from.
const TELLING: usize = 3;

/// A place that holds a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// What has the value: the kind of the composite resource, `context`, or a required resource.
    pub document: String,
    /// Where it is there.
    pub path: String,
}

/// The plain values of a step's input and where each stood.
///
/// The observed composite resource comes first, then the context, then required resources. A value
/// that the first of them has in several places tells nothing.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    values: BTreeMap<String, (u8, Option<Holder>)>,
    nodes: usize,
}

impl Holders {
    /// The values of a request.
    pub fn of_request(request: &Value) -> Self {
        let mut holders = Self::default();
        let composite = state::slot(request.get("observed"), state::COMPOSITE).map(state::body);
        if let Some(composite) = composite {
            let kind = composite.get("kind").and_then(Value::as_str).unwrap_or("composite");
            holders.take(0, kind, composite);
        }
        if let Some(context) = request.get("context") {
            holders.take(1, "context", context);
        }
        for part in ["requiredResources", "extraResources"] {
            let required = request.get(part).and_then(Value::as_object);
            for (name, required) in required.into_iter().flatten() {
                let items = required.get("items").and_then(Value::as_array);
                for body in items.into_iter().flatten().map(state::body) {
                    let kind = body.get("kind").and_then(Value::as_str).unwrap_or("required");
                    holders.take(2, &format!("{kind} {name}"), body);
                }
            }
        }
        holders
    }

    fn take(&mut self, rank: u8, document: &str, value: &Value) {
        for (path, value) in leaves(value) {
            self.nodes += 1;
            if self.nodes > NODES {
                return;
            }
            let Some(key) = telling(value).filter(|_| !is_type(&path) && !path.is_bookkeeping())
            else {
                continue;
            };
            let holder = Holder { document: document.to_owned(), path: path.to_string() };
            self.values
                .entry(key)
                .and_modify(|(first, held)| {
                    if *first == rank {
                        *held = None;
                    }
                })
                .or_insert((rank, Some(holder)));
        }
    }

    /// The place that holds a value, if the value is telling and no other place has it.
    pub fn of(&self, value: &Value) -> Option<&Holder> {
        self.values.get(&telling(value)?)?.1.as_ref()
    }
}

/// The type of a document, which many share.
fn is_type(path: &Path) -> bool {
    match path.0.as_slice() {
        [Segment::Field(name)] => matches!(name.as_str(), "apiVersion" | "kind"),
        _ => false,
    }
}

/// A key for values that are unlikely to be equal by chance: texts that are not short, and numbers.
fn telling(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.chars().count() >= TELLING && !is_redacted(value) => {
            Some(format!("s{text}"))
        }
        Value::Number(_) => Some(format!("n{}", biplane_go::json::to_string(value))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Value {
        json!({
            "observed": {"composite": {"resource": {
                "apiVersion": "example.org/v1", "kind": "Store",
                "metadata": {"name": "north", "generation": 77},
                "spec": {"region": "eu-west-1", "size": 3, "zone": "a", "twice": ["same", "same"],
                    "secret": "**REDACTED**", "on": true},
            }}},
            "context": {"env": {"regions": ["eu-west-1", "eu-central-1"], "team": "blue"}},
            "requiredResources": {"vpc": {"items": [{"resource": {
                "kind": "VPC", "status": {"id": "vpc-12", "team": "blue", "cidr": "10.0.0.0/8"},
            }}]}},
        })
    }

    #[test]
    fn a_telling_value_leads_to_its_only_place() {
        let holders = Holders::of_request(&request());
        let of = |value: Value| {
            holders.of(&value).map(|holder| format!("{} {}", holder.document, holder.path))
        };
        for (value, want) in [
            (json!("eu-west-1"), Some("Store spec.region")),
            (json!(3), Some("Store spec.size")),
            (json!("eu-central-1"), Some("context env.regions[1]")),
            (json!("vpc-12"), Some("VPC vpc status.id")),
            // The context comes before required resources.
            (json!("blue"), Some("context env.team")),
            // Too short, of another type, in two places, bookkeeping, a type, redacted.
            (json!("a"), None),
            (json!("3"), None),
            (json!("same"), None),
            (json!(77), None),
            (json!("Store"), None),
            (json!("**REDACTED**"), None),
            (json!(true), None),
            (json!("elsewhere"), None),
        ] {
            assert_eq!(of(value.clone()).as_deref(), want, "{value}");
        }
    }
}
