//! Failures on demand: before or after any single call, once or for good.

use crate::{ReadError, WriteError};

/// Whether a call has its effect before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing happens.
    Before,
    /// It happens, and the caller does not hear of it.
    After,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// As if nobody were there.
    #[default]
    Unavailable,
    /// As if someone else had been faster; reads fail as if nobody were there.
    Conflict,
    /// As if the object broke a rule; reads fail as if nobody were there.
    Invalid,
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
    /// What the caller hears.
    pub answer: Answer,
}

impl Fault {
    /// A single call that fails without effect.
    pub fn before(call: usize) -> Self {
        Self { call, when: When::Before, crash: false, answer: Answer::Unavailable }
    }
}

/// What the caller of a call hears that was to fail.
#[derive(Debug)]
pub(super) struct Injected {
    answer: Answer,
    text: String,
}

impl From<Injected> for ReadError {
    fn from(injected: Injected) -> Self {
        Self::Unavailable(injected.text)
    }
}

impl From<Injected> for WriteError {
    fn from(Injected { answer, text }: Injected) -> Self {
        match answer {
            Answer::Unavailable => Self::Unavailable(text),
            Answer::Conflict => Self::Conflict(text),
            Answer::Invalid => Self::Invalid(text),
        }
    }
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

    pub(super) fn enter(&mut self) -> Result<Ticket, Injected> {
        if self.crashed {
            return Err(self.failure("injected fault: the process has stopped".to_owned()));
        }
        let call = self.calls;
        self.calls += 1;
        match self.fault {
            Some(fault) if fault.call == call => match fault.when {
                When::Before => {
                    self.crashed = fault.crash;
                    Err(self.failure(format!("injected fault before call {call}")))
                }
                When::After => Ok(Ticket { fails: true }),
            },
            _ => Ok(Ticket { fails: false }),
        }
    }

    #[allow(clippy::needless_pass_by_value)] // a ticket is good for one call
    pub(super) fn leave(&mut self, ticket: Ticket) -> Result<(), Injected> {
        if !ticket.fails {
            return Ok(());
        }
        self.crashed = self.fault.is_some_and(|fault| fault.crash);
        Err(self.failure("injected fault after the call".to_owned()))
    }

    fn failure(&self, text: String) -> Injected {
        Injected { answer: self.fault.map(|fault| fault.answer).unwrap_or_default(), text }
    }
}
