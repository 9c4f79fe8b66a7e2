//! Passes the choice about unknown fields to generated code.
//!
//! A reader of the library has no room for a choice of ours, and a message is read within one call
//! on one thread: so the choice stands beside the call, on the thread.

use std::cell::Cell;

use serde::de::Error;

use super::Unknown;

thread_local! {
    static TREATMENT: Cell<Unknown> = const { Cell::new(Unknown::Reject) };
}

/// Sets the choice back however the call ends.
struct Before(Unknown);

impl Drop for Before {
    fn drop(&mut self) {
        TREATMENT.set(self.0);
    }
}

/// Runs a reader that treats unknown fields so.
pub(super) fn while_treating<T>(fields: Unknown, read: impl FnOnce() -> T) -> T {
    let _before = Before(TREATMENT.replace(fields));
    read()
}

pub(super) fn discards() -> bool {
    TREATMENT.get() == Unknown::Discard
}

/// What generated code asks when it meets a field that the message does not have.
pub(crate) fn unknown_field<T, E: Error>(name: &str, skipped: T) -> Result<T, E> {
    if discards() {
        return Ok(skipped);
    }
    Err(E::custom(format_args!("unknown field {}", biplane_go::fmt::quote(name))))
}
