//! Passes the treatment of unknown fields to generated code.
//!
//! The library's reader has no parameter for it. A message is read within one call on one thread,
//! so the setting is a thread-local variable.

use std::cell::Cell;

use serde::de::Error;

use super::Unknown;

thread_local! {
    static TREATMENT: Cell<Unknown> = const { Cell::new(Unknown::Reject) };
}

/// Restores the previous setting, however the call ends.
struct Before(Unknown);

impl Drop for Before {
    fn drop(&mut self) {
        TREATMENT.set(self.0);
    }
}

/// Runs a reader with this treatment of unknown fields.
pub(super) fn while_treating<T>(fields: Unknown, read: impl FnOnce() -> T) -> T {
    let _before = Before(TREATMENT.replace(fields));
    read()
}

pub(super) fn discards() -> bool {
    TREATMENT.get() == Unknown::Discard
}

/// Called by generated code for a field that the message does not have.
pub(crate) fn unknown_field<T, E: Error>(name: &str, skipped: T) -> Result<T, E> {
    if discards() {
        return Ok(skipped);
    }
    Err(E::custom(format_args!("unknown field {}", biplane_go::fmt::quote(name))))
}
