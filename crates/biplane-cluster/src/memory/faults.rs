//! Failures on demand: before or after any single call, once or for good.

/// Whether a call has its effect before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing happens.
    Before,
    /// It happens, and the caller does not hear of it.
    After,
}

/// A planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which call fails, counted from zero since the start or the last restart.
    pub call: usize,
    /// Whether it has its effect.
    pub when: When,
    /// Whether every later call fails too, without effect, until a restart: the process died.
    pub crash: bool,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    fault: Option<Fault>,
    calls: usize,
    crashed: bool,
}

/// Permission to run a call; says whether it is to fail afterwards.
#[derive(Debug)]
pub(super) struct Ticket {
    fails: bool,
}

impl Plan {
    pub(super) fn set(&mut self, fault: Fault) {
        self.fault = Some(fault);
    }

    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    pub(super) fn crashed(&self) -> bool {
        self.crashed
    }

    pub(super) fn enter(&mut self) -> Result<Ticket, String> {
        if self.crashed {
            return Err("injected fault: the process has stopped".to_owned());
        }
        let call = self.calls;
        self.calls += 1;
        match self.fault {
            Some(fault) if fault.call == call => match fault.when {
                When::Before => {
                    self.crashed = fault.crash;
                    Err(format!("injected fault before call {call}"))
                }
                When::After => Ok(Ticket { fails: true }),
            },
            _ => Ok(Ticket { fails: false }),
        }
    }

    #[allow(clippy::needless_pass_by_value)] // a ticket is good for one call
    pub(super) fn leave(&mut self, ticket: Ticket) -> Result<(), String> {
        if !ticket.fails {
            return Ok(());
        }
        self.crashed = self.fault.is_some_and(|fault| fault.crash);
        Err("injected fault after the call".to_owned())
    }
}
