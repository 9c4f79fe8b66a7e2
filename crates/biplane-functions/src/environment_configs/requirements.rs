//! Builds the requirements: the configs that must be fetched before merging.

use std::collections::BTreeMap;

use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_model::fieldpath::{FieldPath, PathError};
use biplane_proto::function::v1::resource_selector::Match;
use biplane_proto::function::v1::{MatchLabels, Requirements, ResourceSelector};

use super::input::{By, Input, LabelValue, Selector};

/// Why a requirement could not be built.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequirementsError {
    #[error("cannot get value from field path {}: {source}", quote(path))]
    Label { path: String, source: PathError },
    #[error("environmentConfigs[{index}]: {missing} is required by type {by}")]
    Incomplete { index: usize, missing: &'static str, by: &'static str },
}

/// Returns the requirement name of a source.
pub(super) fn name(index: usize) -> String {
    format!("environment-config-{index}")
}

/// Returns one requirement per source, except for selectors without labels.
pub(super) fn of(input: &Input, composite: &Object) -> Result<Requirements, RequirementsError> {
    let mut resources = BTreeMap::new();
    for (index, source) in input.sources.iter().enumerate() {
        let incomplete = |missing, by| RequirementsError::Incomplete { index, missing, by };
        let wanted = match &source.by {
            By::Reference(Some(name)) => Match::MatchName(name.clone()),
            By::Reference(None) => return Err(incomplete("ref", "Reference")),
            By::Selector(Some(selector)) => match labels(selector, composite, incomplete)? {
                labels if labels.is_empty() => continue,
                labels => Match::MatchLabels(MatchLabels { labels }),
            },
            By::Selector(None) => return Err(incomplete("selector", "Selector")),
            By::Unknown => continue,
        };
        let selector = ResourceSelector {
            api_version: "apiextensions.crossplane.io/v1beta1".to_owned(),
            kind: "EnvironmentConfig".to_owned(),
            namespace: None,
            r#match: Some(wanted),
        };
        resources.insert(name(index), selector);
    }
    Ok(Requirements { resources, ..Requirements::default() })
}

fn labels(
    selector: &Selector,
    composite: &Object,
    incomplete: impl Fn(&'static str, &'static str) -> RequirementsError,
) -> Result<BTreeMap<String, String>, RequirementsError> {
    let mut labels = BTreeMap::new();
    for label in &selector.labels {
        let value = match &label.value {
            LabelValue::Literal(Some(value)) => value.clone(),
            LabelValue::Literal(None) => return Err(incomplete("value", "Value")),
            LabelValue::FromComposite { path: Some(path), optional } => {
                match text_at(composite, path) {
                    Ok(value) => value,
                    Err(_) if *optional => continue,
                    Err(source) => {
                        return Err(RequirementsError::Label { path: path.clone(), source });
                    }
                }
            }
            LabelValue::FromComposite { path: None, .. } => {
                return Err(incomplete("valueFromFieldPath", "FromCompositeFieldPath"));
            }
            LabelValue::Unknown => continue,
        };
        labels.insert(label.key.clone(), value);
    }
    Ok(labels)
}

fn text_at(composite: &Object, path: &str) -> Result<String, PathError> {
    Ok(FieldPath::parse(path)?.get_str(composite)?.to_owned())
}
