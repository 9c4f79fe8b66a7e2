//! Checks that a composite resource and a Composition belong together.

use std::collections::BTreeSet;

use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_model::composition::{is_of_resources_mode, uses_environment};
use biplane_model::layout::Layout;

use crate::line::Line;
use crate::loader::Read;
use crate::misfit::Misfit;
use crate::v1_validation;

/// Fails if two composite resources have the same id, which would be ambiguous.
pub fn distinct(composites: &[Read]) -> Result<(), anyhow::Error> {
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

/// Fails with the first mismatch.
pub fn check(composite: &Object, composition: &Object, line: Line) -> Result<(), Misfit> {
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
    // Those that only a control plane composes, it validates itself.
    let templates = line == Line::V1 && is_of_resources_mode(composition);
    if line == Line::V1 && !templates && !uses_environment(composition) {
        v1_validation::validate(composition)
            .map_err(|error| Misfit::new(error.to_string(), None, Some(&["spec"])))?;
    }
    let name = quote(composition.name());
    let layout = match line {
        Line::V1 => Layout::Legacy,
        Line::V2 => Layout::Modern,
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
    if composition.str_at(&path) != "Pipeline" && !templates {
        let text = format!(
            "render only supports Composition Function pipelines: Composition {name} must use spec.mode: Pipeline"
        );
        return Err(Misfit::new(text, None, Some(&path)));
    }
    Ok(())
}
