//! Everything that an API server checks of an object whose kind a CRD defines.

use biplane_model::{Object, Value};

use crate::rules::{Limits, Rules};
use crate::structural::{FieldError, Problem, Schema, SchemaError};

/// A version of a kind.
#[derive(Debug)]
pub struct CustomResource {
    /// Its schema.
    pub schema: Schema,
    rules: Option<Rules>,
}

/// What takes the place of the rules if the object cannot be read by them.
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; \
                           correct the existing errors to complete validation";

impl CustomResource {
    /// Reads the `openAPIV3Schema` of a CRD.
    pub fn read(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { schema: Schema::parse(schema)?, rules: Rules::read(schema) })
    }

    /// Validates an object that has its defaults. If the object before an update is given, unchanged
    /// parts are not reported, and rules compare with it.
    pub fn validate(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let errors = self.schema.validate(object, old);
        self.with_rules(errors, object, old)
    }

    /// Validates an object of which only the status is written.
    pub fn validate_status(&self, object: &Object, old: Option<&Object>) -> Vec<FieldError> {
        let errors = self.schema.validate_status(object, old);
        self.with_rules(errors, object, old)
    }

    fn with_rules(
        &self,
        mut errors: Vec<FieldError>,
        object: &Object,
        old: Option<&Object>,
    ) -> Vec<FieldError> {
        let Some(rules) = &self.rules else { return errors };
        let blocks = |error: &FieldError| {
            matches!(
                error.problem,
                Problem::Required | Problem::TooLong | Problem::TooMany | Problem::TypeInvalid
            )
        };
        if errors.iter().any(blocks) {
            errors.push(FieldError::new(Problem::Invalid, "<nil>", Value::Null, NOT_CHECKED));
        } else {
            errors.extend(rules.validate(object, old, Limits::API_SERVER));
        }
        errors
    }
}
