//! The limits of a run, and what is left of them.

use crate::func::Host;

/// How much a run may do. The numbers are our own: Go has no limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Executed instructions and rounds of loops.
    pub steps: u64,
    /// Bytes of output, with the output of `include`.
    pub output: u64,
    /// Bytes that functions make: strings and lists.
    pub memory: u64,
    /// Templates that are active at the same time.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 5_000_000, output: 64 << 20, memory: 256 << 20, depth: 100_000 }
    }
}

/// The limit that a run exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("the template takes more than {0} steps")]
    Steps(u64),
    #[error("the template writes more than {0} bytes")]
    Output(u64),
    #[error("the template needs more than {0} bytes of memory")]
    Memory(u64),
    #[error("the template takes too long")]
    Time,
}

/// How many steps pass between two looks at the clock.
const CLOCK: u64 = 4096;

/// What is left of the limits.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub(crate) limits: Limits,
    steps: u64,
    output: u64,
    memory: u64,
    /// Steps until the next look at the clock.
    clock: u64,
}

impl Budget {
    pub fn new(limits: Limits) -> Self {
        let Limits { steps, output, memory, .. } = limits;
        Self { limits, steps, output, memory, clock: CLOCK }
    }

    pub(crate) fn spend(&mut self, steps: u64, host: &dyn Host) -> Result<(), Exceeded> {
        let left = self.steps.checked_sub(steps).ok_or(Exceeded::Steps(self.limits.steps));
        self.steps = left?;
        if self.clock > steps {
            self.clock -= steps;
            return Ok(());
        }
        self.clock = CLOCK;
        if host.expired() { Err(Exceeded::Time) } else { Ok(()) }
    }

    pub(crate) fn write(&mut self, bytes: u64) -> Result<(), Exceeded> {
        let left = self.output.checked_sub(bytes).ok_or(Exceeded::Output(self.limits.output));
        self.output = left?;
        Ok(())
    }

    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), Exceeded> {
        let left = self.memory.checked_sub(bytes).ok_or(Exceeded::Memory(self.limits.memory));
        self.memory = left?;
        Ok(())
    }
}
