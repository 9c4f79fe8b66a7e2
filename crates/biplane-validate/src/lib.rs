//! Validates resources against the schemas of files, packages and built-in kinds, as
//! `crossplane resource validate` does.
//!
//! [`sources`] reads files, [`extensions`] finds schemas in what was read, [`cache`] keeps those of
//! packages, [`kinds`] validates one resource, and [`print`] shows the results. [`places`] tells
//! where in the files errors are, and [`advice`] what Compositions get wrong in the inputs of the
//! functions in the box.

pub mod advice;
pub mod builtin;
pub mod cache;
pub mod definition_rules;
pub mod extensions;
pub mod field_path;
pub mod kinds;
pub mod places;
pub mod print;
pub mod report;
pub mod schema_aware;
pub mod sources;

use anyhow::{Context as _, Result};

pub use cache::{Cache, Registry};
pub use extensions::Extensions;
pub use kinds::Kinds;
pub use report::{Finding, Report, Status};
pub use sources::{Resource, Sources};

/// Where schemas come from, besides the extensions themselves.
#[derive(Debug)]
pub struct Packages<'a> {
    /// The cache of schemas.
    pub cache: Cache,
    /// Whether the cache is emptied first.
    pub clean: bool,
    /// The image with the schemas of Crossplane's own kinds. Empty for none.
    pub crossplane: &'a str,
}

/// Collects the schemas of extensions and of the packages that they name.
pub fn schemas(
    extensions: &[Resource],
    packages: &Packages<'_>,
    registry: &mut dyn Registry,
) -> Result<Extensions> {
    let mut found = Extensions::default();
    found.add(extensions).context("cannot prepare extensions")?;
    let load = || -> Result<Extensions> {
        let mut found = found;
        if !packages.crossplane.is_empty() {
            found.images.insert(packages.crossplane.to_owned());
        }
        let from_packages = packages.cache.load(&mut found, packages.clean, registry)?;
        found.add(&from_packages)?;
        Ok(found)
    };
    load().context("cannot download and load cache")
}

/// Validates all resources.
pub fn validate(resources: &[Resource], extensions: &Extensions) -> Result<Report> {
    let kinds = Kinds::new(&extensions.crds).context("cannot validate resources")?;
    Ok(Report { resources: resources.iter().map(|resource| kinds.validate(resource)).collect() })
}
