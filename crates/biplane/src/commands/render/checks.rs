//! Whether a composite resource and a Composition belong together.

use anyhow::{Result, bail};
use biplane_model::{Object, Value, gojson::quote};

use super::flags::OutputFormat;
use super::v1;

/// Fails with the first thing that does not fit.
pub(super) fn check(composite: &Object, composition: &Object, format: OutputFormat) -> Result<()> {
    let wanted = composition.str_at(&["spec", "compositeTypeRef", "kind"]);
    if wanted != composite.kind() {
        bail!(
            "composition's compositeTypeRef.kind ({wanted}) does not match XR's kind ({})",
            composite.kind()
        );
    }
    let wanted = composition.str_at(&["spec", "compositeTypeRef", "apiVersion"]);
    if wanted != composite.api_version() {
        bail!(
            "composition's compositeTypeRef.apiVersion ({wanted}) does not match XR's apiVersion ({})",
            composite.api_version()
        );
    }
    if format == OutputFormat::V1 {
        v1::validation::validate(composition)?;
    }
    let name = quote(composition.name());
    let selector: &[&str] = match format {
        OutputFormat::V1 => &["spec", "compositionSelector", "matchLabels"],
        _ => &["spec", "crossplane", "compositionSelector", "matchLabels"],
    };
    for (key, value) in composite.at(selector).and_then(Value::as_object).into_iter().flatten() {
        let want = value.as_str().unwrap_or_default();
        match composition.at(&["metadata", "labels", key]).and_then(Value::as_str) {
            None => bail!("composition {name} is missing required label {}", quote(key)),
            Some(got) if got != want => bail!(
                "composition {name} has incorrect value for label {}: want {}, got {}",
                quote(key),
                quote(want),
                quote(got)
            ),
            Some(_) => {}
        }
    }
    if composition.str_at(&["spec", "mode"]) != "Pipeline" {
        bail!(
            "render only supports Composition Function pipelines: Composition {name} must use spec.mode: Pipeline"
        );
    }
    Ok(())
}
