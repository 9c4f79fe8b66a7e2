//! The schema of DeploymentRuntimeConfigs: templates of the Deployment, Service and ServiceAccount
//! that run a package.
//!
//! The fields of a pod come from the table of Go structs that the functions use too.

use std::collections::BTreeMap;

use biplane_go::types::{KUBERNETES, META, Type, Types};
use serde_json::Value;

use super::shape::{
    Shape, any_object, flag, int_or_text, int32, int64, kind, label_selector, list, map, object,
    object_of_texts, text, texts,
};

const POD_FIELDS: &str = include_str!("pod_fields.txt");
/// What a quantity of resources looks like.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

pub(super) fn schema() -> Shape {
    let metadata = object([("name", text()), ("labels", texts()), ("annotations", texts())]);
    let template = object([("metadata", metadata)]);
    let spec = object([
        ("deploymentTemplate", template.clone().and([("spec", deployment())])),
        ("serviceTemplate", template.clone()),
        ("serviceAccountTemplate", template),
    ]);
    kind("How packages are run as Deployments.", [("spec", spec)])
}

/// The spec of a Deployment.
fn deployment() -> Shape {
    let pods = Pods { types: Types::read(&[KUBERNETES, META]), notes: notes() };
    let rolling = object([("maxSurge", int_or_text()), ("maxUnavailable", int_or_text())]);
    object([
        ("minReadySeconds", int32()),
        ("paused", flag()),
        ("progressDeadlineSeconds", int32()),
        ("replicas", int32()),
        ("revisionHistoryLimit", int32()),
        ("selector*", label_selector()),
        ("strategy", object([("type", text()), ("rollingUpdate", rolling)])),
        ("template*", pods.of_struct("core.PodTemplateSpec")),
    ])
}

/// What the table says about a struct.
#[derive(Default)]
struct Notes {
    atomic: bool,
    /// Maps that are written as a whole.
    atomic_maps: Vec<&'static str>,
    required: Vec<&'static str>,
    /// The keys of lists. A set has none.
    keys: BTreeMap<&'static str, Vec<&'static str>>,
    defaults: BTreeMap<&'static str, &'static str>,
}

fn notes() -> BTreeMap<&'static str, Notes> {
    let lines = POD_FIELDS.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let (name, words) = line.split_once(' ')?;
        let mut notes = Notes::default();
        for word in words.split(' ') {
            if word == "!" {
                notes.atomic = true;
            } else if let Some(field) = word.strip_prefix('*') {
                notes.required.push(field);
            } else if let Some(map) = word.strip_suffix('!') {
                notes.atomic_maps.push(map);
            } else if let Some(list) = word.strip_suffix("{}") {
                notes.keys.insert(list, Vec::new());
            } else if let Some((list, keys)) = word.trim_end_matches(']').split_once('[') {
                notes.keys.insert(list, keys.split(',').collect());
            } else if let Some((field, default)) = word.split_once('=') {
                notes.defaults.insert(field, default);
            }
        }
        Some((name, notes))
    };
    lines.filter_map(read).collect()
}

/// The structs of pods.
struct Pods {
    types: Types,
    notes: BTreeMap<&'static str, Notes>,
}

impl Pods {
    fn of_struct(&self, name: &str) -> Shape {
        if name == "meta.ObjectMeta" {
            let names = object_of_texts(["name", "namespace"]);
            return names.and([
                ("labels", texts()),
                ("annotations", texts()),
                ("finalizers", list(text())),
            ]);
        }
        let none = Notes::default();
        let notes = self.notes.get(name).unwrap_or(&none);
        let mut shape = object([]);
        for (field, r#type) in self.types.fields(name) {
            let mut inner = self.of(r#type);
            if matches!(r#type, Type::List(_)) {
                inner = match notes.keys.get(field).map(Vec::as_slice) {
                    None => inner.atomic(),
                    Some([]) => inner.with("x-kubernetes-list-type", "set"),
                    Some(keys) => inner.keyed(keys),
                };
            }
            if notes.atomic_maps.contains(&field) {
                inner = inner.atomic();
            }
            if let Some(default) = notes.defaults.get(field) {
                let default = match r#type {
                    Type::Bool => Value::Bool(*default == "true"),
                    _ => Value::from(*default),
                };
                inner = inner.default(default);
            }
            let required = if notes.required.contains(&field) { "*" } else { "" };
            shape = shape.and([(&*format!("{field}{required}"), inner)]);
        }
        if notes.atomic { shape.atomic() } else { shape }
    }

    fn of(&self, r#type: &Type) -> Shape {
        match r#type {
            Type::String(_) => text(),
            Type::Time => text().with("format", "date-time"),
            Type::Bool => flag(),
            Type::Int { bits: 32 } => int32(),
            Type::Int { .. } | Type::Uint => int64(),
            Type::Any => any_object(),
            Type::Quantity => int_or_text().with("pattern", QUANTITY),
            Type::IntOrString => int_or_text(),
            Type::List(item) => list(self.of(item)),
            Type::Map(item) => map(self.of(item)),
            Type::Struct(name) => self.of_struct(name),
        }
    }
}
