//! The error messages of the API server.

use biplane_go::fmt::quote;
use biplane_model::Object;
use biplane_schema::structural::{FieldError, Problem, joined};

use super::kinds::Kind;
use crate::error::WriteError;

pub(super) fn not_found(kind: &Kind, name: &str) -> String {
    format!("{} {} not found", kind.resource(), quote(name))
}

pub(super) fn already_exists(kind: &Kind, present: &Object) -> WriteError {
    let text = format!("{} {} already exists", kind.resource(), quote(present.name()));
    let prefix = if present.is_being_deleted() { "object is being deleted: " } else { "" };
    WriteError::AlreadyExists(format!("{prefix}{text}"))
}

fn conflict(resource: &str, name: &str, reason: &str) -> WriteError {
    let name = quote(name);
    WriteError::Conflict(format!("Operation cannot be fulfilled on {resource} {name}: {reason}"))
}

pub(super) fn modified(kind: &Kind, live: &Object) -> WriteError {
    let reason = "the object has been modified; please apply your changes to the latest version \
                  and try again";
    conflict(&kind.resource(), live.name(), reason)
}

pub(super) fn version_missing(kind: &Kind, live: &Object) -> WriteError {
    let field = "metadata.resourceVersion";
    let error = FieldError::new(Problem::Invalid, field, 0, "must be specified for an update");
    let name = quote(live.name());
    WriteError::Invalid(format!("{} {name} is invalid: {error}", kind.resource()))
}

pub(super) fn other_uid(kind: &Kind, live: &Object, given: &str) -> WriteError {
    let namespace = match live.namespace() {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    };
    let reason = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{}/{namespace}{}, \
         ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
         {given}, UID in object meta: {}",
        kind.gvk.group,
        kind.plural,
        live.name(),
        live.uid(),
    );
    conflict(&kind.resource(), live.name(), &reason)
}

pub(super) fn uid_of_nothing(kind: &Kind, new: &Object) -> WriteError {
    let reason = format!(
        "uid mismatch: the provided object specified uid {}, and no existing object was found",
        new.uid()
    );
    conflict(&kind.resource(), new.name(), &reason)
}

pub(super) fn uid_precondition(live: &Object, given: &str) -> WriteError {
    let reason = format!(
        "the UID in the precondition ({given}) does not match the UID in record ({}). The object \
         might have been deleted and then recreated",
        live.uid()
    );
    conflict(&live.gvk().group_kind(), live.name(), &reason)
}

pub(super) fn version_precondition(live: &Object, given: &str) -> WriteError {
    let reason = format!(
        "the ResourceVersion in the precondition ({given}) does not match the ResourceVersion in \
         record ({}). The object might have been modified",
        live.resource_version()
    );
    conflict(&live.gvk().group_kind(), live.name(), &reason)
}

pub(super) fn other_name(live: &Object, given: &str) -> WriteError {
    WriteError::BadRequest(format!(
        "the name of the object ({given}) does not match the name on the URL ({})",
        live.name()
    ))
}

pub(super) fn invalid(object: &Object, errors: &[FieldError]) -> WriteError {
    let kind = object.gvk().group_kind();
    let name = quote(object.name());
    WriteError::Invalid(format!("{kind} {name} is invalid: {}", joined(errors)))
}
