//! Estimates what a program can cost before it runs, as an API server does when a rule is stored.
//!
//! Every expression has a range of costs, and a range of sizes if its values have one. Sizes come
//! from the expression itself, or from the schema if the expression only reads data. [`calls`] has
//! the functions, and [`paths`] the ways from variables to data.

mod calls;
mod paths;

use std::collections::BTreeMap;

use super::ast::{Bind, Expr, IF_PRESENT, Kind, Literal, Loop, RESULT};
use super::charges::{LIST, MAP};
use super::check::{Notes, Overload};
use super::macros::{AGAIN, TARGET};
use super::sizes::Sizes;
use super::types::Type;
use paths::{Path, Paths};

/// The most that a run can cost. All variables have the same sizes.
pub(super) fn most(root: &Expr, notes: &Notes, sizes: &Sizes) -> u64 {
    Estimator::new(notes, sizes).cost(root).most
}

/// The least and the most of a cost or a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    const UNKNOWN: Self = Self { least: 0, most: u64::MAX };
    /// What nothing is part of yet.
    const NOTHING: Self = Self { least: u64::MAX, most: 0 };

    fn exactly(number: u64) -> Self {
        Self { least: number, most: number }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    /// A share of it, rounded up.
    fn scaled(self, factor: f64) -> Self {
        // A number that is too large becomes the largest one.
        let scale = |number: u64| (number as f64 * factor).ceil() as u64;
        Self { least: scale(self.least), most: scale(self.most) }
    }

    /// What includes both.
    fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// The sizes of keys and values, or of indexes and items.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    keys: Range,
    values: Range,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        let Self { is_list, keys, values } = self;
        Self { is_list, keys: keys.or(other.keys), values: values.or(other.values) }
    }
}

/// A variable of a loop or a macro.
#[derive(Clone, Copy, Debug)]
struct Local {
    path: Path,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// What is known about an argument.
#[derive(Clone, Debug)]
struct Node<'a> {
    path: Path,
    kind: &'a Type,
    expression: &'a Expr,
    size: Option<Range>,
}

impl Node<'_> {
    fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

struct Estimator<'a> {
    notes: &'a Notes,
    sizes: &'a Sizes,
    /// Variables of the enclosing loops, the innermost last.
    locals: Vec<(&'a str, Local)>,
    /// The expressions that stand in more than one place: see [`TARGET`].
    repeated: BTreeMap<&'a str, &'a Expr>,
    /// All paths, and those of expressions.
    paths: Paths<'a>,
    known_paths: BTreeMap<usize, Path>,
    known_sizes: BTreeMap<usize, Range>,
    known_entries: BTreeMap<usize, Entries>,
}

impl<'a> Estimator<'a> {
    fn new(notes: &'a Notes, sizes: &'a Sizes) -> Self {
        Self {
            notes,
            sizes,
            locals: Vec::new(),
            repeated: BTreeMap::new(),
            paths: Paths::default(),
            known_paths: BTreeMap::new(),
            known_sizes: BTreeMap::new(),
            known_entries: BTreeMap::new(),
        }
    }

