//! Sources of the time, of UIDs and of the random part of generated names.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use biplane_model::{Object, names};

/// Values that the server takes from outside, so that tests can fix them.
pub trait Sources: Debug + Send + Sync {
    /// The current time, formatted as `2006-01-02T15:04:05Z`.
    fn now(&self) -> String;
    /// A unique UID.
    fn uid(&self) -> String;
    /// The UID of a new object. Names that are derived from UIDs are the same every time if this
    /// depends on the object alone.
    fn uid_of(&self, _object: &Object) -> String {
        self.uid()
    }
    /// The random suffix of a generated name.
    fn random(&self) -> [u8; names::SUFFIX];
}

/// UIDs and names that count up, and a fixed time.
#[derive(Debug)]
pub struct Counted {
    time: String,
    uids: AtomicU64,
    names: AtomicU64,
}

impl Counted {
    /// Creates a source with a fixed time.
    pub fn at(time: &str) -> Self {
        Self { time: time.to_owned(), uids: AtomicU64::new(1), names: AtomicU64::new(1) }
    }
}

impl Default for Counted {
    fn default() -> Self {
        Self::at("2024-01-01T00:00:00Z")
    }
}

impl Sources for Counted {
    fn now(&self) -> String {
        self.time.clone()
    }

    fn uid(&self) -> String {
        let number = self.uids.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    fn random(&self) -> [u8; names::SUFFIX] {
        names::spread(self.names.fetch_add(1, Ordering::Relaxed))
    }
}
