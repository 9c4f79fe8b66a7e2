//! The parts of a Composition, CompositionRevision or Operation that define which functions to run.
//!
//! Unknown fields are ignored, as in upstream's typed client.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Object;
use crate::condition::null_is_default;

/// The spec of a Composition.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompositionSpec {
    /// The kind of composite resource that it is for.
    #[serde(default, deserialize_with = "null_is_default")]
    pub composite_type_ref: TypeReference,
    /// The namespace of connection secrets of legacy composite resources.
    #[serde(default)]
    pub write_connection_secrets_to_namespace: Option<String>,
    /// How resources are composed: `Pipeline` or `Resources`. Empty if it is not said.
    #[serde(default, deserialize_with = "null_is_default")]
    pub mode: String,
    /// The functions to run, in order.
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
    /// Name of the step.
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
    /// The resources and schemas that the function gets from the first call on.
    #[serde(default)]
    pub requirements: Option<Bootstrap>,
}

/// Configuration for a function. A value that is not an object is refused when the step runs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub enum Input {
    /// A valid input, shared by every call.
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

/// A reference to a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct FunctionReference {
    /// The name of the function.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
}

/// A secret for a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// The name by which the function knows it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// `Secret` or `None`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub source: String,
    /// The Secret.
    #[serde(default)]
    pub secret_ref: Option<SecretReference>,
}

/// A reference to a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SecretReference {
    /// The namespace of the Secret.
    #[serde(default, deserialize_with = "null_is_default")]
    pub namespace: String,
    /// The name of the Secret.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
}

/// The resources and schemas that a function gets from the first call on.
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
    /// The name by which the function knows them.
    #[serde(default, deserialize_with = "null_is_default")]
    pub requirement_name: String,
    /// Group and version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
    /// The namespace to look in.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Selects the resource with this name.
    #[serde(default)]
    pub name: Option<String>,
    /// Selects the resources with all of these labels.
    #[serde(default)]
    pub match_labels: Option<BTreeMap<String, String>>,
}

/// The schema of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequiredSchema {
    /// The name by which the function knows it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub requirement_name: String,
    /// Group and version.
    #[serde(default, deserialize_with = "null_is_default")]
    pub api_version: String,
    /// Kind.
    #[serde(default, deserialize_with = "null_is_default")]
    pub kind: String,
}

/// Reads a list. Null is an empty list, and a null item is a default item.
fn nulls_are_defaults<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    let items = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// The error of a spec that does not fit its kind.
#[derive(Debug, thiserror::Error)]
#[error("cannot unmarshal JSON to object: {0}")]
pub struct SpecError(#[from] serde_json::Error);

/// The spec of a Composition or CompositionRevision. An absent spec is empty.
pub fn composition_spec(object: &Object) -> Result<CompositionSpec, SpecError> {
    object
        .get("spec")
        .filter(|v| !v.is_null())
        .map_or_else(|| Ok(CompositionSpec::default()), |v| Ok(CompositionSpec::deserialize(v)?))
}

/// The steps of an Operation. Empty if it has no pipeline.
pub fn operation_steps(object: &Object) -> Result<Vec<Step>, serde_json::Error> {
    object.at(&["spec", "pipeline"]).map_or_else(|| Ok(Vec::new()), nulls_are_defaults)
}

/// The names of the functions that `spec.pipeline` calls, without duplicates, in the order of the
/// steps.
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
