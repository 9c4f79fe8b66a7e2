//! The Common Expression Language: [`parse()`] a text, [`Expression::check`] its types,
//! [`Program::evaluate`] it.
//!
//! A program is checked before it runs: types that cannot fit are refused. Texts of errors are
//! those of the Go implementation, whose users search for them; syntax errors are told once,
//! without the guesses that follow the first.

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

/// Why a text is not a program: every problem with its place, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(String);

/// Why a program did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EvaluateError(String);

/// What has been parsed, and not yet been checked.
#[derive(Debug)]
pub struct Expression {
    source: Vec<char>,
    root: ast::Expr,
}

/// What has been checked and can be run any number of times.
#[derive(Debug)]
pub struct Program {
    root: ast::Expr,
    result: Type,
    /// What the literal patterns compile to.
    patterns: BTreeMap<String, GoRegex>,
}

/// Longer than any expression that a person would write.
const MAX_LENGTH: usize = 100_000;

/// Reads an expression.
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
    /// Checks that the types fit, given the names of variables. Variables are JSON of any type.
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
    /// The type of what the program evaluates to, as far as that is known before it runs.
    pub fn result(&self) -> &Type {
        &self.result
    }

    /// Runs the program. Variables are those that it was checked with.
    pub fn evaluate<'a>(
        &'a self,
        variables: &[(&'a str, Value<'a>)],
    ) -> Result<Value<'a>, EvaluateError> {
        eval::run(&self.root, variables, &self.patterns).map_err(EvaluateError)
    }
}

#[cfg(test)]
mod tests;
