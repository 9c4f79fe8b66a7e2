//! What functions get from a run, and how they fail.

use biplane_go::fmt::{self, Arg};

use super::Value;
use super::print;
use crate::budget::{Budget, Exceeded, Host};

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error or a panic of the function. Templates report `error calling F: <text>` for both.
    Message(String),
    /// A limit of the run is used up.
    Limit(Exceeded),
}

impl Failure {
    /// An error, or the text of a panic.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

/// What a printed value costs besides its text, with the name of its type.
const ITEM: usize = 256;

/// What a function gets besides its arguments.
#[allow(missing_debug_implementations)] // a host has nothing to show
pub struct Call<'a> {
    pub(crate) host: &'a dyn Host,
    pub(crate) budget: &'a mut Budget,
}

impl<'a> Call<'a> {
    /// What a function outside of a template gets.
    pub fn new(host: &'a dyn Host, budget: &'a mut Budget) -> Self {
        Self { host, budget }
    }

    /// The clock, random numbers and names.
    pub fn host(&self) -> &dyn Host {
        self.host
    }

    /// Accounts for work: call it before a loop of this many rounds.
    pub fn spend(&mut self, steps: u64) -> Result<(), Failure> {
        Ok(self.budget.spend(steps, self.host)?)
    }

    /// A value as `%v` prints it.
    pub fn display(&mut self, value: &Value) -> Result<Vec<u8>, Failure> {
        match value {
            Value::Str(text) => Ok(text.to_vec()),
            Value::Int(_, number) => Ok(number.to_string().into_bytes()),
            _ => self.print(std::slice::from_ref(value), |args| Some(fmt::sprint(args))),
        }
    }

    /// `fmt.Sprint`.
    pub fn sprint(&mut self, args: &[Value]) -> Result<Vec<u8>, Failure> {
        self.print(args, |args| Some(fmt::sprint(args)))
    }

    /// `fmt.Sprintln`.
    pub fn sprintln(&mut self, args: &[Value]) -> Result<Vec<u8>, Failure> {
        self.print(args, |args| Some(fmt::sprintln(args)))
    }

    /// `fmt.Sprintf`.
    pub fn sprintf(&mut self, format: &[u8], args: &[Value]) -> Result<Vec<u8>, Failure> {
        let limit = self.budget.memory();
        self.print(args, |args| fmt::sprintf_within(format, args, limit))
    }

    fn print(
        &mut self,
        args: &[Value],
        format: impl FnOnce(&[Arg<'_>]) -> Option<Vec<u8>>,
    ) -> Result<Vec<u8>, Failure> {
        let allowed = self.budget.memory() / ITEM;
        let mut left = allowed;
        let items = print::items(args, &mut left);
        self.reserve(((allowed - left) * ITEM) as u64)?;
        let items = items.map_err(|exceeded| match exceeded {
            // The whole budget was used up.
            Exceeded::Values => Exceeded::Memory(self.budget.limits.memory),
            other => other,
        })?;
        // Without a result, it would have been larger than the budget.
        let out =
            format(&print::refer(&items)).ok_or(Exceeded::Memory(self.budget.limits.memory))?;
        self.reserve(out.len() as u64)?;
        Ok(out)
    }

    /// Accounts for memory: call it before making a string or list of this many bytes.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), Failure> {
        Ok(self.budget.reserve(bytes)?)
    }
}
