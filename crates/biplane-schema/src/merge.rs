//! Server-side apply: which managers own which fields of an object, and how a write changes both.
//!
//! The rules are those of the API server (structured merge). A field belongs to every manager that
//! has set it to its current value. An apply must not change fields that others own, unless it is
//! forced. It removes fields that only it owned and no longer contains.
//!
//! [`FieldManager`] is the entry point. Below it, [`TypeRef`] describes how each part of an object
//! is merged, [`FieldSet`] is a set of fields, and [`combine`], [`compare()`] and [`remove`] are
//! the basic operations on values.
//!
//! [`verdict`] and [`Ledger`] are the client's side: whether an apply would change nothing, decided
//! from the object alone.

mod combine;
mod compare;
mod conflict;
mod from_schema;
mod ledger;
mod managed;
mod manager;
mod outcome;
mod owned;
mod path;
#[cfg(test)]
mod properties;
mod reconcile;
mod remove;
mod set;
#[cfg(test)]
mod tests;
mod typed;
mod types;
mod updater;
mod versions;

pub use combine::combine;
pub use compare::{Comparison, compare};
pub use conflict::{Conflict, Conflicts};
pub use ledger::Ledger;
pub use managed::{ManagedFields, ManagedFieldsError, Manager, Operation, Owned};
pub use manager::{Applied, ApplyError, BEFORE_FIRST_APPLY, FieldManager};
pub use outcome::{Verdict, verdict};
pub use owned::Applying;
pub use path::{Path, PathElement, PathElementError};
pub use reconcile::reconcile;
pub use remove::remove;
pub use set::{FieldSet, FieldSetError};
pub use typed::{TypeError, TypeErrors, field_set, validate};
pub use types::{Atom, FieldType, ListType, MapType, Scalar, TypeRef};
pub use versions::{At, OneVersion, Versions};
