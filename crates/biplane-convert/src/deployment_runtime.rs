//! Turns a ControllerConfig into a DeploymentRuntimeConfig.

use anyhow::{Result, anyhow, bail};
use biplane_go::json;
use biplane_model::{Map, Value, fieldpath, yaml};

use crate::document::cannot_unmarshal;
use crate::print::{self, Origins};

mod decode;
mod kinds;

const GROUP: &str = "pkg.crossplane.io";
const VERSION: &str = "v1alpha1";
const KIND: &str = "ControllerConfig";

/// The fields of a ControllerConfig that become fields of the pod, with their names there.
const OF_POD: &[(&str, &str)] = &[
    ("affinity", "affinity"),
    ("imagePullSecrets", "imagePullSecrets"),
    ("nodeName", "nodeName"),
    ("nodeSelector", "nodeSelector"),
    ("podSecurityContext", "securityContext"),
    ("priorityClassName", "priorityClassName"),
    ("runtimeClassName", "runtimeClassName"),
    ("serviceAccountName", "serviceAccountName"),
    ("tolerations", "tolerations"),
    ("volumes", "volumes"),
];
/// Those that become fields of the container.
const OF_CONTAINER: &[&str] = &[
    "args",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "ports",
    "resources",
    "securityContext",
    "volumeMounts",
];
/// Those that are left out if they are empty, because they are plain texts in the new kind.
const PLAIN: &[&str] = &[
    "image",
    "imagePullPolicy",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "serviceAccountName",
];

/// Converts a ControllerConfig. The time becomes the creation timestamp, in the form of Kubernetes.
///
/// Other kinds that the reference knows, and an empty text, give an empty configuration.
pub fn deployment_runtime(text: &[u8], now: &str) -> Result<String> {
    let object = read(text).map_err(|error| error.context("Decode Error"))?;
    let decoded = decode::controller_config(&object)
        .map_err(|problem| anyhow!(problem).context("Decode Error"))?;
    let after = convert(&decoded, now);
    Ok(print::document(text, object, after, &origins(), false))
}

/// The object to convert: that of the text, or an empty one if it is of another kind.
fn read(text: &[u8]) -> Result<Map<String, Value>> {
    let value = if text.trim_ascii_start().starts_with(b"{") {
        let (value, rest) = json::decode(text).map_err(|error| no_kind(&error))?;
        if let Some(problem) = rest {
            return Err(no_kind(&problem));
        }
        value
    } else {
        yaml::read_document(text)?
    };
    let mut object = match value {
        Value::Null => Map::new(),
        Value::Object(object) => object,
        other => {
            const META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                                Kind string \"json:\\\"kind,omitempty\\\"\" }";
            return Err(no_kind(&cannot_unmarshal(&other, META)));
        }
    };
    fieldpath::normalize_map(&mut object);
    let (version, kind) = kinds::of(&object, text)?;
    if (version.as_str(), kind.as_str()) == (&format!("{GROUP}/{VERSION}"), KIND) {
        return Ok(object);
    }
    if !kinds::is_known(&version, &kind) {
        bail!(
            "no kind {kind:?} is registered for version {version:?} in scheme \
             \"pkg/runtime/scheme.go:100\""
        );
    }
    Ok(Map::new())
}

fn no_kind(problem: &str) -> anyhow::Error {
    anyhow!("couldn't get version/kind; json parse error: {problem}")
}

/// Where the parts of the new object come from.
fn origins() -> Origins {
    const POD: &str = "spec.deploymentTemplate.spec.template";
    let mut origins = Origins::default();
    for (from, to) in OF_POD {
        origins.moved(&format!("{POD}.spec.{to}"), &format!("spec.{from}"));
    }
    for key in OF_CONTAINER {
        origins.moved(&format!("{POD}.spec.containers.0.{key}"), &format!("spec.{key}"));
    }
    for key in ["annotations", "labels"] {
        origins.moved(&format!("{POD}.metadata.{key}"), &format!("spec.metadata.{key}"));
        origins
            .moved(&format!("spec.deploymentTemplate.metadata.{key}"), &format!("metadata.{key}"));
    }
    origins.moved("spec.deploymentTemplate.spec.replicas", "spec.replicas");
    origins
}

