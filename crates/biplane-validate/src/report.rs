//! The results of a validation.

use biplane_model::Value;

/// What was found about all resources, in their order.
#[derive(Debug, Default)]
pub struct Report {
    /// One result for each resource.
    pub resources: Vec<Outcome>,
}

/// What was found about one resource.
#[derive(Debug)]
pub struct Outcome {
    /// The API version as the resource has it.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name, or what stands for it.
    pub name: String,
    /// The namespace, if it has one.
    pub namespace: String,
    /// The verdict.
    pub status: Status,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

/// The verdict about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing is wrong.
    Valid,
    /// Something is wrong.
    Invalid,
    /// There is no schema for its kind.
    MissingSchema,
    /// Defaults could not be set, and nothing else is wrong.
    DefaultingFailed,
}

impl Status {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::MissingSchema => "missingSchema",
            Self::DefaultingFailed => "defaultingFailed",
        }
    }
}

/// The check that found something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Setting defaults.
    Defaulting,
    /// The schema.
    Schema,
    /// Whether all fields are known.
    UnknownField,
    /// The rules of the schema.
    Rules,
}

impl Check {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Defaulting => "defaulting",
            Self::Schema => "schema",
            Self::UnknownField => "unknownField",
            Self::Rules => "cel",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub struct Finding {
    /// What found it.
    pub check: Check,
    /// The field, if it is known.
    pub field: Option<String>,
    /// The message.
    pub message: String,
    /// The value that the message is about.
    pub value: Option<Value>,
}

impl Report {
    /// The number of resources with this verdict.
    pub fn count(&self, status: Status) -> usize {
        self.resources.iter().filter(|resource| resource.status == status).count()
    }

    /// The number of resources that may be used.
    pub fn valid(&self) -> usize {
        self.count(Status::Valid) + self.count(Status::DefaultingFailed)
    }

    /// Why the validation as a whole failed, if it did.
    pub fn failure(&self, missing_is_failure: bool) -> Option<&'static str> {
        if self.count(Status::Invalid) > 0 {
            Some("could not validate all resources")
        } else if missing_is_failure && self.count(Status::MissingSchema) > 0 {
            Some("could not validate all resources, schema(s) missing")
        } else {
            None
        }
    }
}
