//! Where a server takes the time, identities and random parts of names from.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use biplane_model::names;

/// What a server cannot know by itself.
pub trait Sources: Debug + Send + Sync {
    /// The time, as `2006-01-02T15:04:05Z`.
    fn now(&self) -> String;
    /// An identity that nothing else has.
    fn uid(&self) -> String;
    /// What makes a generated name unique.
    fn random(&self) -> [u8; names::SUFFIX];
}

/// Identities and names that count up, at a time that stands still.
#[derive(Debug)]
pub struct Counted {
    time: String,
    uids: AtomicU64,
    names: AtomicU64,
}

impl Counted {
    /// At a time.
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
