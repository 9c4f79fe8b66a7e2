//! The Common Expression Language, as far as rules over one JSON object need it.
//!
//! A rule is checked before it runs: types that cannot fit are refused, and only what is certain to
//! be a boolean may decide. Texts of errors are those of the Go implementation, whose users search
//! for them; syntax errors are told once, without the guesses that follow the first.

mod ast;
mod check;
mod escapes;
mod eval;
mod functions;
mod lex;

mod parse;
mod report;
mod types;
mod value;

use std::collections::BTreeMap;

use biplane_model::Object;
use biplane_model::goregex::GoRegex;

/// A rule that has been checked and can be run any number of times.
#[derive(Debug)]
pub(super) struct Program {
    expression: ast::Expr,
    /// What the rule's literal patterns compile to.
    patterns: BTreeMap<String, GoRegex>,
}

/// Why a rule cannot be run, or did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RuleError {
    #[error("failed to compile query: {0}")]
    Compile(String),
    #[error("celQuery does not return a bool type")]
    NotBool,
    #[error("failed to eval the program: {0}")]
    Run(String),
}

/// More than any rule that a person would write.
const MAX_LENGTH: usize = 100_000;

impl Program {
    /// Reads and checks a rule.
    pub(super) fn compile(rule: &str) -> Result<Self, RuleError> {
        let source: Vec<char> = rule.chars().collect();
        if source.len() > MAX_LENGTH {
            return Err(RuleError::Compile(format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {}, limit {MAX_LENGTH}",
                source.len()
            )));
        }
        let told = |problems| RuleError::Compile(report::tell(&source, problems));
        let mut expression = parse::parse(&source).map_err(told)?;
        let kind = check::check(&mut expression).map_err(told)?;
        if kind != types::Type::Bool {
            return Err(RuleError::NotBool);
        }
        let mut patterns = BTreeMap::new();
        expression.visit(&mut |expression| {
            if let Some(pattern) = expression.literal_pattern()
                && let Ok(regex) = GoRegex::new(pattern)
            {
                patterns.insert(pattern.to_owned(), regex);
            }
        });
        Ok(Self { expression, patterns })
    }

    /// What the rule says about an object.
    pub(super) fn run(&self, object: &Object) -> Result<bool, RuleError> {
        eval::run(&self.expression, object, &self.patterns).map_err(RuleError::Run)
    }
}

#[cfg(test)]
mod tests;
