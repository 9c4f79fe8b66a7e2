//! The environment of a Composition (`spec.environment`) as data: its two spellings, and the
//! defaults that an API server adds.
//!
//! The design document of the feature spells some fields differently from the releases that had it:
//! `reference` for `ref`, a list of selectors for one, and patches that are named after what they
//! read. Both are accepted, and only the released spelling is ever written.

use serde_json::Value;

use crate::Map;

/// The released names of patches between the environment and the composite resource, by the names
/// in the design document.
const PATCHES: [(&str, &str); 4] = [
    ("FromEnvironmentFieldPath", "ToCompositeFieldPath"),
    ("CombineFromEnvironment", "CombineToComposite"),
    ("ToEnvironmentFieldPath", "FromCompositeFieldPath"),
    ("CombineToEnvironment", "CombineFromComposite"),
];

/// Returns an environment in the released spelling, with its defaults.
pub fn normal(environment: &Value) -> Value {
    let mut environment = environment.clone();
    let Some(fields) = environment.as_object_mut() else { return environment };
    if let Some(Value::Array(sources)) = fields.get_mut("environmentConfigs") {
        *sources = std::mem::take(sources).into_iter().flat_map(one_selector_each).collect();
        sources.iter_mut().filter_map(Value::as_object_mut).for_each(source);
    }
    if let Some(Value::Array(patches)) = fields.get_mut("patches") {
        for patch in patches.iter_mut().filter_map(Value::as_object_mut) {
            let kind = patch.get("type").and_then(Value::as_str).unwrap_or_default();
            let released = PATCHES.iter().find(|(document, _)| *document == kind);
            if let Some((_, released)) = released {
                patch.insert("type".to_owned(), (*released).into());
            }
        }
    }
    environment
}

/// A source for every selector of a list.
fn one_selector_each(source: Value) -> Vec<Value> {
    match source.get("selector") {
        Some(Value::Array(selectors)) if !selectors.is_empty() => {
            let alone = |selector: &Value| {
                let mut source = source.clone();
                source["selector"] = selector.clone();
                source
            };
            selectors.iter().map(alone).collect()
        }
        _ => vec![source],
    }
}

fn source(source: &mut Map<String, Value>) {
    if !source.contains_key("ref")
        && let Some(reference) = source.remove("reference")
    {
        source.insert("ref".to_owned(), reference);
    }
    default(source, "type", "Reference");
    let Some(Value::Object(selector)) = source.get_mut("selector") else { return };
    default(selector, "mode", "Single");
    default(selector, "sortByFieldPath", "metadata.name");
    if let Some(Value::Array(labels)) = selector.get_mut("matchLabels") {
        for label in labels.iter_mut().filter_map(Value::as_object_mut) {
            default(label, "type", "FromCompositeFieldPath");
            default(label, "fromFieldPathPolicy", "Required");
        }
    }
}

fn default(map: &mut Map<String, Value>, key: &str, value: &str) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_spelling_of_the_document_becomes_the_released_one() {
        // ENV-1, ENV-2
        let document = json!({
            "environmentConfigs": [
                {"type": "Reference", "reference": {"name": "a"}},
                {"type": "Selector", "selector": [
                    {"matchLabels": [{"key": "stage", "valueFromFieldPath": "spec.stage"}]},
                    {"mode": "Multiple", "matchLabels": [{"type": "Value", "key": "x", "value": "y"}]},
                ]},
                {"ref": {"name": "b"}},
            ],
            "patches": [
                {"type": "FromEnvironmentFieldPath", "fromFieldPath": "a"},
                {"type": "CombineToEnvironment"},
                {"fromFieldPath": "b"},
            ],
        });
        let label = |rest: Value| {
            let mut label = json!({"fromFieldPathPolicy": "Required"});
            label.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            label
        };
        let stage = json!({
            "type": "FromCompositeFieldPath", "key": "stage", "valueFromFieldPath": "spec.stage",
        });
        let value = json!({"type": "Value", "key": "x", "value": "y"});
        let released = json!({
            "environmentConfigs": [
                {"type": "Reference", "ref": {"name": "a"}},
                {"type": "Selector", "selector": {
                    "mode": "Single", "sortByFieldPath": "metadata.name",
                    "matchLabels": [label(stage)],
                }},
                {"type": "Selector", "selector": {
                    "mode": "Multiple", "sortByFieldPath": "metadata.name",
                    "matchLabels": [label(value)],
                }},
                {"type": "Reference", "ref": {"name": "b"}},
            ],
            "patches": [
                {"type": "ToCompositeFieldPath", "fromFieldPath": "a"},
                {"type": "CombineFromComposite"},
                {"fromFieldPath": "b"},
            ],
        });
        assert_eq!(normal(&document), released);
        assert_eq!(normal(&released), released);
    }

    #[test]
    fn what_is_no_environment_stays() {
        for value in [json!(null), json!("x"), json!({"environmentConfigs": 3, "patches": [1]})] {
            assert_eq!(normal(&value), value);
        }
    }
}
