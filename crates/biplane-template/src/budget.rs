//! The limits of a run, what is left of them, and what a run gets from the world.

/// What functions read from the world. A fixed host makes a run reproducible.
pub trait Host {
    /// The time: seconds since 1970 and nanoseconds.
    fn now(&self) -> (i64, u32);

    /// Fills a buffer with random bytes.
    fn random(&self, buffer: &mut [u8]);

    /// The addresses of a host name. The error is what Go's resolver would say.
    fn resolve(&self, name: &str) -> Result<Vec<String>, String> {
        Err(format!("lookup {name}: no such host"))
    }

    /// Whether the run has taken too long. Called every few thousand steps.
    fn expired(&self) -> bool {
        false
    }
}

/// How much a run may do. The numbers are our own: Go has no limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Executed instructions. Calls of functions count more than others, by what they do.
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
        Self { steps: 10_000_000, output: 16 << 20, memory: 256 << 20, depth: 200_000 }
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
    #[error("the template has more than {0} templates active at the same time")]
    Depth(usize),
    #[error("a value is nested deeper than {0} levels")]
    Nesting(usize),
    #[error("a value is too large to print")]
    Values,
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

    /// How many bytes functions may still make.
    pub(crate) fn memory(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), Exceeded> {
        let left = self.memory.checked_sub(bytes).ok_or(Exceeded::Memory(self.limits.memory));
        self.memory = left?;
        Ok(())
    }
}
