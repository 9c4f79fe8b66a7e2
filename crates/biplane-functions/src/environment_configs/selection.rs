//! Selects and orders the fetched configs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use biplane_go::fmt::quote;
use biplane_model::fieldpath::{FieldPath, PathError};
use biplane_model::{Object, Value};
use biplane_proto::function::v1::Resources;

use super::input::{By, Input, Selector};
use super::requirements;

/// A config and the path of its data.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) config: Object,
    pub(super) path: String,
}

/// Why the configs of a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SelectionError {
    #[error(
        "cannot process environment config {} by reference, {}: {source}",
        quote(name),
        quote(entry)
    )]
    Reference { name: String, entry: String, source: ReferenceError },
    #[error("cannot process environment config {} by selector: {source}", quote(entry))]
    Selector { entry: String, source: SelectorError },
}

/// Why a reference could not be resolved.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReferenceError {
    #[error("Required environment config {} not found", quote(.0))]
    NotFound(String),
    #[error("expected exactly one required resource {}, got {found}", quote(name))]
    Ambiguous { name: String, found: usize },
}

/// Why a selection failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SelectorError {
    #[error("expected exactly one required resource, got {0}")]
    NotOne(usize),
    #[error("expected at least {least} required resources, got {found}")]
    TooFew { least: u64, found: usize },
    #[error("unknown selector mode {}", quote(.0))]
    UnknownMode(String),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("cannot sort values of different types {first:?} and {other:?}")]
    Mixed { first: &'static str, other: &'static str },
    #[error("unsupported type {0:?} for sorting")]
    Unsortable(&'static str),
}

/// Returns the configs of all sources, in merge order. A source without fetched configs is skipped.
pub(super) fn select(
    input: &Input,
    mut found: BTreeMap<String, Resources>,
) -> Result<Vec<Selected>, SelectionError> {
    let mut selected = Vec::new();
    for (index, source) in input.sources.iter().enumerate() {
        let entry = requirements::name(index);
        let Some(resources) = found.remove(&entry) else { continue };
        let configs: Vec<Object> = resources
            .items
            .into_iter()
            .map(|item| item.resource.unwrap_or_default().into_object())
            .collect();
        let configs = match &source.by {
            By::Reference(name) => {
                let name = name.clone().unwrap_or_default();
                referenced(&name, configs, input.optional)
                    .map_err(|source| SelectionError::Reference { name, entry, source })?
            }
            By::Selector(Some(selector)) => matching(selector, configs)
                .map_err(|source| SelectionError::Selector { entry, source })?,
            By::Selector(None) | By::Unknown => continue,
        };
        let path = &source.path;
        selected.extend(configs.into_iter().map(|config| Selected { config, path: path.clone() }));
    }
    Ok(selected)
}

fn referenced(
    name: &str,
    configs: Vec<Object>,
    optional: bool,
) -> Result<Vec<Object>, ReferenceError> {
    match configs.len() {
        1 => Ok(configs),
        0 if optional => Ok(configs),
        0 => Err(ReferenceError::NotFound(name.to_owned())),
        found => Err(ReferenceError::Ambiguous { name: name.to_owned(), found }),
    }
}

fn matching(selector: &Selector, mut configs: Vec<Object>) -> Result<Vec<Object>, SelectorError> {
    let found = configs.len();
    match selector.mode.as_str() {
        "Single" if found == 1 => Ok(configs),
        "Single" => Err(SelectorError::NotOne(found)),
        "Multiple" => {
            if let Some(least) = selector.min.filter(|least| (found as u64) < *least) {
                return Err(SelectorError::TooFew { least, found });
            }
            sort(&mut configs, &selector.sort_by)?;
            if let Some(most) = selector.max.and_then(|most| usize::try_from(most).ok()) {
                configs.truncate(most);
            }
            Ok(configs)
        }
        mode => Err(SelectorError::UnknownMode(mode.to_owned())),
    }
}

/// Sorts by the value at a path. A missing value counts as the zero value of the type.
fn sort(configs: &mut Vec<Object>, path: &str) -> Result<(), SelectorError> {
    if configs.is_empty() {
        return Ok(());
    }
    let path = FieldPath::parse(path).map_err(PathError::from)?;
    let mut keyed: Vec<(Key, Object)> = Vec::with_capacity(configs.len());
    let mut first: Option<&'static str> = None;
    for config in configs.iter() {
        let value = match path.get(config) {
            Ok(value) => value,
            Err(error) if error.is_not_found() => &Value::Null,
            Err(error) => return Err(error.into()),
        };
        match (go_type(value), first) {
            (Some(other), Some(first)) if first != other => {
                return Err(SelectorError::Mixed { first, other });
            }
            (Some(only), None) => first = Some(only),
            _ => {}
        }
        keyed.push((Key::of(value), config.clone()));
    }
    match first {
        None => return Ok(()),
        Some("float64" | "string") => {}
        // A single config is never compared.
        Some(_) if keyed.len() == 1 => return Ok(()),
        Some("bool") => return Err(SelectorError::Unsortable("bool")),
        Some("[]interface {}") => return Err(SelectorError::Unsortable("slice")),
        Some(_) => return Err(SelectorError::Unsortable("map")),
    }
    keyed.sort_by(|(a, _), (b, _)| a.compare(b));
    *configs = keyed.into_iter().map(|(_, config)| config).collect();
    Ok(())
}

/// A sort key.
enum Key {
    Absent,
    Number(f64),
    Text(String),
}

impl Key {
    fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(number.as_f64().unwrap_or_default()),
            Value::String(text) => Self::Text(text.clone()),
            _ => Self::Absent,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(_), _) | (_, Self::Text(_)) => self.text().cmp(other.text()),
            _ => self.number().partial_cmp(&other.number()).unwrap_or(Ordering::Equal),
        }
    }

    fn text(&self) -> &str {
        if let Self::Text(text) = self { text } else { "" }
    }

    fn number(&self) -> f64 {
        if let Self::Number(number) = self { *number } else { 0.0 }
    }
}

/// Returns Go's type name of a value from a protobuf message, or `None` for null.
fn go_type(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("bool"),
        Value::Number(_) => Some("float64"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("[]interface {}"),
        Value::Object(_) => Some("map[string]interface {}"),
    }
}
