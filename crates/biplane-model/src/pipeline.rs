//! The parts of a Composition, CompositionRevision or Operation that say which functions to run.
//!
//! Fields that we do not know are passed over, as the typed client of upstream does.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Object;
use crate::condition::null_is_default;

/// What a Composition says about composite resources.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositionSpec {
    /// The kind that it is for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub composite_type_ref: TypeReference,
    /// Where connection secrets of legacy composite resources go.
    #[serde(default)]
    pub write_connection_secrets_to_namespace: Option<String>,
    /// The functions to run.
    #[serde(default, deserialize_with = "nulls_are_defaults")]
    pub pipeline: Vec<Step>,
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeReference {
    /// Group and version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
}

/// One function call of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub step: String,
    /// The function.
    #[serde(default, deserialize_with = "null_is_default")]
    pub function_ref: FunctionReference,
    /// Configuration for the function.
    #[serde(default)]
    pub input: Option<Input>,
    /// Secrets for the function.
    #[serde(default, deserialize_with = "nulls_are_defaults")]
    pub credentials: Vec<Credential>,
    /// What the function is given from the first call on.
    #[serde(default)]
    pub requirements: Option<Bootstrap>,
}

/// Configuration for a function. What is not an object is refused when the step runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub enum Input {
    /// As it should be; shared by every call.
    Object(Object),
    /// Anything else.
    Other(Value),
}

impl From<Value> for Input {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(map) => Self::Object(map.into()),
            other => Self::Other(other),
        }
    }
}

/// Names a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FunctionReference {
    /// Its name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
}

/// A secret for a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// As the function knows it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// `Secret` or `None`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub source: String,
    /// The Secret.
    #[serde(default)]
    pub secret_ref: Option<SecretReference>,
}

/// Names a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SecretReference {
    /// Its namespace.
    #[serde(default, deserialize_with = "null_is_default")]
    pub namespace: String,
    /// Its name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
}

/// What a function is given from the first call on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// Resources.
    #[serde(default, deserialize_with = "nulls_are_defaults")]
    pub required_resources: Vec<RequiredResource>,
    /// Schemas.
    #[serde(default, deserialize_with = "nulls_are_defaults")]
    pub required_schemas: Vec<RequiredSchema>,
}

/// Resources of a kind: one by name, several by labels, or all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequiredResource {
    /// As the function knows it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub requirement_name: String,
    /// Group and version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
    /// Where to look.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The one of this name.
    #[serde(default)]
    pub name: Option<String>,
    /// Those with all of these labels.
    #[serde(default)]
    pub match_labels: Option<BTreeMap<String, String>>,
}

/// The schema of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequiredSchema {
    /// As the function knows it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub requirement_name: String,
    /// Group and version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
}

/// A list without nulls: none at all for null, and an item without content for each null in it.
fn nulls_are_defaults<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// Why an object's spec is not what its kind says.
#[derive(Debug, thiserror::Error)]
#[error("cannot unmarshal JSON to object: {0}")]
pub struct SpecError(#[from] serde_json::Error);

/// The spec of a Composition or CompositionRevision; an absent one is empty.
pub fn composition_spec(object: &Object) -> Result<CompositionSpec, SpecError> {
    object
        .get("spec")
        .filter(|v| !v.is_null())
        .map_or_else(|| Ok(CompositionSpec::default()), |v| Ok(CompositionSpec::deserialize(v)?))
}

/// The steps of an Operation; none if it has no pipeline.
pub fn operation_steps(object: &Object) -> Result<Vec<Step>, serde_json::Error> {
    object.at(&["spec", "pipeline"]).map_or_else(|| Ok(Vec::new()), nulls_are_defaults)
}

/// The names of the functions that `spec.pipeline` calls, each once, in the order of the steps.
pub fn function_names(object: &Object) -> Vec<String> {
    let steps = object.at(&["spec", "pipeline"]).and_then(Value::as_array);
    let mut names = Vec::new();
    for step in steps.into_iter().flatten() {
        let name = step.pointer("/functionRef/name").and_then(Value::as_str).unwrap_or_default();
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_among_the_steps_is_a_step_without_content() {
        for (pipeline, want) in [
            (json!(null), vec![]),
            (json!([]), vec![]),
            (json!([null]), vec![Step::default()]),
            (
                json!([{"credentials": [null]}]),
                vec![Step { credentials: vec![Credential::default()], ..Step::default() }],
            ),
        ] {
            let object = json!({"spec": {"pipeline": pipeline}});
            let object = Object::from_value(object).unwrap();
            assert_eq!(composition_spec(&object).unwrap().pipeline, want);
            assert_eq!(operation_steps(&object).unwrap(), want);
        }
        assert_eq!(operation_steps(&Object::new()).unwrap(), []);
    }
}
