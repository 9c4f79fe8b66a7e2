//! Creates the Operation of a CronOperation that is due.

use biplane_model::Object;
use biplane_model::owner::{OwnerReference, set_controller};
use jiff::Timestamp;

use super::API_VERSION;
use super::template::{self, TemplateError};

/// The label with the name of the CronOperation.
pub const LABEL: &str = "ops.crossplane.io/cronoperation";

/// Returns the Operation for a scheduled time.
pub fn operation(cron: &Object, scheduled: Timestamp) -> Result<Object, TemplateError> {
    let mut operation = template::from(cron)?;
    // Rounds down, also before the epoch.
    let seconds = scheduled.as_nanosecond().div_euclid(1_000_000_000);
    operation.set_meta("name", &format!("{}-{seconds}", cron.name()));
    operation.set_at_or_ignore(&["metadata", "labels", LABEL], cron.name());
    let owner = OwnerReference {
        api_version: API_VERSION.into(),
        kind: "CronOperation".into(),
        ..OwnerReference::controller(cron)
    };
    set_controller(&mut operation, owner).map_err(|e| TemplateError(e.to_string()))?;
    Ok(operation)
}
