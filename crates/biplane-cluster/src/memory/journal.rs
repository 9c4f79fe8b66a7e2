//! The journal of an in-memory cluster: every write and event, in order.

use biplane_model::Object;

use crate::events::Event;

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// It was created.
    Create,
    /// It was replaced.
    Update,
    /// Its status was replaced.
    UpdateStatus,
    /// It was applied.
    Apply,
    /// Its status was applied.
    ApplyStatus,
    /// It was patched.
    Patch,
    /// Its status was patched.
    PatchStatus,
    /// It was deleted.
    Delete,
}

/// One entry of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A successful write, whether or not it changed anything.
    Write {
        /// The kind of the write.
        verb: Verb,
        /// The sent object for an apply, the removed object for a delete, otherwise the stored
        /// object.
        object: Object,
    },
    /// An event.
    Event(Box<Event>),
}
