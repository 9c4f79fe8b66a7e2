//! Server-side apply: objects, who owns which of their fields, and what a write does to both.
//!
//! The rules are those of the API server (structured merge): a field belongs to every manager
//! that has set it to its present value; an apply may not change what others own unless it is
//! forced to, and it removes what only it owned and no longer mentions.
//!
//! [`FieldManager`] is the way in. Below it, [`TypeRef`] says how each part of an object is
//! merged, [`FieldSet`] is a set of fields, and [`combine`], [`compare()`] and [`remove`] are
//! the operations on values that everything else is made of.

mod combine;
mod compare;
mod conflict;
mod from_schema;
mod managed;
mod manager;
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
pub use managed::{ManagedFields, ManagedFieldsError, Manager, Operation, Owned};
pub use manager::{Applied, ApplyError, BEFORE_FIRST_APPLY, FieldManager};
pub use path::{Path, PathElement, PathElementError};
pub use reconcile::reconcile;
pub use remove::remove;
pub use set::{FieldSet, FieldSetError};
pub use typed::{TypeError, TypeErrors, field_set, validate};
pub use types::{Atom, FieldType, ListType, MapType, Scalar, TypeRef};
pub use versions::{At, OneVersion, Versions};
