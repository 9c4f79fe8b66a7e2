//! The Operation that a CronOperation makes when it is due.

use biplane_model::Object;
use biplane_model::owner::{OwnerReference, set_controller};
use jiff::Timestamp;

use super::API_VERSION;
use super::template::{self, TemplateError};

/// The CronOperation that an Operation belongs to.
pub const LABEL: &str = "ops.crossplane.io/cronoperation";

/// The Operation that is made for a time.
pub fn operation(cron: &Object, scheduled: Timestamp) -> Result<Object, TemplateError> {
    let mut operation = template::from(cron)?;
    // Seconds before the epoch count downwards from it, whatever their fraction.
    let seconds = scheduled.as_nanosecond().div_euclid(1_000_000_000);
    operation.set_meta("name", &format!("{}-{seconds}", cron.name()));
    operation.set_at(&["metadata", "labels", LABEL], cron.name());
    let owner = OwnerReference {
        api_version: API_VERSION.into(),
        kind: "CronOperation".into(),
        ..OwnerReference::controller(cron)
    };
    set_controller(&mut operation, owner).map_err(|e| TemplateError(e.to_string()))?;
    Ok(operation)
}
