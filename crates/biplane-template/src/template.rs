//! Templates that are parsed once and run often.

use std::sync::Arc;

use crate::budget::Limits;
use crate::error::{ParseError, RunError};
use crate::exec::{self, MissingKey};
use crate::func::{Func, Host};
use crate::lex::Delimiters;
use crate::parse;
use crate::program::Program;
use crate::value::Value;

/// The functions that templates can call, with the ones that every template has.
#[derive(Clone, Debug)]
pub struct Functions(Arc<parse::Functions>);

impl Functions {
    /// A later function replaces an earlier one of the same name.
    pub fn new(functions: impl IntoIterator<Item = Func>) -> Self {
        let all = crate::builtin::functions().into_iter().chain(functions);
        Self(Arc::new(all.map(|func| (func.name(), Arc::new(func))).collect()))
    }

    /// The names of all functions, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.keys().copied()
    }
}

/// A template and the templates that it defines. A clone is the same template.
#[derive(Clone, Debug)]
pub struct Template(Arc<Program>);

impl Template {
    /// Parses a text. The name appears in messages.
    pub fn parse(
        name: &str,
        text: &str,
        functions: &Functions,
        delimiters: &Delimiters,
    ) -> Result<Self, ParseError> {
        parse::parse(name, text, &functions.0, delimiters).map(|program| Self(Arc::new(program)))
    }

    /// Runs the template. Its output is complete or not there.
    pub fn run(
        &self,
        data: &Value,
        missing: MissingKey,
        host: &dyn Host,
        limits: Limits,
    ) -> Result<Vec<u8>, RunError> {
        exec::run(&self.0, data, missing, host, limits)
    }

    /// The text that was parsed.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// About how many bytes of memory the template takes.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// The names of the template and of all that it defines, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.by_name.keys().map(String::as_str)
    }
}
