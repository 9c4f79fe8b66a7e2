//! The environment of a composite resource: the data of EnvironmentConfigs, merged into one object.
//!
//! Which EnvironmentConfigs these are is decided once and stored in the composite resource. Their
//! data is read in every reconcile. Compositions of mode Resources patch between the environment
//! and their resources; functions see it in their context.

use std::collections::BTreeMap;

use biplane_cluster::{List, Query};
use biplane_go::fmt;
use biplane_model::fieldpath::{FieldPath, PathError};
use biplane_model::layout::Reference;
use biplane_model::object::overlay;
use biplane_model::{Gvk, Map, Object, ObjectId, Value};
use biplane_proto::function::v1::resource_selector::Match;
use biplane_proto::function::v1::{MatchLabels, ResourceSelector};

use super::dependencies::Requirement;
use super::pass::{Pass, XR};
use super::select;
use super::v1_spec::environment::{By, Configuration, Label, LabelValue, Mode, Selector};
use crate::failure::{Attempted, Failure};

const GROUP: &str = "apiextensions.crossplane.io";
const KIND: &str = "EnvironmentConfig";
/// The version that references name, which is the one that the feature was released with.
const REFERENCED: &str = "apiextensions.crossplane.io/v1alpha1";
/// The version that is read.
const READ: &str = "apiextensions.crossplane.io/v1beta1";

/// Decides which EnvironmentConfigs the composite resource uses, unless that is decided.
pub(super) async fn select(
    pass: &Pass<'_>,
    xr: &mut XR,
    configuration: Option<&Configuration>,
) -> Result<(), Failure> {
    let layout = pass.layout();
    let Some(configuration) = configuration.filter(|c| !c.sources.is_empty()) else {
        return Ok(());
    };
    let before = layout.environment_configs(&xr.object);
    if !before.is_empty() && !configuration.always {
        return Ok(());
    }
    let mut names = Vec::new();
    for (index, source) in configuration.sources.iter().enumerate() {
        match source {
            By::Reference(name) => names.push(name.clone()),
            By::Selector(selector) => {
                let found = selected(pass, &xr.object, selector)
                    .await
                    .attempted(format_args!("failed to build reference at index {index}"))?;
                names.extend(found);
            }
            By::Unknown(kind) => {
                return Err(Failure::new(format!("invalid source type '{kind}'")));
            }
        }
    }
    let references: Vec<_> = names
        .into_iter()
        .map(|name| Reference {
            api_version: REFERENCED.to_owned(),
            kind: KIND.to_owned(),
            name,
            ..Reference::default()
        })
        .collect();
    if references != before {
        layout.set_environment_configs(&mut xr.object, &references)?;
        xr.changed();
    }
    Ok(())
}

/// The labels that a selector asks for.
fn wanted(xr: &Object, selector: &Selector) -> Result<BTreeMap<String, String>, Failure> {
    let mut labels = BTreeMap::new();
    for (index, label) in selector.labels.iter().enumerate() {
        let value = value(label, xr)
            .attempted(format_args!("failed to resolve value for label at index {index}"))?;
        if let Some(value) = value {
            labels.insert(label.key.clone(), value);
        }
    }
    Ok(labels)
}

/// The names of the EnvironmentConfigs that a selector selects, in order.
async fn selected(
    pass: &Pass<'_>,
    xr: &Object,
    selector: &Selector,
) -> Result<Vec<String>, Failure> {
    let labels = wanted(xr, selector)?;
    // Without labels, nothing is selected, not everything.
    let mut configs = Vec::new();
    if !labels.is_empty() {
        let kind = Gvk::new(READ, KIND);
        let query = Query::labels(labels);
        let all = pass.cluster().list(&kind, &query, &List::cached(), pass.by).await;
        configs = all.attempted("failed to list environments")?.objects;
    }
    let found = configs.len();
    match &selector.mode {
        Mode::Single if found == 1 => {}
        Mode::Single => {
            return Err(Failure::new(format!(
                "only 1 EnvironmentConfig can be selected in Single mode, found: {found}"
            )));
        }
        Mode::Multiple { least, most } => {
            if let Some(least) = least.filter(|least| (found as u64) < *least) {
                return Err(Failure::new(format!(
                    "expected at least {least} EnvironmentConfig(s) with matching labels, found: {found}"
                )));
            }
            sort(&mut configs, &selector.sort_by)?;
            if let Some(most) = most.and_then(|most| usize::try_from(most).ok()) {
                configs.truncate(most);
            }
        }
        Mode::Unknown(mode) => return Err(Failure::new(format!("unknown mode '{mode}'"))),
    }
    Ok(configs.iter().map(|config| config.name().to_owned()).collect())
}

/// The value of a label. `None` if it comes from a field that does not exist and need not.
fn value(label: &Label, xr: &Object) -> Result<Option<String>, Failure> {
    let path = match &label.value {
        LabelValue::Given(value) => return Ok(Some(value.clone())),
        LabelValue::Wrong(why) => return Err(Failure::new(why.clone())),
        LabelValue::Field(path) => path,
    };
    let found = FieldPath::parse(path).map_err(PathError::from).and_then(|path| {
        let value = path.get(xr)?;
        Ok(String::from_utf8_lossy(&fmt::display(value.into())).into_owned())
    });
    match found {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() && label.optional => Ok(None),
        Err(error) => Err(Failure::new(error.to_string())),
    }
}

