//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use biplane_go::regex::GoRegex;

use super::ast::{Expr, Kind, Loop, RESULT};
use super::functions;
use super::outcome::{Outcome, index, no_such_overload};
use super::value::Value;

/// The value of the expression.
pub(super) fn run<'a>(
    expression: &'a Expr,
    variables: &[(&'a str, Value<'a>)],
    patterns: &'a BTreeMap<String, GoRegex>,
) -> Outcome<'a> {
    Runner { patterns, scope: variables.to_vec() }.eval(expression)
}

struct Runner<'a> {
    patterns: &'a BTreeMap<String, GoRegex>,
    /// Variables by name, the innermost last.
    scope: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Runner<'a> {
    fn eval(&mut self, expression: &'a Expr) -> Outcome<'a> {
        match &expression.kind {
            Kind::Literal(literal) => Ok(literal.into()),
            Kind::Name(name) => {
                let local = self.scope.iter().rev().find(|(known, _)| known == name);
                match local {
                    Some((_, value)) => Ok(value.clone()),
                    None => Err(format!("no such attribute(s): {name}")),
                }
            }
            Kind::Field { operand, field, test } => {
                let operand = self.eval(operand)?;
                let key = Value::Text(field.as_str().into());
                if *test && operand.items().is_none() {
                    return Ok(Value::Bool(operand.get(&key).is_some()));
                }
                index(&operand, &key)
            }
            Kind::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| self.eval(item)).collect();
                Ok(Value::List(Rc::new(items?)))
            }
            Kind::Map(pairs) => {
                let mut entries: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    let (key, value) = (self.eval(key)?, self.eval(value)?);
                    // The last of equal keys wins.
                    match entries.iter_mut().find(|(known, _)| known.equals(&key)) {
                        Some((_, known)) => *known = value,
                        None => entries.push((key, value)),
                    }
                }
                Ok(Value::Map(Rc::new(entries)))
            }
            Kind::Message(_) => no_such_overload(),
            Kind::Loop(parts) => self.repeat(parts),
        }
    }

    fn call(&mut self, function: &str, target: Option<&'a Expr>, args: &'a [Expr]) -> Outcome<'a> {
        match (function, target, args) {
            ("_&&_", None, [left, right]) => self.logic(left, right, false),
            ("_||_", None, [left, right]) => self.logic(left, right, true),
            ("_?_:_", None, [test, yes, no]) => match self.eval(test)? {
                Value::Bool(true) => self.eval(yes),
                Value::Bool(false) => self.eval(no),
                _ => no_such_overload(),
            },
            ("@not_strictly_false", None, [test]) => {
                Ok(Value::Bool(!matches!(self.eval(test), Ok(Value::Bool(false)))))
            }
            _ => {
                let all = target.into_iter().chain(args);
                let values: Vec<Value<'a>> =
                    all.map(|arg| self.eval(arg)).collect::<Result<_, _>>()?;
                functions::call(function, &values, self.patterns)
            }
        }
    }

    /// Either side may decide the result, even if the other one fails.
    fn logic(&mut self, left: &'a Expr, right: &'a Expr, settles: bool) -> Outcome<'a> {
        let left = self.eval(left);
        if matches!(left, Ok(Value::Bool(bool)) if bool == settles) {
            return left;
        }
        let right = self.eval(right);
        match (left, right) {
            (_, Ok(Value::Bool(bool))) if bool == settles => Ok(Value::Bool(settles)),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!settles)),
            _ => no_such_overload(),
        }
    }

    fn repeat(&mut self, parts: &'a Loop) -> Outcome<'a> {
        let range = self.eval(&parts.range)?;
        let variables: Vec<Value<'a>> = if let Some(items) = range.items() {
            items.collect()
        } else if let Some(entries) = range.entries() {
            entries.map(|(key, _)| key).collect()
        } else {
            return Err(format!("got '{}', expected iterable type", range.go_name()));
        };
        let mut result = self.eval(&parts.start);
        for variable in variables {
            let (goes_on, next) = self.round(parts, variable, result);
            result = next;
            if !goes_on {
                break;
            }
        }
        // An error counts only if it is still there at the end.
        let depth = self.scope.len();
        self.scope.push((RESULT, result?));
        let outcome = self.eval(&parts.result);
        self.scope.truncate(depth);
        outcome
    }

    /// One iteration: whether there was one, and the accumulator after it.
    fn round(
        &mut self,
        parts: &'a Loop,
        variable: Value<'a>,
        result: Outcome<'a>,
    ) -> (bool, Outcome<'a>) {
        let depth = self.scope.len();
        let so_far = match result {
            Ok(value) => value,
            Err(error) => return self.after_failure(parts, variable, error),
        };
        self.scope.push((RESULT, so_far.clone()));
        self.scope.push((parts.variable.as_str(), variable));
        let goes_on = self.eval(&parts.condition);
        let outcome = match goes_on {
            Ok(Value::Bool(true)) => (true, self.eval(&parts.step)),
            _ => (false, Ok(so_far)),
        };
        self.scope.truncate(depth);
        outcome
    }

    /// After an iteration has failed, a later one can still decide `all` and `exists`.
    fn after_failure(
        &mut self,
        parts: &'a Loop,
        variable: Value<'a>,
        error: String,
    ) -> (bool, Outcome<'a>) {
        let Kind::Call { function, args, .. } = &parts.step.kind else {
            return (false, Err(error));
        };
        let settles = match function.as_str() {
            "_&&_" => false,
            "_||_" => true,
            _ => return (false, Err(error)),
        };
        let Some(test) = args.last() else { return (false, Err(error)) };
        let depth = self.scope.len();
        self.scope.push((parts.variable.as_str(), variable));
        let verdict = self.eval(test);
        self.scope.truncate(depth);
        match verdict {
            Ok(Value::Bool(bool)) if bool == settles => (true, Ok(Value::Bool(settles))),
            _ => (true, Err(error)),
        }
    }
}