fn convert(config: &Map<String, Value>, now: &str) -> Map<String, Value> {
    let field = |object: &str, key: &str| config.get(object).and_then(|object| object.get(key));
    let own: Map<String, Value> = ["annotations", "labels"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), field("metadata", key)?.clone())))
        .collect();
    let mut spec = Map::new();
    let template = deployment(config, &own, now);
    if !template.is_empty() {
        spec.insert("deploymentTemplate".to_owned(), Value::Object(template));
    }
    let mut account = own.clone();
    if let Some(name) = field("spec", "serviceAccountName") {
        account.insert("name".to_owned(), name.clone());
    }
    for (key, metadata) in [("serviceAccountTemplate", account), ("serviceTemplate", own)] {
        if !metadata.is_empty() {
            spec.insert(key.to_owned(), Value::Object(with("metadata", metadata)));
        }
    }
    let mut metadata = with_text("creationTimestamp", now);
    if let Some(name) = field("metadata", "name") {
        metadata.insert("name".to_owned(), name.clone());
    }
    let mut object = with("metadata", metadata);
    object.insert("apiVersion".to_owned(), "pkg.crossplane.io/v1beta1".into());
    object.insert("kind".to_owned(), "DeploymentRuntimeConfig".into());
    object.insert("spec".to_owned(), Value::Object(spec));
    object
}

/// The template of the Deployment. It is empty if nothing of it is configured.
fn deployment(
    config: &Map<String, Value>,
    own: &Map<String, Value>,
    now: &str,
) -> Map<String, Value> {
    let none = Map::new();
    let spec = config.get("spec").and_then(Value::as_object).unwrap_or(&none);
    if own.is_empty() && spec.is_empty() {
        return Map::new();
    }
    let copied = |from: &str| {
        let value = spec.get(from)?;
        let is_empty = match value {
            Value::String(text) => text.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        (!is_empty || !PLAIN.contains(&from)).then(|| value.clone())
    };
    let mut pod: Map<String, Value> =
        OF_POD.iter().filter_map(|(from, to)| Some(((*to).to_owned(), copied(from)?))).collect();
    let has_container = OF_CONTAINER.iter().any(|key| spec.contains_key(*key));
    let containers = has_container.then(|| {
        let fields = OF_CONTAINER.iter();
        let mut container: Map<String, Value> =
            fields.filter_map(|key| Some(((*key).to_owned(), copied(key)?))).collect();
        container.insert("name".to_owned(), "package-runtime".into());
        container.entry("resources").or_insert_with(|| Value::Object(Map::new()));
        Value::Array(vec![Value::Object(container)])
    });
    pod.insert("containers".to_owned(), containers.unwrap_or_default());
    let mut metadata = with_text("creationTimestamp", now);
    if let Some(Value::Object(of_pod)) = spec.get("metadata") {
        metadata.extend(of_pod.clone());
    }
    let mut template = with("spec", pod);
    template.insert("metadata".to_owned(), Value::Object(metadata));
    let mut below = with("template", template);
    below.insert("selector".to_owned(), Value::Object(Map::new()));
    below.insert("strategy".to_owned(), Value::Object(Map::new()));
    if let Some(replicas) = spec.get("replicas") {
        below.insert("replicas".to_owned(), replicas.clone());
    }
    let mut deployment = with("spec", below);
    if !own.is_empty() {
        deployment.insert("metadata".to_owned(), Value::Object(own.clone()));
    }
    deployment
}

fn with(key: &str, value: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), Value::Object(value))])
}

fn with_text(key: &str, value: &str) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), Value::from(value))])
}
