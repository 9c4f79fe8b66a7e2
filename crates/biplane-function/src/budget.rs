//! What one call of a function may cost: time, steps and bytes.
//!
//! Who calls a function makes the budget, from the caller's deadline. The function spends it in its
//! loops and before it makes something large:
//!
//! ```text
//! for template in &templates {
//!     budget.step()?;
//!     budget.make(template.len() * copies)?;
//!     …
//! }
//! ```
//!
//! A function that checks its budget says so with [`PureFunction::checks_budget`]. It ends in time,
//! so that it needs no thread of its own.
//!
//! [`PureFunction::checks_budget`]: crate::PureFunction::checks_budget

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use tonic::Status;

use crate::status;

/// The steps of one call. A step is about the work of ten nanoseconds.
pub const MAX_STEPS: u64 = 200_000_000;

/// The bytes of all values that one call makes, also of those that it drops again.
pub const MAX_BYTES: u64 = 128 << 20;

/// How many steps pass before the clock is read.
const CHECK_EVERY: u64 = 4_096;

/// What one call may cost. It can be checked from several threads.
#[derive(Debug)]
pub struct Budget {
    deadline: Option<Instant>,
    abandoned: Arc<AtomicBool>,
    max_steps: u64,
    max_bytes: u64,
    steps: AtomicU64,
    next_check: AtomicU64,
    bytes: AtomicU64,
    /// The first limit that was exceeded, as in [`Exceeded::code`].
    exceeded: AtomicU8,
}

/// The limit that a call exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// The caller does not wait any longer.
    #[error("context deadline exceeded")]
    Deadline,
    /// The caller has gone.
    #[error("context canceled")]
    Abandoned,
    /// The call computes too much.
    #[error("a call may take {0} steps, and this one needs more")]
    Steps(u64),
    /// The call makes too much.
    #[error("a call may make {} of values, and this one needs more", Size(*.0))]
    Bytes(u64),
}

/// A number of bytes for people.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

impl Exceeded {
    fn code(self) -> u8 {
        match self {
            Self::Deadline => 1,
            Self::Abandoned => 2,
            Self::Steps(_) => 3,
            Self::Bytes(_) => 4,
        }
    }

    /// The status of a call that nobody waits for any longer. The other limits are about the input,
    /// and a function reports them as a fatal result that says where.
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Deadline => Some(status::deadline_exceeded()),
            Self::Abandoned => Some(Status::cancelled(self.to_string())),
            Self::Steps(_) | Self::Bytes(_) => None,
        }
    }
}

/// For functions that have no place in their input to report: a call that exceeds its budget fails.
impl From<Exceeded> for Status {
    fn from(exceeded: Exceeded) -> Self {
        let text = exceeded.to_string();
        exceeded.status().unwrap_or_else(|| Self::resource_exhausted(text))
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            deadline: None,
            abandoned: Arc::default(),
            max_steps: MAX_STEPS,
            max_bytes: MAX_BYTES,
            steps: AtomicU64::new(0),
            next_check: AtomicU64::new(CHECK_EVERY),
            bytes: AtomicU64::new(0),
            exceeded: AtomicU8::new(0),
        }
    }
}

impl Budget {
    /// The budget of a call whose caller waits until then, or for ever.
    pub fn until(deadline: Option<Instant>) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Sets the number of steps.
    #[must_use]
    pub fn with_steps(mut self, steps: u64) -> Self {
        self.max_steps = steps;
        self
    }

    /// Sets the number of bytes.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Returns what ends the call at its next check when it is dropped.
    pub fn caller(&self) -> Caller {
        Caller(Arc::clone(&self.abandoned))
    }

    /// Returns the caller's deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Takes one step, such as one turn of a loop.
    pub fn step(&self) -> Result<(), Exceeded> {
        self.steps(1)
    }

    /// Takes several steps. Once something was exceeded, every step fails.
    pub fn steps(&self, steps: u64) -> Result<(), Exceeded> {
        let taken = add(&self.steps, steps);
        if taken > self.max_steps {
            return Err(self.exceed(Exceeded::Steps(self.max_steps)));
        }
        if taken < self.next_check.load(Ordering::Relaxed) {
            return self.exceeded().map_or(Ok(()), Err);
        }
        self.next_check.store(taken.saturating_add(CHECK_EVERY), Ordering::Relaxed);
        self.check()
    }

    /// Announces that values of this many bytes will be made.
    pub fn make(&self, bytes: usize) -> Result<(), Exceeded> {
        let made = add(&self.bytes, bytes as u64);
        if made > self.max_bytes {
            return Err(self.exceed(Exceeded::Bytes(self.max_bytes)));
        }
        // Bytes have to be written, too.
        self.steps(bytes as u64 / BYTES_PER_STEP)
    }