    /// The expression that counts where ours has a name for something that Go writes out.
    fn written_out(&self, expression: &'a Expr) -> &'a Expr {
        match &expression.kind {
            Kind::Name(name) => {
                let place = name.strip_prefix(TARGET).or_else(|| name.strip_prefix(AGAIN));
                match place.and_then(|place| self.repeated.get(place)) {
                    Some(repeated) => self.written_out(repeated),
                    None => expression,
                }
            }
            Kind::Bind(parts) if parts.variable.starts_with(TARGET) => {
                self.written_out(&parts.body)
            }
            Kind::Call { function, args, .. } if function == IF_PRESENT => match args.as_slice() {
                [inner] => self.written_out(inner),
                _ => expression,
            },
            _ => expression,
        }
    }

    fn local(&self, name: &str) -> Option<Local> {
        self.locals.iter().rev().find(|(known, _)| *known == name).map(|(_, local)| *local)
    }

    fn kind(&self, expression: &'a Expr) -> &'a Type {
        self.notes.type_of(self.written_out(expression))
    }

    fn path(&self, expression: &'a Expr) -> Path {
        let expression = self.written_out(expression);
        if let Kind::Name(name) = &expression.kind
            && let Some(local) = self.local(name)
        {
            return local.path;
        }
        self.known_paths.get(&expression.id).copied().unwrap_or_default()
    }

    /// The path of a part of a value.
    fn path_into(&mut self, expression: &'a Expr, part: &'a str) -> Path {
        let path = self.path(expression);
        self.paths.append(path, part)
    }

    /// The size that the schema gives to a path. The name of the variable does not count.
    fn size_in_schema(&self, path: &[&str]) -> Option<Range> {
        let (_, steps) = path.split_first()?;
        let mut sizes = self.sizes;
        for (place, step) in steps.iter().enumerate() {
            sizes = match *step {
                ITEMS | VALUES => sizes.items.as_deref()?,
                // How long a key is is not known, and nothing is inside of it.
                KEYS => {
                    let last = place + 1 == steps.len();
                    return (sizes.has_keys && last).then(Range::default);
                }
                name => sizes.fields.get(name)?,
            };
        }
        Some(Range { least: 0, most: sizes.most })
    }

    fn size(&mut self, expression: &'a Expr) -> Option<Range> {
        let expression = self.written_out(expression);
        if let Some(size) = self.known_sizes.get(&expression.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expression) {
            return Some(Range::exactly(size));
        }
        if let Some(size) = self.size_in_schema(self.paths.steps(self.path(expression))) {
            self.known_sizes.insert(expression.id, size);
            return Some(size);
        }
        if is_scalar(self.kind(expression)) {
            return Some(Range::exactly(1));
        }
        match &expression.kind {
            Kind::Name(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn entries(&self, expression: &'a Expr) -> Option<Entries> {
        let expression = self.written_out(expression);
        if let Some(entries) = self.known_entries.get(&expression.id) {
            return Some(*entries);
        }
        match &expression.kind {
            Kind::Name(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn note(&mut self, expression: &Expr, size: Option<Range>, entries: Option<Entries>) {
        if let Some(size) = size {
            self.known_sizes.insert(expression.id, size);
        }
        if let Some(entries) = entries {
            self.known_entries.insert(expression.id, entries);
        }
    }

    fn node(&mut self, expression: &'a Expr) -> Node<'a> {
        let size = self.size(expression);
        let (path, kind) = (self.path(expression), self.kind(expression));
        Node { path, kind, expression: self.written_out(expression), size }
    }

    fn cost(&mut self, expression: &'a Expr) -> Range {
        if let Kind::Bind(parts) = &expression.kind
            && let Some(place) = parts.variable.strip_prefix(TARGET)
        {
            self.repeated.insert(place, &parts.value);
            return self.cost(&parts.body);
        }
        let expression = self.written_out(expression);
        match &expression.kind {
            // The name of a type is a variable in Go.
            Kind::Literal(Literal::Type(name)) => {
                let path = self.paths.variable(name);
                self.known_paths.insert(expression.id, path);
                Range::exactly(1)
            }
            Kind::Literal(_) | Kind::Message(_) => Range::default(),
            Kind::Name(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path,
                    None => self.paths.variable(name),
                };
                self.known_paths.insert(expression.id, path);
                Range::exactly(1)
            }
            Kind::Field { operand, field, test } => {
                let cost = self.cost(operand);
                if *test {
                    return cost;
                }
                let path = self.path_into(operand, field);
                self.known_paths.insert(expression.id, path);
                let counts = matches!(self.kind(operand), Type::Map(..) | Type::Object(_));
                cost.plus(Range::exactly(u64::from(counts)))
            }
            Kind::Call { function, target, args } => {
                self.call(expression, function, target.as_deref(), args)
            }
            Kind::List(items) => {
                let mut cost = Range::exactly(LIST);
                let mut values = if items.is_empty() { Range::default() } else { Range::NOTHING };
                for item in items {
                    cost = cost.plus(self.cost(item));
                    values = values.or(self.size(item).unwrap_or(Range::UNKNOWN));
                }
                let entries = Entries { is_list: true, keys: Range::exactly(1), values };
                self.note(expression, None, Some(entries));
                cost
            }
            Kind::Map(pairs) => {
                let mut cost = Range::exactly(MAP);
                let start = if pairs.is_empty() { Range::default() } else { Range::NOTHING };
                let mut entries = Entries { is_list: false, keys: start, values: start };
                for (key, value) in pairs {
                    cost = cost.plus(self.cost(key)).plus(self.cost(value));
                    let size = |size: Option<Range>| size.unwrap_or(Range::UNKNOWN);
                    entries.keys = entries.keys.or(size(self.size(key)));
                    entries.values = entries.values.or(size(self.size(value)));
                }
                self.note(expression, None, Some(entries));
                cost
            }
            Kind::Loop(parts) => self.repeat(expression, parts),
            Kind::Bind(parts) => self.bind(expression, parts),
        }
    }

    fn enter(&mut self, name: &'a str, path: Path, size: Option<Range>) {
        self.locals.push((name, Local { path, size, entries: None }));
    }

    /// The variables of a loop.
    fn enter_loop(&mut self, parts: &'a Loop) {
        let entries = self.entries(&parts.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.kind(&parts.range), Type::List(_)),
        };
        let (keys, values) = (entries.map(|e| e.keys), entries.map(|e| e.values));
        let (key, value) = if is_list { (INDICES, ITEMS) } else { (KEYS, VALUES) };
        if let Some(second) = &parts.second {
            let path = self.path_into(&parts.range, key);
            self.enter(&parts.variable, path, keys);
            let path = self.path_into(&parts.range, value);
            self.enter(second, path, values);
        } else {
            let (part, size) = if is_list { (value, values) } else { (key, keys) };
            let path = self.path_into(&parts.range, part);
            self.enter(&parts.variable, path, size);
        }
    }

    fn repeat(&mut self, expression: &'a Expr, parts: &'a Loop) -> Range {
        let mut cost = self.cost(&parts.range).plus(self.cost(&parts.start));
        let depth = self.locals.len();
        let local = Local {
            path: self.path(&parts.start),
            size: self.size(&parts.start),
            entries: self.entries(&parts.start),
        };
        self.locals.push((RESULT, local));
        let with_result = self.locals.len();
        self.enter_loop(parts);
        let turn = self.cost(&parts.condition).plus(self.cost(&parts.step));
        self.locals.truncate(with_result);
        cost = cost.plus(self.cost(&parts.result));
        self.locals.truncate(depth);
        let turns = self.size(&parts.range).unwrap_or(Range::UNKNOWN);
        match &parts.start.kind {
            Kind::Literal(_) => {
                let size = self.size(&parts.start);
                self.note(expression, size, None);
            }
            Kind::List(_) | Kind::Map(_) => {
                let entries = self.entries(&parts.step);
                self.note(expression, Some(turns), entries);
            }
            _ => {}
        }
        cost.plus(turns.times(turn))
    }

    /// Go makes an empty list for a value under a name.
    fn bind(&mut self, expression: &'a Expr, parts: &'a Bind) -> Range {
        let cost = Range::exactly(LIST).plus(self.cost(&parts.value));
        let local = Local {
            path: self.path(&parts.value),
            size: self.size(&parts.value),
            entries: self.entries(&parts.value),
        };
        self.locals.push((&parts.variable, local));
        let cost = cost.plus(self.cost(&parts.body));
        self.locals.pop();
        let (size, entries) = (self.size(&parts.body), self.entries(&parts.body));
        self.note(expression, size, entries);
        cost
    }

    fn call(
        &mut self,
        expression: &'a Expr,
        function: &'a str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) -> Range {
        if let ("dyn", [inner]) = (function, args) {
            let cost = self.cost(inner).plus(Range::exactly(1));
            let (size, entries) = (self.size(inner), self.entries(inner));
            self.note(expression, size, entries);
            return cost;
        }
        let (mut costs, mut nodes) = (Vec::new(), Vec::new());
        for arg in args {
            costs.push(self.cost(arg));
            nodes.push(self.node(arg));
        }
        let of_args = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        if function == "_?._" {
            return of_args.plus(Range::exactly(1));
        }
        let target_cost = target.map_or_else(Range::default, |target| self.cost(target));
        let target = target.map(|target| self.node(target));
        let overloads = self.notes.overloads(expression);
        let (mut cost, mut size) = (Range::NOTHING, None);
        for overload in overloads {
            let call = Call { function, overload, target: target.as_ref(), args: &nodes };
            let estimate = self.estimate(expression, &call, &costs);
            cost = cost.or(estimate.cost);
            size = match (size, estimate.size) {
                (Some(known), Some(another)) => Some(Range::or(known, another)),
                (known, another) => known.or(another),
            };
            if let ("_[_]", [list, _]) = (function, args) {
                let part = match overload.args.first() {
                    Some(Type::List(_)) => Some(ITEMS),
                    Some(Type::Map(..)) => Some(VALUES),
                    _ => None,
                };
                if let Some(part) = part {
                    size = self.entries(list).map(|entries| entries.values);
                    let path = self.path_into(list, part);
                    self.known_paths.insert(expression.id, path);
                }
            }
            if size.is_none() {
                size = self.size(expression);
            }
        }
        if overloads.is_empty() {
            return Range::default();
        }
        self.note(expression, size, None);
        target_cost.plus(cost)
    }
}

const ITEMS: &str = "@items";
const INDICES: &str = "@indices";
const KEYS: &str = "@keys";
const VALUES: &str = "@values";

/// A call with one of the overloads that fit.
struct Call<'c, 'a> {
    function: &'a str,
    overload: &'a Overload,
    target: Option<&'c Node<'a>>,
    args: &'c [Node<'a>],
}

/// What a call costs, and how large its result is if that follows from its arguments.
struct Estimate {
    cost: Range,
    size: Option<Range>,
}

/// The size of a literal.
fn written_size(expression: &Expr) -> Option<u64> {
    Some(match &expression.kind {
        Kind::Literal(Literal::Text(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(Literal::Type(_)) => return None,
        Kind::Literal(_) => 1,
        Kind::List(items) => items.len() as u64,
        Kind::Map(pairs) => pairs.len() as u64,
        _ => return None,
    })
}

fn is_scalar(kind: &Type) -> bool {
    match kind {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
