//! The CRDs of the control plane's own kinds, as `core init` installs them.
//!
//! Fields, defaults, columns and rules are those of Crossplane, so that manifests and clients work
//! with either. They are written as Rust values: what kinds share is written once.

mod apiextensions;
mod operations;
mod packages;
mod pipeline;
mod protection;
mod runtime_config;
mod shape;
#[cfg(test)]
mod tests;

use biplane_model::Object;
use serde_json::{Value, json};

use shape::Shape;

/// A kind with all of its versions.
struct Definition {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    versions: Vec<Version>,
}

/// A version of a kind. The first one is stored.
struct Version {
    name: &'static str,
    /// What the API server warns of when the version is used.
    deprecated: Option<&'static str>,
    columns: Vec<Column>,
    /// Whether the status is written separately.
    status: bool,
    schema: Shape,
}

/// A column of `kubectl get`.
#[derive(Clone)]
struct Column {
    name: &'static str,
    r#type: &'static str,
    path: String,
    /// Whether it is shown with `-o wide` only.
    wide: bool,
}

impl Column {
    fn text(name: &'static str, path: &str) -> Self {
        Self { name, r#type: "string", path: path.to_owned(), wide: false }
    }

    fn condition(name: &'static str, r#type: &str) -> Self {
        Self::text(name, &format!(".status.conditions[?(@.type=='{type}')].status"))
    }

    fn date(name: &'static str, path: &str) -> Self {
        Self { r#type: "date", ..Self::text(name, path) }
    }

    fn age() -> Self {
        Self::date("AGE", ".metadata.creationTimestamp")
    }

    fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    fn to_value(&self) -> Value {
        let mut column = json!({"name": self.name, "type": self.r#type, "jsonPath": self.path});
        if self.wide {
            column["priority"] = 1.into();
        }
        column
    }
}

impl Version {
    fn new(name: &'static str, columns: Vec<Column>, status: bool, schema: Shape) -> Self {
        Self { name, deprecated: None, columns, status, schema }
    }

    fn to_value(&self, stored: bool) -> Value {
        let columns: Vec<_> = self.columns.iter().map(Column::to_value).collect();
        let mut version = json!({
            "name": self.name,
            "served": true,
            "storage": stored,
            "additionalPrinterColumns": columns,
            "schema": {"openAPIV3Schema": self.schema.to_value()},
            "subresources": if self.status { json!({"status": {}}) } else { json!({}) },
        });
        if let Some(warning) = self.deprecated {
            version["deprecated"] = true.into();
            version["deprecationWarning"] = warning.into();
        }
        version
    }
}

impl Definition {
    fn to_object(&self) -> Object {
        let Self { group, kind, plural, short_names, categories, .. } = self;
        let mut names = json!({
            "kind": kind,
            "listKind": format!("{kind}List"),
            "plural": plural,
            "singular": kind.to_lowercase(),
        });
        for (field, list) in [("shortNames", short_names), ("categories", categories)] {
            if !list.is_empty() {
                names[field] = json!(list);
            }
        }
        let versions: Vec<_> =
            self.versions.iter().enumerate().map(|(i, version)| version.to_value(i == 0)).collect();
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "names": names,
                "scope": if self.namespaced { "Namespaced" } else { "Cluster" },
                "versions": versions,
            },
        });
        Object::from_value(crd).unwrap_or_default()
    }
}

/// What Compositions had in the v1 line and may have here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Templates: mode Resources, which is deprecated.
    pub resources_mode: bool,
    /// Environments.
    pub environments: bool,
}

/// The CRDs of all kinds, ordered by name.
pub fn definitions() -> Vec<Object> {
    definitions_with(Features::default())
}

/// The CRDs of all kinds, ordered by name. Compositions can have these features.
pub fn definitions_with(features: Features) -> Vec<Object> {
    let kinds = [
        apiextensions::kinds(features),
        packages::kinds(),
        protection::kinds(),
        operations::kinds(),
    ];
    let mut all: Vec<_> = kinds.iter().flatten().map(Definition::to_object).collect();
    all.sort_by(|a, b| a.name().cmp(b.name()));
    all
}
