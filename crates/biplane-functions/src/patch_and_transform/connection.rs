//! Connection details, and the Secret for composite resources that have no connection details
//! themselves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_function::Budget;
use biplane_model::{Map, Object, Value};
use biplane_patch::connection::Details;
use biplane_patch::document::Document;
use biplane_patch::patch;
use biplane_patch::prepared::{FromPolicy, PatchKind, Source};
use serde_json::json;

use super::plan::SecretRef;

/// Whether the control plane does not support connection details for the composite resource.
pub(super) fn needs_secret(xr: &Object) -> bool {
    match xr.get("spec") {
        Some(Value::Object(spec)) => spec.contains_key("crossplane"),
        _ => false,
    }
}

/// Returns a Secret with the connection details.
pub(super) fn secret(
    xr: &Document,
    details: &Details,
    reference: Option<&SecretRef>,
    budget: &Budget,
) -> Result<Object, String> {
    let (name, namespace) = reference_for(xr, reference, budget)
        .map_err(|error| format!("cannot generate connection secret reference: {error}"))?;
    let mut metadata = Map::new();
    for (key, value) in [("name", name), ("namespace", namespace)] {
        if !value.is_empty() {
            metadata.insert(key.into(), value.into());
        }
    }
    let data: Map<String, Value> =
        details.iter().map(|(key, value)| (key.clone(), STANDARD.encode(value).into())).collect();
    let mut secret = Map::new();
    secret.insert("apiVersion".into(), "v1".into());
    secret.insert("kind".into(), "Secret".into());
    if !metadata.is_empty() {
        secret.insert("metadata".into(), metadata.into());
    }
    secret.insert("type".into(), "connection.crossplane.io/v1alpha1".into());
    secret.insert("data".into(), data.into());
    Ok(secret.into())
}

fn reference_for(
    xr: &Document,
    reference: Option<&SecretRef>,
    budget: &Budget,
) -> Result<(String, String), String> {
    let (name, namespace) = base_reference(xr.object(), reference);
    let patches = reference.map(|reference| reference.patches.as_slice()).unwrap_or_default();
    if patches.is_empty() {
        return Ok((name, namespace));
    }
    let object = json!({
        "apiVersion": "v1", "kind": "SecretReference", "name": name, "namespace": namespace,
    });
    let mut document = Document::from_json(Object::from_value(object).unwrap_or_default());
    for (index, patch) in patches.iter().enumerate() {
        if patch.kind != PatchKind::FromComposite {
            return Err(format!(
                "cannot apply connection secret patches: unsupported patch type {} at index {index}",
                patch.kind_name
            ));
        }
        let result = patch::read(patch, xr, budget)
            .and_then(|value| patch::write(patch, value, &mut document, budget));
        let forgiven =
            patch.policy == FromPolicy::Optional && matches!(patch.source, Source::Field(_));
        match result {
            Err(error) if !forgiven => {
                return Err(format!(
                    "cannot apply connection secret patches: cannot apply patch type {} at index \
                     {index}: {error}",
                    patch.kind_name
                ));
            }
            _ => {}
        }
    }
    let text = |key, before: String| match document.object().get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => before,
    };
    Ok((text("name", name), text("namespace", namespace)))
}

/// Returns the reference before patches: the composite resource's, the input's, or a generated one.
fn base_reference(xr: &Object, reference: Option<&SecretRef>) -> (String, String) {
    if let Some(found) = own_reference(xr) {
        return found;
    }
    match reference {
        Some(reference) if !(reference.name.is_empty() && reference.namespace.is_empty()) => {
            (reference.name.clone(), reference.namespace.clone())
        }
        _ => (format!("{}-connection", xr.name()), xr.namespace().to_owned()),
    }
}

/// Returns `spec.writeConnectionSecretToRef`, if it can be decoded.
fn own_reference(xr: &Object) -> Option<(String, String)> {
    let spec = xr.get("spec")?.as_object()?;
    let field = |reference: &Map<String, Value>, key: &str| match reference.get(key) {
        None | Some(Value::Null) => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    };
    match spec.get("writeConnectionSecretToRef")? {
        Value::Null => Some(Default::default()),
        Value::Object(reference) => {
            Some((field(reference, "name")?, field(reference, "namespace")?))
        }
        _ => None,
    }
}
