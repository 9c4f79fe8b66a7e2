//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use biplane_go::regex::GoRegex;

use super::ast::{Expr, Kind, Loop, RESULT};
use super::cost::Cost;
use super::functions::{self, Patterns};
use super::outcome::{Outcome, index, no_such_overload};
use super::value::{Entries, Value};

/// The value of the expression.
pub(super) fn run<'a>(
    expression: &'a Expr,
    variables: &[(&'a str, Value<'a>)],
    patterns: &BTreeMap<String, GoRegex>,
    cost: &mut Cost<'_>,
) -> Outcome<'a> {
    let patterns = Patterns::new(patterns);
    Runner { patterns, cost, scope: variables.to_vec() }.eval(expression)
}

/// What `map` and `filter` add to their list.
struct Gathered<'a> {
    test: Option<&'a Expr>,
    item: &'a Expr,
}

impl<'a> Gathered<'a> {
    /// Recognizes the expansion of the two macros.
    fn by(parts: &'a Loop) -> Option<Self> {
        match &parts.step.kind {
            Kind::Call { function, args, .. } if function == "_?_:_" => match args.as_slice() {
                [test, then, _] => Some(Self { test: Some(test), item: added(then)? }),
                _ => None,
            },
            _ => Some(Self { test: None, item: added(&parts.step)? }),
        }
    }
}

/// The item in `@result + [item]`.
fn added(step: &Expr) -> Option<&Expr> {
    let Kind::Call { function, args, .. } = &step.kind else { return None };
    let [Expr { kind: Kind::Name(result), .. }, Expr { kind: Kind::List(items), .. }] =
        args.as_slice()
    else {
        return None;
    };
    let [item] = items.as_slice() else { return None };
    (function == "_+_" && result == RESULT).then_some(item)
}

struct Runner<'a, 'c, 'd> {
    patterns: Patterns<'c>,
    cost: &'c mut Cost<'d>,
    /// Variables by name, the innermost last.
    scope: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Runner<'a, '_, '_> {
    fn eval(&mut self, expression: &'a Expr) -> Outcome<'a> {
        self.cost.spend(1)?;
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
                if *test && !operand.is_list() {
                    return Ok(Value::Bool(operand.get(&key).is_some()));
                }
                self.read(index(&operand, &key)?)
            }
            Kind::Call { function, target, args } => self.call(function, target.as_deref(), args),
            Kind::List(items) => {
                let items: Result<_, _> = items.iter().map(|item| self.eval(item)).collect();
                Ok(Value::List(Rc::new(items?)))
            }
            Kind::Map(pairs) => {
                let mut entries = Entries::default();
                for (key, value) in pairs {
                    let (key, value) = (self.eval(key)?, self.eval(value)?);
                    entries.set(key, value);
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
                let value = functions::call(function, &values, &mut self.patterns, self.cost)?;
                self.read(value)
            }
        }
    }

    /// A value that was read from another one. Strings are copied.
    fn read(&mut self, value: Value<'a>) -> Outcome<'a> {
        if let Value::Text(text) = &value {
            self.cost.spend_text(text.len())?;
        }
        Ok(value)
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
        let range = match range.keys() {
            Some(keys) => {
                self.cost.spend(keys.len() as u64)?;
                Value::List(Rc::new(keys))
            }
            None if range.is_list() => range,
            None => return Err(format!("got '{}', expected iterable type", range.go_name())),
        };
        let items = (0..).map_while(|place| range.item(place));
        if let Some(gathered) = Gathered::by(parts) {
            return self.gather(parts, &gathered, items);
        }
        let mut result = self.eval(&parts.start);
        for variable in items {
            self.cost.spend(1)?;
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

    /// Makes a list item by item, without copying what is already there.
    fn gather(
        &mut self,
        parts: &'a Loop,
        gathered: &Gathered<'a>,
        items: impl Iterator<Item = Value<'a>>,
    ) -> Outcome<'a> {
        let depth = self.scope.len();
        let mut list = Vec::new();
        for variable in items {
            let variable = self.read(variable)?;
            self.scope.push((parts.variable.as_str(), variable));
            let item = self.gather_one(gathered);
            self.scope.truncate(depth);
            list.extend(item?);
        }
        Ok(Value::List(Rc::new(list)))
    }

    fn gather_one(&mut self, gathered: &Gathered<'a>) -> Result<Option<Value<'a>>, String> {
        match gathered.test.map(|test| self.eval(test)).transpose()? {
            None | Some(Value::Bool(true)) => self.eval(gathered.item).map(Some),
            Some(Value::Bool(false)) => Ok(None),
            Some(_) => no_such_overload(),
        }
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
