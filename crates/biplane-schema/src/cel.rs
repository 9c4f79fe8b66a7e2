//! The Common Expression Language: [`parse()`] an expression, [`Expression::check`] its types,
//! [`Program::evaluate`] it.
//!
//! A program is type-checked before it runs. Error messages are those of the Go implementation,
//! because users search for them. Only the first syntax error is reported, not those that follow
//! from it.

mod ast;
mod charges;
mod check;
mod cost;
mod escapes;
mod estimate;
mod eval;
mod functions;
mod lex;
mod macros;
mod opaque;
mod outcome;
mod parse;
mod report;
pub mod shape;
mod sizes;
mod types;
mod value;

use std::collections::BTreeMap;

use biplane_go::regex::GoRegex;

pub use cost::{Cost, PER_RUN};
pub use shape::Shape;
pub use sizes::Sizes;
pub use types::Type;
pub use value::Value;

/// Which functions and rules an expression is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The language itself.
    Standard,
    /// The language as rules in Kubernetes' schemas use it.
    Kubernetes,
}

/// The reasons why an expression does not compile: every problem with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(String);

/// The reason why a program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// An operation failed.
    #[error("{0}")]
    Failed(String),
    /// The program costs more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
    /// The caller stopped it.
    #[error("operation interrupted")]
    Interrupted,
}

/// An expression that has been parsed but not checked.
#[derive(Debug)]
pub struct Expression {
    source: Vec<char>,
    root: ast::Expr,
    dialect: Dialect,
}

/// A checked program. It can run any number of times.
#[derive(Debug)]
pub struct Program {
    root: ast::Expr,
    result: Type,
    notes: check::Notes,
    /// The literal patterns.
    patterns: BTreeMap<String, GoRegex>,
    /// About how many bytes it takes.
    size: usize,
}

/// About how many bytes the literal patterns of one program may take. Others are compiled in every
/// run that needs them, at a cost.
const PATTERN_ROOM: usize = 16 << 20;

/// About how many bytes one expression in a program takes.
const EXPRESSION_SIZE: usize = 160;

/// Longer than any hand-written expression.
const MAX_LENGTH: usize = 100_000;

/// Parses an expression of the language itself.
pub fn parse(text: &str) -> Result<Expression, CompileError> {
    parse_as(text, Dialect::Standard)
}

/// Parses an expression.
pub fn parse_as(text: &str, dialect: Dialect) -> Result<Expression, CompileError> {
    let source: Vec<char> = text.chars().collect();
    if source.len() > MAX_LENGTH {
        return Err(CompileError(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {}, limit {MAX_LENGTH}",
            source.len()
        )));
    }
    match parse::parse(&source, dialect == Dialect::Kubernetes) {
        Ok(root) => Ok(Expression { source, root, dialect }),
        Err(problems) => Err(CompileError(report::tell(&source, problems))),
    }
}

impl Expression {
    /// Checks the types, given the names of variables. Variables are JSON of any type.
    pub fn check(self, variables: &[&str]) -> Result<Program, CompileError> {
        let variables: Vec<_> = variables.iter().map(|name| (*name, Type::Any)).collect();
        self.check_with(&variables)
    }

    /// Whether a variable is used.
    pub fn uses(&self, variable: &str) -> bool {
        let mut used = false;
        self.root.visit(&mut |expression| {
            used |= matches!(&expression.kind, ast::Kind::Name(name)
                if name.strip_prefix('.').unwrap_or(name) == variable);
        });
        used
    }

    /// Checks the types, given variables and their types.
    pub fn check_with(self, variables: &[(&str, Type)]) -> Result<Program, CompileError> {
        let Self { source, mut root, dialect } = self;
        let (result, notes) = check::check(&mut root, variables, dialect == Dialect::Kubernetes)
            .map_err(|problems| CompileError(report::tell(&source, problems)))?;
        let mut patterns: BTreeMap<String, GoRegex> = BTreeMap::new();
        let (mut size, mut expressions) = (0, 0);
        root.visit(&mut |expression| {
            expressions += 1;
            if let Some(pattern) = expression.literal_pattern()
                && !patterns.contains_key(pattern)
                && let Ok(regex) = GoRegex::new(pattern)
                && size + regex.size() <= PATTERN_ROOM
            {
                size += regex.size();
                patterns.insert(pattern.to_owned(), regex);
            }
        });
        size += expressions * EXPRESSION_SIZE + source.len();
        Ok(Program { root, result, notes, patterns, size })
    }
}

impl Program {
    /// The type of the result, as far as it is known before the program runs.
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// The most that a run can cost by Kubernetes' count, for variables of the given sizes. Only for
    /// programs that were checked for Kubernetes.
    pub fn most_expensive(&self, variables: &Sizes) -> u64 {
        estimate::most(&self.root, &self.notes, variables)
    }

    /// The reason why a literal pattern, or a literal in a conversion, is not one, if there is.
    pub fn literal_fault(&self) -> Option<String> {
        let mut fault = None;
        self.root.visit(&mut |expression| {
            if fault.is_none() {
                fault = charges::literal_fault(expression);
            }
        });
        fault
    }

    /// About how many bytes of memory the program takes once its patterns are compiled.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Runs the program with the variables that it was checked with. It may cost [`PER_RUN`].
    pub fn evaluate<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
    ) -> Result<Value<'a>, EvaluateError> {
        self.evaluate_within(variables, &mut Cost::new(PER_RUN, &|| true))
    }

    /// Runs the program as long as it does not cost more than it may.
    pub fn evaluate_within<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
        cost: &mut Cost<'_>,
    ) -> Result<Value<'a>, EvaluateError> {
        let outcome = eval::run(&self.root, variables, &self.patterns, cost);
        match cost.stop() {
            None => outcome.map_err(EvaluateError::Failed),
            Some(cost::Stop::Cost) => Err(EvaluateError::CostExceeded),
            Some(cost::Stop::Interrupted) => Err(EvaluateError::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests;
