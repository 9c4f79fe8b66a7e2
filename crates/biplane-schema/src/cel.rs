//! The Common Expression Language: [`parse()`] an expression, [`Expression::check`] its types,
//! [`Program::evaluate`] it.
//!
//! A program is type-checked before it runs. Error messages are those of the Go implementation,
//! because users search for them. Only the first syntax error is reported, not those that follow
//! from it.

mod ast;
mod check;
mod escapes;
mod eval;
mod functions;
mod lex;
mod outcome;
mod parse;
mod report;
mod types;
mod value;

use std::collections::BTreeMap;

use biplane_go::regex::GoRegex;

pub use types::Type;
pub use value::Value;

/// The reasons why an expression does not compile: every problem with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(String);

/// The reason why a program failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluateError(String);

/// An expression that has been parsed but not checked.
#[derive(Debug)]
pub struct Expression {
    source: Vec<char>,
    root: ast::Expr,
}

/// A checked program. It can run any number of times.
#[derive(Debug)]
pub struct Program {
    root: ast::Expr,
    result: Type,
    /// The compiled literal patterns.
    patterns: BTreeMap<String, GoRegex>,
}

/// Longer than any hand-written expression.
const MAX_LENGTH: usize = 100_000;

/// Parses an expression.
pub fn parse(text: &str) -> Result<Expression, CompileError> {
    let source: Vec<char> = text.chars().collect();
    if source.len() > MAX_LENGTH {
        return Err(CompileError(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {}, limit {MAX_LENGTH}",
            source.len()
        )));
    }
    match parse::parse(&source) {
        Ok(root) => Ok(Expression { source, root }),
        Err(problems) => Err(CompileError(report::tell(&source, problems))),
    }
}

impl Expression {
    /// Checks the types, given the names of variables. Variables are JSON of any type.
    pub fn check(self, variables: &[&str]) -> Result<Program, CompileError> {
        let Self { source, mut root } = self;
        let result = check::check(&mut root, variables)
            .map_err(|problems| CompileError(report::tell(&source, problems)))?;
        let mut patterns = BTreeMap::new();
        root.visit(&mut |expression| {
            if let Some(pattern) = expression.literal_pattern()
                && let Ok(regex) = GoRegex::new(pattern)
            {
                patterns.insert(pattern.to_owned(), regex);
            }
        });
        Ok(Program { root, result, patterns })
    }
}

impl Program {
    /// The type of the result, as far as it is known before the program runs.
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// Runs the program with the variables that it was checked with.
    pub fn evaluate<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
    ) -> Result<Value<'a>, EvaluateError> {
        eval::run(&self.root, variables, &self.patterns).map_err(EvaluateError)
    }
}

#[cfg(test)]
mod tests;
