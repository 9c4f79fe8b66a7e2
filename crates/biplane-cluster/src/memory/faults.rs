//! Planned failures of the in-memory cluster: before or after any single call, once or permanently.

use std::time::Duration;

use crate::{ReadError, WriteError};

/// Whether a failing call has its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The call has no effect.
    Before,
    /// The call has its effect, but the caller gets an error.
    After,
}

/// The error of a failing call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// The server does not respond.
    #[default]
    Unavailable,
    /// A conflict, as if another write happened first. Reads fail as if the server did not respond.
    Conflict,
    /// Invalid, as if the object violated a rule. Reads fail as if the server did not respond.
    Invalid,
    /// The server asks to wait for a second.
    Throttled,
    /// The object does not have the types of its schema. Reads fail as if the server did not
    /// respond.
    Malformed,
}

/// A planned failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The index of the failing call, counted from zero since the start or the last restart.
    pub call: usize,
    /// Whether the call has its effect.
    pub when: When,
    /// Whether all later calls also fail, without effect, until a restart. This simulates a crash.
    pub crash: bool,
    /// The error that the caller gets.
    pub answer: Answer,
}

impl Fault {
    /// A single call that fails without effect.
    pub fn before(call: usize) -> Self {
        Self { call, when: When::Before, crash: false, answer: Answer::Unavailable }
    }
}

/// The error of a planned failure.
#[derive(Debug)]
pub(super) struct Injected {
    answer: Answer,
    text: String,
}

impl From<Injected> for ReadError {
    fn from(injected: Injected) -> Self {
        let Injected { answer, text: message } = injected;
        match answer {
            Answer::Throttled => Self::Throttled { message, after: Duration::from_secs(1) },
            _ => Self::Unavailable(message),
        }
    }
}

impl From<Injected> for WriteError {
    fn from(Injected { answer, text }: Injected) -> Self {
        match answer {
            Answer::Unavailable => Self::Unavailable(text),
            Answer::Conflict => Self::Conflict(text),
            Answer::Invalid => Self::Invalid(text),
            Answer::Malformed => Self::Malformed(text),
            Answer::Throttled => Self::Throttled { message: text, after: Duration::from_secs(1) },
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    fault: Option<Fault>,
    calls: usize,
    crashed: bool,
}

/// Permission to run a call. It records whether the call must fail afterwards.
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

    #[allow(clippy::needless_pass_by_value)] // a ticket is valid for one call
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
