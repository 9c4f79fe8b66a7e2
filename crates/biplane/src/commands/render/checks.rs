//! Whether a composite resource and a Composition belong together.

use std::collections::BTreeSet;

use biplane_engine::composite::Layout;
use biplane_go::fmt::quote;
use biplane_model::Object;

use super::flags::OutputFormat;
use super::load::{Origin, Read};
use super::v1;

/// Fails if a composite resource is there twice: which one is meant, nobody can tell.
pub(super) fn distinct(composites: &[Read]) -> Result<(), anyhow::Error> {
    let mut seen = BTreeSet::new();
    for (composite, origin) in composites.iter().filter(|(one, _)| !one.name().is_empty()) {
        let id = composite.id();
        if seen.contains(&id) {
            let text = format!("composite resource {id} is there twice: keep one of them");
            return Err(origin.complain(&["metadata", "name"], text));
        }
        seen.insert(id);
    }
    Ok(())
}

/// What does not fit, and which part of either to look at.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Misfit {
    pub text: String,
    /// Of the composite resource, if it may be that.
    pub composite: Option<Vec<String>>,
    /// Of what it does not fit, if it may be that.
    pub other: Option<Vec<String>>,
}

impl Misfit {
    pub(super) fn new(text: String, composite: Option<&[&str]>, other: Option<&[&str]>) -> Self {
        let owned = |path: &[&str]| path.iter().map(|&step| step.to_owned()).collect();
        Self { text, composite: composite.map(owned), other: other.map(owned) }
    }

    /// What does not fit, with the places.
    pub(super) fn shown(&self, composite: &Origin, other: &Origin) -> anyhow::Error {
        let mut error = anyhow::anyhow!("{}", self.text);
        for (path, origin) in [(&self.composite, composite), (&self.other, other)] {
            if let Some(path) = path {
                let path: Vec<_> = path.iter().map(String::as_str).collect();
                error = origin.complain(&path, error);
            }
        }
        error
    }
}

/// Fails with the first thing that does not fit.
pub(super) fn check(
    composite: &Object,
    composition: &Object,
    format: OutputFormat,
) -> Result<(), Misfit> {
    for (key, found) in [("kind", composite.kind()), ("apiVersion", composite.api_version())] {
        let path = ["spec", "compositeTypeRef", key];
        let wanted = composition.str_at(&path);
        if wanted != found {
            let text = format!(
                "composition's compositeTypeRef.{key} ({wanted}) does not match XR's {key} ({found})"
            );
            return Err(Misfit::new(text, Some(&[key]), Some(&path)));
        }
    }
    if format == OutputFormat::V1 {
        v1::validation::validate(composition)
            .map_err(|error| Misfit::new(error.to_string(), None, Some(&["spec"])))?;
    }
    let name = quote(composition.name());
    let layout = match format {
        OutputFormat::V1 => Layout::Legacy,
        _ => Layout::Modern,
    };
    for (key, want) in layout.composition_selector(composite).unwrap_or_default() {
        let path = ["metadata", "labels", &key];
        let text = match composition.at(&path) {
            None => format!("composition {name} is missing required label {}", quote(&key)),
            Some(got) if got.as_str().unwrap_or_default() != want => format!(
                "composition {name} has incorrect value for label {}: want {}, got {}",
                quote(&key),
                quote(&want),
                quote(got.as_str().unwrap_or_default())
            ),
            Some(_) => continue,
        };
        let selector = match layout {
            Layout::Legacy => &["spec", "compositionSelector", "matchLabels", &key][..],
            Layout::Modern => &["spec", "crossplane", "compositionSelector", "matchLabels", &key],
        };
        return Err(Misfit::new(text, Some(selector), Some(&path)));
    }
    let path = ["spec", "mode"];
    if composition.str_at(&path) != "Pipeline" {
        let text = format!(
            "render only supports Composition Function pipelines: Composition {name} must use spec.mode: Pipeline"
        );
        return Err(Misfit::new(text, None, Some(&path)));
    }
    Ok(())
}
