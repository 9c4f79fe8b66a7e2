//! Stops emitting for a while when the receiver does not answer, so that it delays few calls.

use std::time::Duration;

use tokio::time::Instant;

/// How many calls in a row may exceed their time.
const PATIENCE: u32 = 3;
/// How long nothing is emitted then. Afterwards one call tries again.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether the receiver answers in time.
#[derive(Debug, Default)]
pub(super) struct Pause {
    timeouts: u32,
    until: Option<Instant>,
}

impl Pause {
    /// Whether a call may be made now. After a pause, only one call at a time may.
    pub(super) fn may_call(&mut self, now: Instant) -> bool {
        match self.until {
            Some(until) if now < until => false,
            Some(_) => {
                self.until = Some(now + PAUSE);
                true
            }
            None => true,
        }
    }

    /// A call exceeded its time. Returns whether a pause begins.
    pub(super) fn timed_out(&mut self, now: Instant) -> bool {
        self.timeouts = self.timeouts.saturating_add(1);
        let pauses = self.timeouts >= PATIENCE;
        if pauses {
            self.until = Some(now + PAUSE);
        }
        pauses
    }

    /// The receiver answered, or is known to be absent.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn three_timeouts_in_a_row_pause_for_a_second() {
        let now = Instant::now();
        let mut pause = Pause::default();
        assert!(!pause.timed_out(now));
        assert!(!pause.timed_out(now));
        pause.answered();
        assert!(!pause.timed_out(now));
        assert!(!pause.timed_out(now));
        assert!(pause.may_call(now));
        assert!(pause.timed_out(now));
        assert!(!pause.may_call(now));
        assert!(!pause.may_call(now + PAUSE - Duration::from_nanos(1)));
        // One call tries, the others do not.
        let later = now + PAUSE;
        assert!(pause.may_call(later));
        assert!(!pause.may_call(later));
        // Without an answer, the next pause begins at once.
        assert!(pause.timed_out(later));
        assert!(!pause.may_call(later + PAUSE / 2));
        assert!(pause.may_call(later + PAUSE));
        pause.answered();
        assert!(pause.may_call(later + PAUSE));
        assert!(pause.may_call(later + PAUSE));
    }
}
