//! Whether a composite resource and a Composition belong together.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use biplane_engine::composite::Layout;
use biplane_model::{Object, gojson::quote};

use super::flags::OutputFormat;
use super::v1;

/// Fails if a composite resource is there twice: which one is meant, nobody can tell.
pub(super) fn distinct(composites: &[Object]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for id in composites.iter().map(Object::id).filter(|id| !id.name.is_empty()) {
        if seen.contains(&id) {
            bail!("composite resource {id} is there twice: keep one of them");
        }
        seen.insert(id);
    }
    Ok(())
}

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
    let layout = match format {
        OutputFormat::V1 => Layout::Legacy,
        _ => Layout::Modern,
    };
    for (key, want) in layout.composition_selector(composite).unwrap_or_default() {
        let Some(got) = composition.at(&["metadata", "labels", &key]) else {
            bail!("composition {name} is missing required label {}", quote(&key));
        };
        let got = got.as_str().unwrap_or_default();
        if got != want {
            bail!(
                "composition {name} has incorrect value for label {}: want {}, got {}",
                quote(&key),
                quote(&want),
                quote(got)
            );
        }
    }
    if composition.str_at(&["spec", "mode"]) != "Pipeline" {
        bail!(
            "render only supports Composition Function pipelines: Composition {name} must use spec.mode: Pipeline"
        );
    }
    Ok(())
}
