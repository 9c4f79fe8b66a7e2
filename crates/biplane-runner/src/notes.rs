//! What travels beside a call: what the runs of a pipeline share, and what inner runners tell the
//! wrappers around them.

use std::sync::{Arc, Mutex, PoisonError};

use biplane_proto::redact::EncodedObserved;

/// What wrappers remember from one call of a run to the next. Clones share it, and it ends with the
/// run.
#[derive(Clone, Debug, Default)]
pub struct RunMemory {
    /// The observed state as it is emitted.
    pub(crate) observed: EncodedObserved,
}

/// The memory of a run does not identify a call.
impl PartialEq for RunMemory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RunMemory {}

/// Takes notes about one call. Nothing is noted unless a wrapper asks for it.
#[derive(Clone, Debug, Default)]
pub struct Notes(Option<Arc<Mutex<Noted>>>);

/// What was noted about a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// Whether the response came from a cache.
    pub cached: bool,
    /// The revision of the function that answered.
    pub revision: Option<String>,
}

impl Notes {
    /// Notes that somebody will read.
    pub fn wanted() -> Self {
        Self(Some(Arc::default()))
    }

    /// Notes that the response came from a cache.
    pub fn cached(&self) {
        self.change(|noted| noted.cached = true);
    }

    /// Notes which revision of the function is called.
    pub fn revision(&self, name: &str) {
        self.change(|noted| noted.revision = Some(name.to_owned()));
    }

    /// What was noted so far.
    pub fn noted(&self) -> Noted {
        let noted = self.0.as_ref();
        noted
            .map(|noted| noted.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Noted)) {
        if let Some(noted) = &self.0 {
            change(&mut noted.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Notes do not identify a call.
impl PartialEq for Notes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Notes {}
