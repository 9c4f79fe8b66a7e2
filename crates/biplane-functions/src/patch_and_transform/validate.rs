//! Validation of the input beyond its types. Only the first error is reported.

use biplane_patch::config::Template;
use biplane_patch::validate::{
    Checked, Within as _, connection_detail, each, invalid, patch, readiness_check, required,
};

use super::input::Input;

pub(super) fn input(input: &Input) -> Checked {
    for set in &input.patch_sets {
        if set.name.is_empty() {
            return required("name", "name is required");
        }
        each("patches", &set.patches, |item| patch(item, false))?;
    }
    if input.resources.is_empty() && input.environment.is_empty() {
        return required("resources", "resources or environment patches are required");
    }
    each("resources", &input.resources, template)?;
    for (index, item) in input.environment.iter().enumerate() {
        let parent = || format!("environment.patches[{index}]");
        match item.kind.as_str() {
            "FromCompositeFieldPath"
            | "ToCompositeFieldPath"
            | "CombineFromComposite"
            | "CombineToComposite"
            | "FromEnvironmentFieldPath"
            | "ToEnvironmentFieldPath" => patch(item, false).within(parent)?,
            kind => {
                let field = parent() + "[type]";
                return invalid(&field, kind, "invalid environment patch type");
            }
        }
    }
    Ok(())
}

fn template(template: &Template) -> Checked {
    if template.name.is_empty() {
        return required("name", "name is required");
    }
    each("patches", &template.patches, |item| patch(item, true))?;
    each("connectionDetails", &template.connection_details, connection_detail)?;
    each("readinessChecks", &template.readiness_checks, readiness_check)
}
