//! How functions are declared, and what they get from a run.

use std::fmt;
use std::sync::Arc;

use crate::budget::Budget;
use crate::types::Type;
use crate::value::Value;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error or a panic of the function. Templates report `error calling F: <text>` for both.
    Message(String),
    /// A limit of the run is used up.
    Limit(crate::budget::Exceeded),
}

impl Failure {
    /// An error, or the text of a panic.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<crate::budget::Exceeded> for Failure {
    fn from(exceeded: crate::budget::Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

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

    /// Accounts for memory: call it before making a string or list of this many bytes.
    pub fn reserve(&mut self, bytes: u64) -> Result<(), Failure> {
        Ok(self.budget.reserve(bytes)?)
    }
}

/// The code of a function.
pub type Body = Arc<dyn Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Code {
    Native(Body),
    /// Functions that see values as `reflect.Value`s, or the operands themselves.
    Builtin(crate::builtin::Builtin),
    /// Runs a named template and returns its output.
    Include,
}

/// A function with its Go signature.
#[derive(Clone)]
pub struct Func {
    pub(crate) name: &'static str,
    pub(crate) params: &'static [Type],
    pub(crate) variadic: bool,
    pub(crate) result: Type,
    pub(crate) code: Code,
}

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, params, variadic, result, .. } = self;
        let dots = if *variadic { "..." } else { "" };
        write!(f, "{name}{params:?}{dots} -> {result:?}")
    }
}

impl Func {
    /// A function with exactly these parameters.
    pub fn new(
        name: &'static str,
        params: &'static [Type],
        result: Type,
        body: impl Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { name, params, variadic: false, result, code: Code::Native(Arc::new(body)) }
    }

    /// A function whose last parameter may repeat (`...T`). Its type is that of one argument.
    pub fn variadic(
        name: &'static str,
        params: &'static [Type],
        result: Type,
        body: impl Fn(&mut Call<'_>, &[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        Self { variadic: true, ..Self::new(name, params, result, body) }
    }

    /// `include`: runs a named template and returns its output.
    pub fn include() -> Self {
        const PARAMS: &[Type] = &[Type::String, Type::Any];
        Self {
            name: "include",
            params: PARAMS,
            variadic: false,
            result: Type::String,
            code: Code::Include,
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the code on arguments that fit the parameters, outside of a template. The built-in
    /// functions cannot run so.
    pub fn call(&self, call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
        match &self.code {
            Code::Native(body) => body(call, args),
            _ => Err(Failure::new(format!("{} runs in templates only", self.name))),
        }
    }
}