    /// Returns how many bytes may still be made.
    pub fn room(&self) -> usize {
        let left = self.max_bytes.saturating_sub(self.bytes.load(Ordering::Relaxed));
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Reports that something would need more bytes than there is room for.
    pub fn overflow(&self) -> Exceeded {
        self.exceed(Exceeded::Bytes(self.max_bytes))
    }

    /// Fails if nobody waits for the call any longer, or if something was exceeded before. It reads
    /// the clock, so it belongs before something long, not into a short loop.
    pub fn check(&self) -> Result<(), Exceeded> {
        if let Some(exceeded) = self.exceeded() {
            return Err(exceeded);
        }
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(self.exceed(Exceeded::Abandoned));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(self.exceed(Exceeded::Deadline)),
            _ => Ok(()),
        }
    }

    /// Returns the limit that was exceeded first, if any.
    pub fn exceeded(&self) -> Option<Exceeded> {
        match self.exceeded.load(Ordering::Relaxed) {
            1 => Some(Exceeded::Deadline),
            2 => Some(Exceeded::Abandoned),
            3 => Some(Exceeded::Steps(self.max_steps)),
            4 => Some(Exceeded::Bytes(self.max_bytes)),
            _ => None,
        }
    }

    /// Remembers what was exceeded, and returns what was exceeded first.
    fn exceed(&self, exceeded: Exceeded) -> Exceeded {
        let first = self.exceeded.compare_exchange(
            0,
            exceeded.code(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if first.is_ok() { exceeded } else { self.exceeded().unwrap_or(exceeded) }
    }
}

/// Adds to a counter. Two threads that count at the same time may lose a count, which is cheaper than
/// to count exactly.
fn add(counter: &AtomicU64, more: u64) -> u64 {
    let sum = counter.load(Ordering::Relaxed).saturating_add(more);
    counter.store(sum, Ordering::Relaxed);
    sum
}

/// How many bytes are written in the time of a step.
const BYTES_PER_STEP: u64 = 16;

/// Who waits for a call. When it is dropped, the call ends at its next check.
#[derive(Debug)]
pub struct Caller(Arc<AtomicBool>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn steps_and_bytes_end() {
        let budget = Budget::default().with_steps(10).with_bytes(100);
        assert_eq!(budget.steps(10), Ok(()));
        let steps = "a call may take 10 steps, and this one needs more";
        assert_eq!(budget.step().unwrap_err().to_string(), steps);

        let budget = Budget::default().with_bytes(3 << 20);
        assert_eq!(budget.make(2 << 20), Ok(()));
        assert_eq!(budget.room(), 1 << 20);
        let bytes = "a call may make 3 MiB of values, and this one needs more";
        assert_eq!(budget.make(2 << 20).unwrap_err().to_string(), bytes);
        assert_eq!(budget.room(), 0);
    }

    #[test]
    fn what_was_exceeded_first_is_remembered() {
        let budget = Budget::default().with_steps(10).with_bytes(100);
        budget.make(101).unwrap_err();
        assert_eq!(budget.steps(100), Err(Exceeded::Bytes(100)));
        assert_eq!(budget.step(), Err(Exceeded::Bytes(100)));
        assert_eq!(budget.check(), Err(Exceeded::Bytes(100)));
        assert_eq!(budget.exceeded(), Some(Exceeded::Bytes(100)));
    }

    #[test]
    fn a_call_ends_at_its_deadline_or_when_its_caller_has_gone() {
        let past = Instant::now().checked_sub(Duration::from_millis(1));
        let budget = Budget::until(past);
        assert_eq!(budget.check(), Err(Exceeded::Deadline));
        let status = Status::from(Exceeded::Deadline);
        assert_eq!(status.message(), "context deadline exceeded");
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);

        let budget = Budget::until(past);
        let ends = (0..2 * CHECK_EVERY).position(|_| budget.step().is_err());
        assert_eq!(ends, Some(CHECK_EVERY as usize - 1));

        let budget = Budget::default();
        let caller = budget.caller();
        assert_eq!(budget.check(), Ok(()));
        drop(caller);
        assert_eq!(budget.check(), Err(Exceeded::Abandoned));
        assert_eq!(Status::from(Exceeded::Abandoned).code(), tonic::Code::Cancelled);
    }

    #[test]
    fn what_the_input_needs_is_no_status_of_its_own() {
        assert!(Exceeded::Steps(1).status().is_none());
        let status = Status::from(Exceeded::Bytes(7));
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        let text = "a call may make 7 bytes of values, and this one needs more";
        assert_eq!(status.message(), text);
    }
}
