//! Validates a Composition with the rules that Crossplane v1 applied before rendering.

use anyhow::{Result, bail};
use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_model::integrity::{Rules, findings, summary};

/// Fails with all errors.
pub fn validate(composition: &Object) -> Result<()> {
    match summary(&findings(composition, Rules::WithoutEnvironment)) {
        Some(text) => bail!("invalid Composition {}: {text}", quote(composition.name())),
        None => Ok(()),
    }
}
