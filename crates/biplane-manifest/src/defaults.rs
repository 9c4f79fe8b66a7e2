//! Applies the defaults of a definition (XRD) to fields that a composite resource leaves out.

use std::collections::BTreeMap;

use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_schema::structural::Schema;
use biplane_schema::xcrd::{self, DefinitionError};

use crate::misfit::Misfit;

/// Applies the defaults of a definition to a composite resource.
pub fn apply(composite: &mut Object, definition: &Object) -> Result<(), Misfit> {
    Defaults::of(definition).apply(composite)
}

/// The defaults of a definition, to be applied to many composite resources.
#[derive(Debug)]
pub struct Defaults<'a> {
    definition: &'a Object,
    /// The schemas by version, built when they are first needed.
    schemas: BTreeMap<String, Schema>,
}

impl<'a> Defaults<'a> {
    pub fn of(definition: &'a Object) -> Self {
        Self { definition, schemas: BTreeMap::new() }
    }

    /// Applies the defaults to a composite resource.
    pub fn apply(&mut self, composite: &mut Object) -> Result<(), Misfit> {
        let version = composite.api_version();
        if !self.schemas.contains_key(version) {
            let schema = schema(version, self.definition).map_err(|misfit| {
                let name = quote(composite.name());
                let text = format!("cannot apply XRD defaults to XR {name}: {}", misfit.text);
                Misfit { text, ..misfit }
            })?;
            self.schemas.insert(version.to_owned(), schema);
        }
        if let Some(schema) = self.schemas.get(composite.api_version()) {
            schema.default(composite);
        }
        Ok(())
    }
}

fn schema(api_version: &str, definition: &Object) -> Result<Schema, Misfit> {
    xcrd::schema(definition, api_version).map_err(|error| {
        let versions = ["spec", "versions"];
        match error {
            DefinitionError::Version { version, cause, .. } => {
                let name = quote(definition.name());
                let text = format!("cannot derive CRD from XRD {name}: {cause}");
                let path = ["spec", "versions", &version.to_string(), "schema"];
                Misfit::new(text, None, Some(&path))
            }
            DefinitionError::NoVersion(_) => {
                Misfit::new(error.to_string(), Some(&["apiVersion"]), Some(&versions))
            }
            DefinitionError::ClaimNames(_) | DefinitionError::Schema(_) => {
                Misfit::new(error.to_string(), None, Some(&versions))
            }
        }
    })
}

#[cfg(test)]
mod tests;
