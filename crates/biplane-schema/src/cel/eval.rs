//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use biplane_go::regex::GoRegex;

use super::ast::{Bind, Expr, IF_PRESENT, Kind, Loop, RESULT};
use super::charges;
use super::cost::Cost;
use super::functions::{self, Patterns};
use super::macros::{AGAIN, TARGET};
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
    Runner { patterns, cost, scope: variables.to_vec(), tested: Vec::new() }.eval(expression)
}

/// Whether an expression reads a variable, or something inside of a value.
fn is_attribute(expression: &Expr) -> bool {
    match &expression.kind {
        Kind::Name(_) | Kind::Field { .. } => true,
        Kind::Call { function, target: None, .. } => {
            matches!(function.as_str(), "_[_]" | "_[?_]" | "_?._")
        }
        _ => false,
    }
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

/// What a loop sees in one turn.
struct Turn<'a> {
    first: Value<'a>,
    second: Option<Value<'a>>,
}

/// What `transformMap` and `transformMapEntry` add to their map.
struct Inserted<'a> {
    test: Option<&'a Expr>,
    added: &'a [Expr],
}

impl<'a> Inserted<'a> {
    /// Recognizes the expansion of the two macros.
    fn by(parts: &'a Loop) -> Option<Self> {
        let Kind::Call { function, args, .. } = &parts.step.kind else { return None };
        match (function.as_str(), args.as_slice()) {
            ("cel.@mapInsert", [_, added @ ..]) => Some(Self { test: None, added }),
            ("_?_:_", [test, then, _]) => match &then.kind {
                Kind::Call { function, args, .. } if function == "cel.@mapInsert" => {
                    Some(Self { test: Some(test), added: args.get(1..)? })
                }
                _ => None,
            },
            _ => None,
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
    /// What it cost to evaluate the optional values that macros test.
    tested: Vec<u64>,
}

impl<'a> Runner<'a, '_, '_> {
    fn eval(&mut self, expression: &'a Expr) -> Outcome<'a> {
        self.cost.spend(1)?;
        match &expression.kind {
            Kind::Literal(literal) => Ok(literal.into()),
            Kind::Name(_) | Kind::Field { .. } => {
                let test = matches!(&expression.kind, Kind::Field { test: true, .. });
                let value = self.attribute(expression);
                self.cost.charge(u64::from(!test))?;
                value
            }
            Kind::Call { function, target, args } => {
                if is_attribute(expression) {
                    let value = self.attribute(expression);
                    self.cost.charge(1)?;
                    return value;
                }
                self.call(function, target.as_deref(), args)
            }
            Kind::List(items) => {
                let list = self.list(items);
                // It counts even if an item fails.
                if !expression.is_constant() {
                    self.cost.charge(charges::LIST)?;
                }
                list
            }
            Kind::Map(pairs) => {
                let map = self.map(pairs);
                if !expression.is_constant() {
                    self.cost.charge(charges::MAP)?;
                }
                map
            }
            Kind::Message(_) => no_such_overload(),
            Kind::Loop(parts) => self.repeat(parts),
            Kind::Bind(parts) => self.bind(parts),
        }
    }

    fn list(&mut self, items: &'a [Expr]) -> Outcome<'a> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            list.extend(self.entry(item)?);
        }
        Ok(Value::List(Rc::new(list)))
    }

    fn map(&mut self, pairs: &'a [(Expr, Expr)]) -> Outcome<'a> {
        let mut entries = Entries::default();
        for (key, value) in pairs {
            let key = self.eval(key)?;
            if let Some(value) = self.entry(value)? {
                entries.set(key, value);
            }
        }
        Ok(Value::Map(Rc::new(entries)))
    }

    /// An entry of a literal. `None` if it is left out.
    fn entry(&mut self, entry: &'a Expr) -> Result<Option<Value<'a>>, String> {
        if let Kind::Call { function, args, .. } = &entry.kind
            && function == IF_PRESENT
            && let [inner] = args.as_slice()
        {
            return match self.eval(inner)? {
                Value::Optional(held) => Ok(held.map(|held| held.as_ref().clone())),
                _ => no_such_overload(),
            };
        }
        self.eval(entry).map(Some)
    }

    fn bind(&mut self, parts: &'a Bind) -> Outcome<'a> {
        let before = self.cost.charged();
        let value = self.eval(&parts.value)?;
        let tested = parts.variable.starts_with(TARGET);
        if tested {
            self.tested.push(self.cost.charged() - before);
        }
        let depth = self.scope.len();
        self.scope.push((parts.variable.as_str(), value));
        let outcome = self.eval(&parts.body);
        self.scope.truncate(depth);
        if tested {
            self.tested.pop();
        }
        outcome
    }

    /// The value of a variable or inside of a value. Kubernetes counts a unit for each step, and
    /// the caller counts one for the whole.
    fn attribute(&mut self, expression: &'a Expr) -> Outcome<'a> {
        match &expression.kind {
            Kind::Name(name) => self.variable(name),
            Kind::Field { operand, field, test } => {
                let operand = self.operand(operand)?;
                let key = Value::Text(field.as_str().into());
                if let Value::Optional(held) = operand {
                    let present = held.and_then(|held| held.get(&key));
                    self.cost.charge(u64::from(present.is_some() || *test))?;
                    if *test {
                        return Ok(Value::Bool(present.is_some()));
                    }
                    return Ok(Value::Optional(present.map(Rc::new)));
                }
                self.cost.charge(1)?;
                if *test && !operand.is_list() {
                    return Ok(Value::Bool(operand.get(&key).is_some()));
                }
                self.read(index(&operand, &key)?)
            }
            Kind::Call { function, args, .. } => {
                let [operand, key] = args.as_slice() else { return no_such_overload() };
                let operand = self.operand(operand)?;
                let key = self.operand(key)?;
                match (function.as_str(), operand) {
                    ("_[_]", Value::Optional(held)) => self.optional(held.as_deref(), &key),
                    ("_[_]", operand) => {
                        self.cost.charge(1)?;
                        self.read(index(&operand, &key)?)
                    }
                    (_, Value::Optional(held)) => self.optional(held.as_deref(), &key),
                    (_, operand) => self.optional(Some(&operand), &key),
                }
            }
            _ => self.eval(expression),
        }
    }

    /// Part of an attribute.
    fn operand(&mut self, expression: &'a Expr) -> Outcome<'a> {
        if is_attribute(expression) { self.attribute(expression) } else { self.eval(expression) }
    }

    fn variable(&mut self, name: &'a str) -> Outcome<'a> {
        let again = name.strip_prefix(AGAIN);
        if again.is_some() {
            let units = self.tested.last().copied().unwrap_or_default();
            self.cost.charge(units.saturating_sub(1))?;
        } else if name.starts_with(TARGET) {
            self.cost.refund(1);
        }
        let known = |known: &str| match again {
            Some(place) => known.strip_prefix(TARGET) == Some(place),
            None => known == name,
        };
        match self.scope.iter().rev().find(|(name, _)| known(name)) {
            Some((_, Value::Failed(reason))) => Err(reason.to_string()),
            Some((_, value)) => Ok(value.clone()),
            None => Err(format!("no such attribute(s): {name}")),
        }
    }

    /// `operand[?key]`.
    fn optional(&mut self, operand: Option<&Value<'a>>, key: &Value<'a>) -> Outcome<'a> {
        let Some(operand) = operand else { return Ok(Value::Optional(None)) };
        let found = if operand.is_list() { index(operand, key).ok() } else { operand.get(key) };
        match found {
            Some(Value::Failed(reason)) => Err(reason.to_string()),
            Some(value) => {
                self.cost.charge(1)?;
                Ok(Value::Optional(Some(Rc::new(value))))
            }
            None => Ok(Value::Optional(None)),
        }
    }

    fn call(&mut self, function: &str, target: Option<&'a Expr>, args: &'a [Expr]) -> Outcome<'a> {
        match (function, target, args) {
            ("_&&_", None, [left, right]) => self.logic(left, right, false),
            ("_||_", None, [left, right]) => self.logic(left, right, true),
            ("_?_:_", None, [test, yes, no]) => match self.eval(test)? {
                Value::Bool(true) => self.operand(yes),
                Value::Bool(false) => self.operand(no),
                _ => no_such_overload(),
            },
            ("@not_strictly_false", None, [test]) => {
                let verdict = self.eval(test);
                self.cost.charge(1)?;
                Ok(Value::Bool(!matches!(verdict, Ok(Value::Bool(false)))))
            }
            ("or" | "orValue", Some(first), [second]) => match self.eval(first)? {
                Value::Optional(Some(held)) => Ok(if function == "or" {
                    Value::Optional(Some(held))
                } else {
                    held.as_ref().clone()
                }),
                Value::Optional(None) => self.eval(second),
                _ => no_such_overload(),
            },
            _ => {
                let values = self.arguments(function, target, args)?;
                let outcome = functions::call(function, &values, &mut self.patterns, self.cost);
                if !charges::is_folded(function, args) {
                    let result = outcome.as_ref().ok();
                    self.cost.charge(charges::of_call(function, &values, result))?;
                }
                self.read(outcome?)
            }
        }
    }

    /// The values of the arguments. Kubernetes counts the calls around one that failed too. Of two
    /// arguments, Go evaluates both; of more, none after the first that fails.
    fn arguments(
        &mut self,
        function: &str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) -> Result<Vec<Value<'a>>, String> {
        let count = args.len() + usize::from(target.is_some());
        let mut values = Vec::with_capacity(count);
        let mut failed = None;
        for arg in target.into_iter().chain(args) {
            match self.eval(arg) {
                Ok(value) => values.push(value),
                Err(reason) => {
                    values.push(Value::Failed(reason.as_str().into()));
                    failed.get_or_insert(reason);
                    if count > 2 || self.cost.stop().is_some() {
                        break;
                    }
                }
            }
        }
        let Some(reason) = failed else { return Ok(values) };
        if values.len() == count {
            self.cost.charge(charges::of_call(function, &values, None))?;
        }
        Err(reason)
    }

    /// A value that was read from another one. Strings are copied.
    fn read(&mut self, value: Value<'a>) -> Outcome<'a> {
        match &value {
            Value::Text(text) => self.cost.spend_text(text.len())?,
            Value::Failed(reason) => return Err(reason.to_string()),
            _ => {}
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
        let keys = range.keys();
        let items: Vec<Turn<'a>> = if let Some(keys) = keys {
            self.cost.spend(keys.len() as u64)?;
            let turn = |key: Value<'a>| {
                let second = parts.second.as_ref().and_then(|_| range.get(&key));
                Turn { first: key, second }
            };
            keys.into_iter().map(turn).collect()
        } else if range.is_list() {
            let turn = |(place, item)| match &parts.second {
                Some(_) => {
                    let place = Value::Int(i64::try_from(place).unwrap_or(i64::MAX));
                    Turn { first: place, second: Some(item) }
                }
                None => Turn { first: item, second: None },
            };
            range.items().into_iter().flatten().enumerate().map(turn).collect()
        } else {
            return Err(format!("got '{}', expected iterable type", range.go_name()));
        };
        if let Some(gathered) = Gathered::by(parts) {
            return self.gather(parts, &gathered, items);
        }
        if let Some(inserted) = Inserted::by(parts) {
            return self.insert(parts, &inserted, items);
        }
        let mut result = self.eval(&parts.start);
        for turn in items {
            self.cost.spend(1)?;
            let (goes_on, next) = self.round(parts, turn, result);
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

    fn enter(&mut self, parts: &'a Loop, turn: Turn<'a>) {
        self.scope.push((parts.variable.as_str(), turn.first));
        if let (Some(name), Some(value)) = (&parts.second, turn.second) {
            self.scope.push((name.as_str(), value));
        }
    }

    /// Makes a list item by item, without copying what is already there.
    fn gather(
        &mut self,
        parts: &'a Loop,
        gathered: &Gathered<'a>,
        items: Vec<Turn<'a>>,
    ) -> Outcome<'a> {
        let depth = self.scope.len();
        let mut list = Vec::new();
        for mut turn in items {
            self.cost.spend(1)?;
            turn.first = self.read(turn.first)?;
            self.enter(parts, turn);
            let item = self.gather_one(gathered);
            self.scope.truncate(depth);
            match item {
                Ok(item) => list.extend(item),
                Err(reason) => {
                    self.cost.charge(1)?;
                    return Err(reason);
                }
            }
        }
        self.cost.charge(1)?;
        Ok(Value::List(Rc::new(list)))
    }

    /// Makes a map entry by entry, without copying what is already there.
    fn insert(
        &mut self,
        parts: &'a Loop,
        inserted: &Inserted<'a>,
        items: Vec<Turn<'a>>,
    ) -> Outcome<'a> {
        let depth = self.scope.len();
        let mut entries = Entries::default();
        for turn in items {
            self.cost.spend(1)?;
            self.enter(parts, turn);
            let added = self.insert_one(inserted);
            self.scope.truncate(depth);
            let outcome = match added {
                Ok(None) => continue,
                Ok(Some(added)) => functions::library::insert(entries, &added, self.cost),
                Err(reason) => Err(reason),
            };
            match outcome {
                Ok(more) => entries = more,
                Err(reason) => {
                    self.cost.charge(1)?;
                    return Err(reason);
                }
            }
        }
        self.cost.charge(1)?;
        Ok(Value::Map(Rc::new(entries)))
    }

    fn insert_one(&mut self, inserted: &Inserted<'a>) -> Result<Option<Vec<Value<'a>>>, String> {
        match inserted.test.map(|test| self.eval(test)).transpose()? {
            None | Some(Value::Bool(true)) => {
                let added: Result<Vec<_>, _> =
                    inserted.added.iter().map(|part| self.eval(part)).collect();
                self.cost.charge(2)?;
                added.map(Some)
            }
            Some(Value::Bool(false)) => Ok(None),
            Some(_) => no_such_overload(),
        }
    }

    fn gather_one(&mut self, gathered: &Gathered<'a>) -> Result<Option<Value<'a>>, String> {
        match gathered.test.map(|test| self.eval(test)).transpose()? {
            None | Some(Value::Bool(true)) => {
                let item = self.eval(gathered.item)?;
                let list = if gathered.item.is_constant() { 0 } else { charges::LIST };
                self.cost.charge(2 + list)?;
                Ok(Some(item))
            }
            Some(Value::Bool(false)) => Ok(None),
            Some(_) => no_such_overload(),
        }
    }

    /// One iteration: whether there was one, and the accumulator after it.
    fn round(
        &mut self,
        parts: &'a Loop,
        turn: Turn<'a>,
        result: Outcome<'a>,
    ) -> (bool, Outcome<'a>) {
        let depth = self.scope.len();
        let so_far = match result {
            Ok(value) => value,
            Err(error) => return self.after_failure(parts, turn, error),
        };
        self.scope.push((RESULT, so_far.clone()));
        self.enter(parts, turn);
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
        turn: Turn<'a>,
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
        if self.cost.charge(3).is_err() {
            return (false, Err(error));
        }
        self.enter(parts, turn);
        let verdict = self.eval(test);
        self.scope.truncate(depth);
        match verdict {
            Ok(Value::Bool(bool)) if bool == settles => (true, Ok(Value::Bool(settles))),
            _ => (true, Err(error)),
        }
    }
}
