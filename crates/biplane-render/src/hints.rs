//! Adds advice to errors that are caused by missing input.

use anyhow::{Error, anyhow};
use biplane_model::{Object, Value};

/// The API group of the input that refers to environment configs.
const ENVIRONMENT_INPUT: &str = "environmentconfigs.fn.crossplane.io/";

/// Adds to an error the objects that the pipeline refers to but the input lacks, with the flags
/// that supply them.
pub(crate) fn explain(
    error: Error,
    pipeline: &Object,
    credentials: &[Object],
    required: &[Object],
) -> Error {
    let steps = pipeline.at(&["spec", "pipeline"]).and_then(Value::as_array);
    let steps = || steps.into_iter().flatten();
    let secrets = steps().flat_map(|step| missing_secrets(step, credentials));
    let configs = steps().flat_map(|step| missing_environment_configs(step, required));
    let mut hints: Vec<String> = Vec::new();
    for hint in secrets.chain(configs) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    if hints.is_empty() { error } else { anyhow!("{error:#}\n{}", hints.join("\n")) }
}

fn missing_secrets(step: &Value, credentials: &[Object]) -> Vec<String> {
    let named = step.get("credentials").and_then(Value::as_array);
    let of_secrets = |credential: &&Value| text(credential, "source") == "Secret";
    let named = named.into_iter().flatten().filter(of_secrets);
    let refs = named.filter_map(|credential| credential.get("secretRef"));
    let missing = refs.filter_map(|secret| {
        let (namespace, name) = (text(secret, "namespace"), text(secret, "name"));
        let is_given = |one: &Object| one.name() == name && one.namespace() == namespace;
        let given = credentials.iter().any(is_given);
        (!given).then(|| {
            format!("Secret {namespace}/{name} is missing: pass it with --function-credentials.")
        })
    });
    missing.collect()
}

fn missing_environment_configs(step: &Value, required: &[Object]) -> Vec<String> {
    let Some(input) = step.get("input") else { return Vec::new() };
    let resolution = input.pointer("/spec/policy/resolution").and_then(Value::as_str);
    if !text(input, "apiVersion").starts_with(ENVIRONMENT_INPUT) || resolution == Some("Optional") {
        return Vec::new();
    }
    let sources = input.pointer("/spec/environmentConfigs").and_then(Value::as_array);
    let refs = sources.into_iter().flatten().filter_map(|source| source.get("ref"));
    let missing = refs.filter_map(|config| {
        let name = text(config, "name");
        let is_given = |one: &Object| one.kind() == "EnvironmentConfig" && one.name() == name;
        let given = required.iter().any(is_given);
        (!given).then(|| {
            format!("EnvironmentConfig {name} is missing: pass it with --required-resources.")
        })
    });
    missing.collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn explained(credentials: &[Object], required: &[Object]) -> String {
        let pipeline = json!([
            {"step": "a", "credentials": [
                {"name": "c", "source": "Secret", "secretRef": {"namespace": "n", "name": "s"}},
                {"name": "none", "source": "None", "secretRef": {"namespace": "n", "name": "x"}},
            ]},
            {"step": "again", "credentials": [
                {"name": "c", "source": "Secret", "secretRef": {"namespace": "n", "name": "s"}},
            ]},
            {"step": "b", "input": {"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1",
                "spec": {"environmentConfigs": [{"type": "Reference", "ref": {"name": "e"}}]}}},
            {"step": "d", "input": {"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1",
                "spec": {"policy": {"resolution": "Optional"},
                    "environmentConfigs": [{"type": "Reference", "ref": {"name": "f"}}]}}},
            {"step": "c", "input": {"apiVersion": "example.org/v1",
                "spec": {"environmentConfigs": [{"ref": {"name": "other"}}]}}},
        ]);
        let pipeline = object(json!({"spec": {"pipeline": pipeline}}));
        explain(anyhow!("failed"), &pipeline, credentials, required).to_string()
    }

    #[test]
    fn what_is_missing_is_named_with_its_flag() {
        let secret = object(json!({"metadata": {"name": "s", "namespace": "n"}}));
        let elsewhere = object(json!({"metadata": {"name": "s", "namespace": "other"}}));
        let config = object(json!({"kind": "EnvironmentConfig", "metadata": {"name": "e"}}));
        let no_config = object(json!({"kind": "ConfigMap", "metadata": {"name": "e"}}));
        let no_secret_hint = "Secret n/s is missing: pass it with --function-credentials.";
        let no_config_hint = "EnvironmentConfig e is missing: pass it with --required-resources.";
        assert_eq!(
            explained(&[elsewhere], &[no_config]),
            format!("failed\n{no_secret_hint}\n{no_config_hint}")
        );
        assert_eq!(
            explained(&[], std::slice::from_ref(&config)),
            format!("failed\n{no_secret_hint}")
        );
        assert_eq!(explained(&[secret], &[config]), "failed");
    }
}
