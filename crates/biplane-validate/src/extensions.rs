//! Finds schemas, and the packages that have more of them, in resources.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value};
use biplane_package::versions;
use biplane_schema::xcrd;

use crate::sources::Resource;

/// The schemas that were found, and the packages that have more.
#[derive(Debug, Default)]
pub struct Extensions {
    /// CRDs, in the order in which they were found.
    pub crds: Vec<Object>,
    /// Images of packages.
    pub images: BTreeSet<String>,
    /// Configurations whose dependencies are to be found: those that were given whole have their
    /// dependencies, the others are to be downloaded.
    pub configurations: BTreeMap<String, Option<Vec<Dependency>>>,
}

/// A package that a Configuration depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The image, with a version or a range of versions.
    pub image: String,
    /// Whether it is a Configuration whose own dependencies count too.
    pub followed: bool,
}

impl Extensions {
    /// Adds what resources have.
    pub fn add(&mut self, resources: &[Resource]) -> Result<()> {
        for Resource { object, .. } in resources {
            self.add_one(object)?;
        }
        Ok(())
    }

    fn add_one(&mut self, object: &Object) -> Result<()> {
        let group = object.gvk().group;
        match (group.as_str(), object.kind()) {
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                self.crds.push(object.clone());
            }
            ("apiextensions.crossplane.io", "CompositeResourceDefinition") => {
                let name = quote(object.name());
                let composite = xcrd::composite(object)
                    .with_context(|| format!("cannot derive composite CRD from XRD {name}"))?;
                self.crds.push(composite);
                if xcrd::offers_claim(object) {
                    let claim = xcrd::claim(object)
                        .with_context(|| format!("cannot derive claim CRD from XRD {name}"))?;
                    self.crds.push(claim);
                }
            }
            ("pkg.crossplane.io", "Provider") => {
                let image = package(object).context("cannot get provider package image")?;
                self.images.insert(image);
            }
            ("pkg.crossplane.io", "Function") => {
                let image = package(object).context("cannot get function package image")?;
                self.images.insert(image);
            }
            ("pkg.crossplane.io", "Configuration") => {
                let image = package(object).context("cannot get package image")?;
                self.configurations.insert(image, None);
            }
            ("meta.pkg.crossplane.io", "Configuration") => {
                let dependencies =
                    dependencies(object).context("cannot unmarshal configuration YAML")?;
                self.configurations.insert(object.name().to_owned(), Some(dependencies));
            }
            _ => {}
        }
        Ok(())
    }
}

fn package(object: &Object) -> Result<String> {
    match object.at(&["spec", "package"]) {
        Some(Value::String(image)) => Ok(image.clone()),
        None => bail!("spec.package: no such field"),
        Some(_) => bail!("spec.package: not a string"),
    }
}

/// The packages that a Configuration depends on.
pub(crate) fn dependencies(configuration: &Object) -> Result<Vec<Dependency>> {
    let listed = match configuration.at(&["spec", "dependsOn"]) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(listed)) => listed,
        Some(other) => {
            let kind = match other {
                Value::String(_) => "string",
                Value::Object(_) => "object",
                Value::Bool(_) => "bool",
                _ => "number",
            };
            return Err(anyhow!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go struct field ConfigurationSpec.spec.MetaSpec.dependsOn of type []v1.Dependency"
            ));
        }
    };
    let named = |dependency: &Value| {
        let text = |name: &str| dependency.get(name).and_then(Value::as_str);
        let (image, followed) = text("package")
            .map(|image| (image, false))
            .or_else(|| text("configuration").map(|image| (image, true)))
            .or_else(|| text("provider").map(|image| (image, false)))
            .or_else(|| text("function").map(|image| (image, false)))?;
        let version = text("version").unwrap_or_default();
        let separator = if versions::is_digest(version) { "@" } else { ":" };
        Some(Dependency { image: format!("{image}{separator}{version}"), followed })
    };
    Ok(listed.iter().filter_map(named).collect())
}
