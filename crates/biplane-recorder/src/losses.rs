//! Counts what was received and not stored, until it is written down.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Why something is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// More came than could be stored.
    QueueFull,
    /// There is no room on the disk.
    DiskFull,
    /// The store refused it.
    StoreFailed,
    /// It does not say to which run it belongs.
    NoTrace,
    /// No pipeline has a step of that number.
    StepNumber,
}

impl Reason {
    /// The words for it, as the store has them.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::QueueFull => "queue full",
            Self::DiskFull => "disk full",
            Self::StoreFailed => "store failed",
            Self::NoTrace => "no trace",
            Self::StepNumber => "step number",
        }
    }

    /// The label of the metric.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::DiskFull => "disk_full",
            Self::StoreFailed => "store_failed",
            Self::NoTrace => "no_trace",
            Self::StepNumber => "step_number",
        }
    }
}

/// What was lost for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// When the first was lost, in microseconds since 1970.
    pub(crate) at: i64,
    /// When the last was lost.
    pub(crate) until: i64,
    /// How many emissions.
    pub(crate) emissions: u64,
    /// Their size.
    pub(crate) bytes: u64,
}

/// What was lost and is not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<BTreeMap<Reason, Loss>>);

impl Losses {
    /// Adds a loss.
    pub(crate) fn add(&self, reason: Reason, loss: Loss) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = all.entry(reason).or_insert(Loss { emissions: 0, bytes: 0, ..loss });
        sum.at = sum.at.min(loss.at);
        sum.until = sum.until.max(loss.until);
        sum.emissions += loss.emissions;
        sum.bytes += loss.bytes;
    }

    /// Takes all of it. Who cannot write it down adds it again.
    pub(crate) fn take(&self) -> BTreeMap<Reason, Loss> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
