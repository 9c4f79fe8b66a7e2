//! How large data of a schema can become, as an API server assumes it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::shape::escape;

/// The largest request that an API server accepts, in bytes.
const LARGEST_REQUEST: i64 = 3 << 20;
/// The longest text that fits into a request, without its quotes.
const LONGEST_TEXT: i64 = LARGEST_REQUEST - 2;
/// The longest duration or point in time, as JSON.
const LONGEST_TIME: i64 = 32;
/// A date, as JSON.
const DATE: i64 = 12;

/// The sizes of data that a schema describes. Data that rules cannot use has none.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// The most bytes, items or entries.
    pub(super) most: u64,
    /// The fewest bytes as JSON.
    least_bytes: i64,
    /// The fields of an object, under the names that expressions use.
    pub(super) fields: BTreeMap<String, Sizes>,
    /// The items of a list, or the values of a map.
    pub(super) items: Option<Box<Sizes>>,
    /// Whether it is a map. How long its keys are is not known.
    pub(super) has_keys: bool,
}

impl Sizes {
    /// Reads a schema. That of a resource has the fields of every resource.
    pub fn read(schema: &Json, resource: bool) -> Option<Self> {
        let limit = |name: &str| {
            schema.get(name).and_then(biplane_model::object::integer).map(|n| n.max(0))
        };
        let text = |name: &str| schema.get(name).and_then(Json::as_str).unwrap_or_default();
        let plain = |most: i64, least_bytes: i64| {
            Some(Self { most: most.unsigned_abs(), least_bytes, ..Self::default() })
        };
        // A character has up to four bytes.
        let longest = limit("maxLength").map(|most| most.saturating_mul(4));
        if is_true(schema, "x-kubernetes-int-or-string") {
            return plain(longest.unwrap_or(LONGEST_TEXT), 1);
        }
        match (text("type"), text("format")) {
            ("array", _) => {
                let items = Self::of(schema.get("items")?)?;
                let fitting = LONGEST_TEXT / (items.least_bytes + 1);
                let most = limit("maxItems").unwrap_or(fitting);
                Some(Self { items: Some(Box::new(items)), ..plain(most, 2)? })
            }
            ("object", _) => {
                let inner = schema.get("additionalProperties").filter(|inner| inner.is_object());
                match inner {
                    Some(inner) => {
                        let items = Self::of(inner)?;
                        // A key of two letters, quotes, a colon and a comma.
                        let fitting = LONGEST_TEXT / (items.least_bytes + 6);
                        let most = limit("maxProperties").unwrap_or(fitting);
                        let items = Some(Box::new(items));
                        Some(Self { items, has_keys: true, ..plain(most, 2)? })
                    }
                    None => Some(Self::of_object(schema, resource)),
                }
            }
            ("string", "byte") => plain(limit("maxLength").unwrap_or(LONGEST_TEXT), 2),
            ("string", "duration") => plain(LONGEST_TIME, 3),
            ("string", "date") => plain(DATE, DATE),
            ("string", "date-time") => plain(LONGEST_TIME, 21),
            ("string", _) => plain(longest.unwrap_or_else(|| longest_value(schema)), 2),
            ("boolean", _) => plain(0, 4),
            ("number" | "integer", _) => plain(0, 1),
            _ => None,
        }
    }

    fn of(schema: &Json) -> Option<Self> {
        Self::read(schema, is_true(schema, "x-kubernetes-embedded-resource"))
    }

    fn of_object(schema: &Json, resource: bool) -> Self {
        let required = schema.get("required").and_then(Json::as_array);
        let required: Vec<&str> = required.into_iter().flatten().filter_map(Json::as_str).collect();
        let mut sizes = Self { least_bytes: 2, ..Self::default() };
        let declared = schema.get("properties").and_then(Json::as_object);
        let with_meta = resource && !has_meta(schema);
        for (name, property) in declared.into_iter().flatten() {
            if with_meta && META.contains(&name.as_str()) {
                continue;
            }
            let Some(field) = Self::of(property) else { continue };
            sizes.add(name, field, &required, property);
        }
        if with_meta {
            let string = serde_json::json!({"type": "string"});
            let metadata = serde_json::json!({
                "type": "object", "properties": {"name": string, "generateName": string},
            });
            for (name, property) in META.into_iter().zip([&string, &string, &metadata]) {
                let Some(field) = Self::of(property) else { continue };
                sizes.add(name, field, &required, property);
            }
        }
        sizes
    }

    fn add(&mut self, name: &str, field: Self, required: &[&str], property: &Json) {
        let has_default = property.get("default").is_some_and(|default| !default.is_null());
        if required.contains(&name) && !has_default {
            let length = i64::try_from(name.len()).unwrap_or(i64::MAX);
            // Quotes, a colon and a comma.
            let bytes = length.saturating_add(field.least_bytes).saturating_add(4);
            self.least_bytes = self.least_bytes.saturating_add(bytes);
        }
        if let Some(name) = escape(name) {
            self.fields.insert(name, field);
        }
    }

    /// How many such values fit into a request, with a comma between.
    pub fn most_in_request(&self) -> u64 {
        (LARGEST_REQUEST / self.least_bytes.saturating_add(1)).unsigned_abs()
    }
}

/// The fields of every resource.
const META: [&str; 3] = ["kind", "apiVersion", "metadata"];

fn is_true(schema: &Json, name: &str) -> bool {
    schema.get(name) == Some(&Json::Bool(true))
}

/// Whether a schema describes the fields of every resource itself.
fn has_meta(schema: &Json) -> bool {
    let is = |holder: &Json, name: &str, kind: &str| {
        let property = holder.get("properties").and_then(|properties| properties.get(name));
        property.and_then(|property| property.get("type")).and_then(Json::as_str) == Some(kind)
    };
    let metadata = schema.get("properties").and_then(|properties| properties.get("metadata"));
    is(schema, "kind", "string")
        && is(schema, "apiVersion", "string")
        && is(schema, "metadata", "object")
        && metadata.is_some_and(|metadata| {
            is(metadata, "name", "string") && is(metadata, "generateName", "string")
        })
}

/// The length of the longest text that a schema allows.
fn longest_value(schema: &Json) -> i64 {
    let allowed = schema.get("enum").and_then(Json::as_array).filter(|list| !list.is_empty());
    let Some(allowed) = allowed else { return LONGEST_TEXT };
    let lengths = allowed.iter().filter_map(Json::as_str).map(str::len).max().unwrap_or_default();
    i64::try_from(lengths).unwrap_or(i64::MAX)
}
