//! Counts what a run of a program costs, so that no expression runs for long or takes much memory.
//!
//! A unit is about what one operator costs. Work that depends on the size of values costs more.

/// What one run may cost. Kubernetes allows the same.
pub const PER_RUN: u64 = 1_000_000;

/// How many units pass before it is asked whether to go on.
const CHECK_EVERY: u64 = 1_000;

/// How many units of our own a run may take where Kubernetes' count is the limit. Kubernetes counts
/// little for some work that is not little.
const BESIDES: u64 = 50 * PER_RUN;

/// What a run may still cost.
pub struct Cost<'c> {
    limit: u64,
    spent: u64,
    next_check: u64,
    goes_on: &'c dyn Fn() -> bool,
    stop: Option<Stop>,
    /// What Kubernetes would count.
    charged: u64,
    /// The most that Kubernetes allows, if its count is the limit.
    allowed: Option<u64>,
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Cost,
    Interrupted,
}

impl std::fmt::Debug for Cost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { limit, spent, .. } = self;
        f.debug_struct("Cost").field("limit", limit).field("spent", spent).finish_non_exhaustive()
    }
}

impl<'c> Cost<'c> {
    /// Allows this many units, as long as `goes_on` returns true. It is asked from time to time.
    pub fn new(limit: u64, goes_on: &'c dyn Fn() -> bool) -> Self {
        Self {
            limit,
            spent: 0,
            next_check: CHECK_EVERY,
            goes_on,
            stop: None,
            charged: 0,
            allowed: None,
        }
    }

    /// Allows what Kubernetes allows, by its way of counting.
    pub fn kubernetes(allowed: u64, goes_on: &'c dyn Fn() -> bool) -> Self {
        Self { allowed: Some(allowed), ..Self::new(BESIDES, goes_on) }
    }

    /// What Kubernetes would have counted so far.
    pub fn charged(&self) -> u64 {
        self.charged
    }

    /// Counts as Kubernetes does, if its count is the limit.
    pub(super) fn charge(&mut self, units: u64) -> Result<(), String> {
        let Some(allowed) = self.allowed else { return Ok(()) };
        self.charged = self.charged.saturating_add(units);
        if self.charged > allowed {
            self.stop.get_or_insert(Stop::Cost);
        }
        if self.stop.is_some() { Err(String::new()) } else { Ok(()) }
    }

    /// What was spent so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    pub(super) fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// Takes back what was counted too much.
    pub(super) fn refund(&mut self, units: u64) {
        self.charged = self.charged.saturating_sub(units);
    }

    /// Spends units. From the first refusal on, everything is refused: an expression may ignore an
    /// error, but not this one.
    pub(super) fn spend(&mut self, units: u64) -> Result<(), String> {
        self.spent = self.spent.saturating_add(units);
        if self.spent > self.limit {
            self.stop.get_or_insert(Stop::Cost);
        } else if self.spent >= self.next_check {
            self.next_check = self.spent + CHECK_EVERY;
            if !(self.goes_on)() {
                self.stop.get_or_insert(Stop::Interrupted);
            }
        }
        // Replaced by the reason at the end of the run.
        if self.stop.is_some() { Err(String::new()) } else { Ok(()) }
    }

    /// Spends what it costs to copy or search a string.
    pub(super) fn spend_text(&mut self, bytes: usize) -> Result<(), String> {
        self.spend(bytes as u64 / 10)
    }
}
