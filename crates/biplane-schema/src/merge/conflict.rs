//! Conflicts: fields that an apply would take from other managers, with the API server's messages.

use std::fmt;

use super::managed::Manager;
use super::path::Path;

/// One field and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The current owner.
    pub manager: Manager,
    /// The field.
    pub path: Path,
}

/// All conflicts of one apply, by manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub(super) fn new(mut conflicts: Vec<Conflict>) -> Self {
        conflicts.sort_by_cached_key(|conflict| conflict.manager.identifier());
        Self(conflicts)
    }

    /// Iterates over the conflicts.
    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }
}

/// The message of the API server's status.
impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            let Conflict { manager, path } = only;
            return write!(f, "Apply failed with 1 conflict: conflict with {manager}: {path}");
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut before: Option<&Manager> = None;
        for Conflict { manager, path } in &self.0 {
            if before != Some(manager) {
                let line_break = if before.is_some() { "\n" } else { "" };
                write!(f, "{line_break}conflicts with {manager}:")?;
                before = Some(manager);
            }
            write!(f, "\n- {path}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}