/// A sort key.
#[derive(Debug, PartialEq, PartialOrd)]
enum Key {
    Integer(i64),
    Float(f64),
    Text(String),
}

impl Key {
    fn kind(&self) -> &'static str {
        match self {
            Self::Integer(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
        }
    }
}

/// Sorts by the value at a path, then by name. Every object must have a value of the same type.
fn sort(configs: &mut Vec<Object>, path: &str) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
    if configs.is_empty() {
        return Ok(());
    }
    let path = FieldPath::parse(path).map_err(|error| refused(&error))?;
    let mut keyed: Vec<(Key, Object)> = Vec::with_capacity(configs.len());
    for config in std::mem::take(configs) {
        let value = path.get(&config).map_err(|error| refused(&error))?;
        let key = match value {
            Value::String(text) => Key::Text(text.clone()),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Key::Integer(integer),
                None => Key::Float(number.as_f64().unwrap_or_default()),
            },
            other => {
                let kind = match fmt::Arg::from(other) {
                    fmt::Arg::Nil => "<nil>",
                    arg => arg.type_name(),
                };
                return Err(Failure::new(format!("unexpected type {kind}")));
            }
        };
        if let Some((first, _)) = keyed.first().filter(|(first, _)| first.kind() != key.kind()) {
            return Err(Failure::new(format!(
                "not matching types, got {} ({}), expected {}",
                String::from_utf8_lossy(&fmt::display(value.into())),
                key.kind(),
                first.kind()
            )));
        }
        keyed.push((key, config));
    }
    keyed.sort_by(|(a, first), (b, second)| {
        let order = a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal);
        order.then_with(|| first.name().cmp(second.name()))
    });
    *configs = keyed.into_iter().map(|(_, config)| config).collect();
    Ok(())
}

/// Reads the EnvironmentConfigs of the composite resource and merges their data.
pub(super) async fn fetch(
    pass: &Pass<'_>,
    xr: &Object,
    configuration: Option<&Configuration>,
) -> Result<Object, Failure> {
    let default = configuration.and_then(|c| c.default_data.clone()).unwrap_or_default();
    let required = configuration.is_some_and(|c| !c.optional);
    let mut merged = default;
    for reference in pass.layout().environment_configs(xr) {
        let id = ObjectId::new(Gvk::new(READ, KIND), "", &reference.name);
        match select::get(pass, &id).await {
            Ok(config) => {
                if let Some(Value::Object(data)) = config.into_map().remove("data") {
                    merged = overlay(merged, data);
                }
            }
            // Without data that only could not be read, resources would change for a while.
            Err(error) if required || !error.is_not_found() => {
                return Err(error)
                    .attempted("failed to get config set from reference")
                    .attempted("cannot fetch environment configs");
            }
            Err(_) => tracing::debug!(config = %id, "environment config is left out"),
        }
    }
    Ok(named(merged))
}

/// Names the kind of an environment, whatever its data says.
fn named(mut data: Map<String, Value>) -> Object {
    data.insert("apiVersion".to_owned(), "internal.crossplane.io/v1alpha1".into());
    data.insert("kind".to_owned(), "Environment".into());
    data.into()
}

/// The EnvironmentConfigs that the composite resource uses, so that their changes are noticed, and
/// those that it would use if they existed or had other labels.
pub(super) fn dependencies(
    pass: &Pass<'_>,
    xr: &Object,
    configuration: Option<&Configuration>,
) -> Vec<Requirement> {
    let requirement = |name: String, r#match: Match| Requirement {
        // No step asks for them.
        step: String::new(),
        name,
        selector: ResourceSelector {
            api_version: READ.to_owned(),
            kind: KIND.to_owned(),
            r#match: Some(r#match),
            ..ResourceSelector::default()
        },
    };
    let references = pass.layout().environment_configs(xr).into_iter();
    let mut found: Vec<Requirement> = references
        .map(|reference| requirement(reference.name.clone(), Match::MatchName(reference.name)))
        .collect();
    let sources = configuration.filter(|c| c.always).map_or(&[][..], |c| &c.sources);
    for (index, source) in sources.iter().enumerate() {
        let By::Selector(selector) = source else { continue };
        let labels = wanted(xr, selector).unwrap_or_default();
        if !labels.is_empty() {
            let labels = Match::MatchLabels(MatchLabels { labels });
            found.push(requirement(format!("selector {index}"), labels));
        }
    }
    found
}

/// Whether an object is an EnvironmentConfig of any version.
pub(crate) fn is_config(object: &Object) -> bool {
    object.kind() == KIND && object.gvk().group == GROUP
}

/// The versions of EnvironmentConfigs, which have the same content.
pub(crate) const VERSIONS: [&str; 2] = [REFERENCED, READ];
