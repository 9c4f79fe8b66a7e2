//! Validates a Composition with the rules that Crossplane v1 applied before rendering.

use anyhow::{Result, bail};
use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_model::integrity::{self, Rules, summary};

/// All errors, each with its field.
pub fn findings(composition: &Object) -> Vec<String> {
    integrity::findings(composition, Rules::WithoutEnvironment)
}

/// Fails with all errors.
pub fn validate(composition: &Object) -> Result<()> {
    match summary(&findings(composition)) {
        Some(text) => bail!("invalid Composition {}: {text}", quote(composition.name())),
        None => Ok(()),
    }
}
