//! What only specs of the v1 line have: templates and environments, decoded and prepared.

pub(super) mod environment;
pub(super) mod templates;
