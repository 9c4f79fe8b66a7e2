//! Checks the types of an expression.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use biplane_go::regex::GoRegex;
use biplane_go::time::{GoDuration, strict_instant};

use super::ast::{Expr, IF_PRESENT, Kind, Literal, Loop, RESULT};
use super::macros::{AGAIN, TARGET};
use super::report::Problem;
use super::types::Type;

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) member: bool,
    /// Allows comparing numbers of different types.
    loose: bool,
    result: Type,
    /// The types of the target, if it is a member, and of the arguments.
    pub(super) args: Vec<Type>,
}

/// What the check of types finds out about each expression, by its number.
#[derive(Debug, Default)]
pub(super) struct Notes {
    types: Vec<Type>,
    calls: BTreeMap<usize, Vec<&'static Overload>>,
}

impl Notes {
    /// The type of an expression.
    pub(super) fn type_of(&self, expression: &Expr) -> &Type {
        self.types.get(expression.id).unwrap_or(&Type::Dyn)
    }

    /// The ways to call the function that fit the arguments.
    pub(super) fn overloads(&self, call: &Expr) -> &[&'static Overload] {
        self.calls.get(&call.id).map_or(&[], Vec::as_slice)
    }
}

type Functions = BTreeMap<&'static str, Vec<Overload>>;

static STANDARD: LazyLock<Functions> = LazyLock::new(|| table(&[include_str!("functions.txt")]));

static KUBERNETES: LazyLock<Functions> =
    LazyLock::new(|| table(&[include_str!("functions.txt"), include_str!("kubernetes.txt")]));

fn table(texts: &[&'static str]) -> Functions {
    let mut functions: BTreeMap<_, Vec<Overload>> = BTreeMap::new();
    let lines = texts.iter().flat_map(|text| text.lines());
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        if let (Some(name), Some(style), Some(result)) = (words.next(), words.next(), words.next())
        {
            let (member, loose) = (style == "member", style == "loose");
            let result = Type::read(result);
            let args = words.map(Type::read).collect();
            let overload = Overload { member, loose, result, args };
            functions.entry(name).or_default().push(overload);
        }
    }
    functions
}

/// Names of types, which are also values.
const TYPES: [(&str, &str); 19] = [
    ("bool", "type(bool)"),
    ("bytes", "type(bytes)"),
    ("double", "type(double)"),
    ("google.protobuf.Duration", "type(duration)"),
    ("google.protobuf.Timestamp", "type(timestamp)"),
    ("int", "type(int)"),
    ("list", "type(list(A))"),
    ("map", "type(map(A,B))"),
    ("null_type", "type(null)"),
    ("string", "type(string)"),
    ("type", "type(dyn)"),
    ("uint", "type(uint)"),
    ("optional_type", "type(optional(A))"),
    ("kubernetes.NamedFormat", "type(format)"),
    ("kubernetes.Quantity", "type(quantity)"),
    ("kubernetes.Semver", "type(semver)"),
    ("kubernetes.URL", "type(url)"),
    ("net.CIDR", "type(cidr)"),
    ("net.IP", "type(ip)"),
];

/// How many of the types the language has by itself.
const STANDARD_TYPES: usize = 12;

/// Checks an expression and returns its type. Names of types are replaced by type values.
pub(super) fn check(
    expression: &mut Expr,
    variables: &[(&str, Type)],
    kubernetes: bool,
) -> Result<(Type, Notes), Vec<Problem>> {
    // Kubernetes allows to compare numbers of different types everywhere.
    let mut checker = Checker { variables, kubernetes, loosened: kubernetes, ..Checker::default() };
    let kind = checker.check(expression);
    let kind = checker.close(&kind, true);
    if !checker.problems.is_empty() {
        return Err(checker.problems);
    }
    let mut notes = std::mem::take(&mut checker.notes);
    for kind in &mut notes.types {
        *kind = checker.close(kind, true);
    }
    Ok((kind, notes))
}

#[derive(Default)]
struct Checker<'a> {
    variables: &'a [(&'a str, Type)],
    /// Whether Kubernetes' libraries and rules apply.
    kubernetes: bool,
    /// Variables of the enclosing loops, the innermost last.
    scope: Vec<(String, Type)>,
    /// The types found for type variables.
    found: BTreeMap<usize, Type>,
    /// What was found before, in the order of changes, to take them back.
    changes: Vec<(usize, Option<Type>)>,
    opened: usize,
    /// Whether a loop has been seen. Inside and after a loop, Go no longer knows which overloads
    /// are disabled.
    loosened: bool,
    /// Whether the arguments of `format` are checked.
    in_format: bool,
    problems: Vec<Problem>,
    /// Kept for Kubernetes only, which estimates costs.
    notes: Notes,
}

impl Checker<'_> {
    fn problem(&mut self, at: usize, text: String) {
        self.problems.push(Problem { at, text });
    }

    fn open(&mut self) -> Type {
        self.opened += 1;
        Type::Open(self.opened - 1)
    }

    /// Replaces type variables by their known types. Unknown ones stay variables, or become `Dyn`
    /// if `finally` is set.
    fn close(&self, kind: &Type, finally: bool) -> Type {
        match kind {
            Type::Open(id) => match self.found.get(id) {
                Some(found) => self.close(found, finally),
                None if finally => Type::Dyn,
                None => kind.clone(),
            },
            _ => kind.map_parts(&mut |part| self.close(part, finally)),
        }
    }

    fn lookup(&self, name: &str) -> Option<(Type, Option<&'static str>)> {
        let local = self.scope.iter().rev().find(|(known, _)| known == name);
        if let Some((_, kind)) = local {
            return Some((kind.clone(), None));
        }
        if let Some(of) = name.strip_prefix(AGAIN) {
            return self.lookup(&format!("{TARGET}{of}"));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, kind)) = self.variables.iter().find(|(known, _)| *known == name) {
            return Some((kind.clone(), None));
        }
        let count = if self.kubernetes { TYPES.len() } else { STANDARD_TYPES };
        let (name, kind) = TYPES.iter().take(count).find(|(known, _)| *known == name)?;
        let kind = Type::read(kind);
        // Type variables in the name of a type do not matter.
        let kind = Self::default().close(&kind, true);
        Some((kind, Some(name)))
    }

    fn check(&mut self, expression: &mut Expr) -> Type {
        if !self.kubernetes {
            return self.find_type(expression);
        }
        let id = self.notes.types.len();
        self.notes.types.push(Type::Error);
        expression.id = id;
        let kind = self.find_type(expression);
        if let Some(noted) = self.notes.types.get_mut(id) {
            noted.clone_from(&kind);
        }
        kind
    }

    fn find_type(&mut self, expression: &mut Expr) -> Type {
        let (at, id) = (expression.at, expression.id);
        if let Some(name) = expression.dotted()
            && let Some((kind, constant)) = self.lookup(&name)
        {
            expression.kind = match constant {
                Some(name) => Kind::Literal(Literal::Type(name)),
                None => Kind::Name(name.strip_prefix('.').unwrap_or(&name).to_owned()),
            };
            return kind;
        }
        match &mut expression.kind {
            Kind::Literal(literal) => literal_type(literal),
            Kind::Name(name) | Kind::Message(name) => {
                let text = format!("undeclared reference to '{name}' (in container '')");
                self.problem(at, text);
                Type::Error
            }
            Kind::Field { operand, field, test } => {
                let (test, field) = (*test, field.clone());
                let kind = self.field(at, operand, &field);
                if test { Type::Bool } else { self.close(&kind, false) }
            }
            Kind::Call { function, target, args } => {
                // A function in a namespace looks like a member of a variable.
                let qualified = target.as_ref().and_then(|target| target.dotted());
                let qualified = qualified.map(|target| format!("{target}.{function}"));
                if let Some(name) =
                    qualified.filter(|name| self.functions().contains_key(name.as_str()))
                {
                    *function = name;
                    *target = None;
                }
                if let ("_?._", [operand, Expr { kind: Kind::Literal(Literal::Text(field)), .. }]) =
                    (function.as_str(), args.as_mut_slice())
                {
                    let field = field.clone();
                    let kind = self.field(at, operand, &field);
                    let kind = self.close(&kind, false);
                    return match kind {
                        Type::Optional(_) => kind,
                        other => Type::Optional(Box::new(other)),
                    };
                }
                let (function, target) = (function.clone(), target.as_deref_mut());
                self.call((at, id), &function, target, args)
            }
            Kind::List(items) => {
                let mut joined = None;
                for item in items {
                    let kind = self.entry(item);
                    joined = Some(self.join(item.at, joined, kind));
                }
                let item = joined.unwrap_or_else(|| self.open());
                Type::List(Box::new(item))
            }
            Kind::Map(entries) => {
                let mut joined = None;
                for (key, value) in entries {
                    let (key_at, value_at) = (key.at, value.at);
                    let key = self.check(key);
                    let value = self.entry(value);
                    let (keys, values) = joined.unzip();
                    let keys = self.join(key_at, keys, key);
                    joined = Some((keys, self.join(value_at, values, value)));
                }
                let (key, value) = joined.unwrap_or_else(|| (self.open(), self.open()));
                Type::Map(Box::new(key), Box::new(value))
            }
            Kind::Loop(parts) => self.repeat(parts),
            Kind::Bind(parts) => {
                let value = self.check(&mut parts.value);
                self.scope.push((parts.variable.clone(), value));
                let body = self.check(&mut parts.body);
                self.scope.pop();
                self.close(&body, false)
            }
        }
    }

    fn functions(&self) -> &'static Functions {
        if self.kubernetes { &KUBERNETES } else { &STANDARD }
    }

    /// The type of an entry of a literal, which may be optional.
    fn entry(&mut self, entry: &mut Expr) -> Type {
        let Kind::Call { function, args, .. } = &mut entry.kind else { return self.check(entry) };
        let ([inner], true) = (args.as_mut_slice(), function == IF_PRESENT) else {
            return self.check(entry);
        };
        let at = inner.at;
        let given = self.check(inner);
        let held = self.open();
        let wanted = Type::Optional(Box::new(held.clone()));
        if !self.try_fit(&given, &wanted) {
            let given = self.close(&given, true);
            self.problem(at, format!("expected type 'optional_type(_)' but found '{given}'"));
            return Type::Error;
        }
        self.close(&held, false)
    }

    fn field(&mut self, at: usize, operand: &mut Expr, field: &str) -> Type {
        let operand = self.check(operand);
        let operand = self.close(&operand, false);
        self.field_of(at, operand, field)
    }

    fn field_of(&mut self, at: usize, operand: Type, field: &str) -> Type {
        match operand {
            Type::Map(_, value) => *value,
            Type::Optional(inner) if self.kubernetes => {
                let inner = self.close(&inner, false);
                match self.field_of(at, inner, field) {
                    kind @ Type::Optional(_) => kind,
                    kind => Type::Optional(Box::new(kind)),
                }
            }
            Type::Object(object) => object.fields.get(field).cloned().unwrap_or_else(|| {
                self.problem(at, format!("undefined field '{field}'"));
                Type::Error
            }),
            open @ Type::Open(_) => {
                self.fits(&Type::Dyn, &open);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.problem(at, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        }
    }

    /// One type for several items: the wider one, or `Dyn`.
    fn join(&mut self, at: usize, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous)
                if self.try_fit(&previous, &current)
                    && !(self.kubernetes
                        && !self.in_format
                        && previous.is_dyn() != current.is_dyn()) =>
            {
                wider(&previous, &current).clone()
            }
            Some(previous) if self.kubernetes && !self.in_format => {
                self.problem(at, format!("expected type '{previous}' but found '{current}'"));
                previous
            }
            Some(_) => Type::Dyn,
        }
    }

    fn repeat(&mut self, parts: &mut Loop) -> Type {
        let range = self.check(&mut parts.range);
        let start = self.check(&mut parts.start);
        let range = self.close(&range, false);
        let two = parts.second.is_some();
        let (variable, second) = match range {
            Type::List(item) if two => (Type::Int, *item),
            Type::List(item) => (*item, Type::Dyn),
            Type::Map(key, value) => (*key, *value),
            Type::Dyn | Type::Error | Type::Open(_) => {
                self.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.problem(parts.range.at, text);
                (Type::Error, Type::Error)
            }
        };
        self.loosened = true;
        self.scope.push((RESULT.to_owned(), start.clone()));
        self.scope.push((parts.variable.clone(), variable));
        if let Some(name) = &parts.second {
            self.scope.push((name.clone(), second));
        }
        let condition = self.check(&mut parts.condition);
        self.expect(parts.condition.at, &condition, &Type::Bool);
        let step = self.check(&mut parts.step);
        self.expect(parts.step.at, &step, &start);
        if two {
            self.scope.pop();
        }
        self.scope.pop();
        let result = self.check(&mut parts.result);
        self.scope.pop();
        self.close(&result, false)
    }

    fn expect(&mut self, at: usize, kind: &Type, wanted: &Type) {
        if !self.try_fit(kind, wanted) {
            self.problem(at, format!("expected type '{wanted}' but found '{kind}'"));
        }
    }

    fn call(
        &mut self,
        (at, id): (usize, usize),
        function: &str,
        target: Option<&mut Expr>,
        args: &mut [Expr],
    ) -> Type {
        let places: Vec<usize> = args.iter().map(|arg| arg.at).collect();
        let member = target.is_some();
        // Only the values that a text is made from may have different types.
        let outside = std::mem::replace(&mut self.in_format, member && function == "format");
        let mut kinds: Vec<Type> = args.iter_mut().map(|arg| self.check(arg)).collect();
        self.in_format = outside;
        if let Some(target) = target {
            let target = self.check(target);
            kinds.insert(0, target);
        }
        if self.kubernetes {
            if member && function == "format" {
                self.format_entries(args);
            }
            self.literal(function, args);
        }
        let absolute = function.strip_prefix('.').unwrap_or(function);
        let Some(overloads) = self.functions().get(absolute) else {
            let text = format!("undeclared reference to '{function}' (in container '')");
            self.problem(at, text);
            return Type::Error;
        };
        if matches!(function, "_&&_" | "_||_") {
            self.notes.calls.insert(id, overloads.iter().collect());
            return self.logic(&places, &kinds);
        }
        let mut fitting = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            if overload.loose && !self.loosened {
                continue;
            }
            let base = self.opened;
            let parts = overload.args.iter().chain([&overload.result]);
            self.opened += parts.map(Type::count_open).max().unwrap_or(0);
            let wanted: Vec<Type> = overload.args.iter().map(|arg| renamed(arg, base)).collect();
            if kinds.len() != wanted.len() {
                continue;
            }
            let known = self.changes.len();
            if !kinds.iter().zip(&wanted).all(|(kind, wanted)| self.fits(kind, wanted)) {
                self.take_back(known);
                continue;
            }
            fitting.push(overload);
            let kind = self.close(&renamed(&overload.result, base), false);
            result = Some(match result {
                None => kind,
                Some(result) if result.is_dyn() || result == kind => result,
                Some(_) => Type::Dyn,
            });
        }
        if self.kubernetes {
            self.notes.calls.insert(id, fitting);
        }
        result.unwrap_or_else(|| {
            let mut names = kinds.iter().map(|kind| self.close(kind, true).to_string());
            let receiver = if member { names.next() } else { None };
            let rest = names.collect::<Vec<_>>().join(", ");
            let signature = match receiver {
                Some(receiver) => format!("{receiver}.({rest})"),
                None => format!("({rest})"),
            };
            let text =
                format!("found no matching overload for '{function}' applied to '{signature}'");
            self.problem(at, text);
            Type::Error
        })
    }

    /// Refuses literals that the function can never read.
    fn literal(&mut self, function: &str, args: &[Expr]) {
        let Some(Expr { at, kind: Kind::Literal(Literal::Text(text)), .. }) = args.last() else {
            return;
        };
        let wrong = match function {
            "duration" => text.parse::<GoDuration>().is_err(),
            "timestamp" => strict_instant(text).is_none(),
            "matches" => GoRegex::new(text).is_err(),
            _ => false,
        };
        if wrong {
            self.problem(*at, format!("invalid {function} argument"));
        }
    }

    /// Refuses values in a literal list that cannot be put into a text.
    fn format_entries(&mut self, args: &mut [Expr]) {
        let [Expr { kind: Kind::List(items), .. }] = args else { return };
        for item in items {
            self.format_entry(item);
        }
    }

    fn format_entry(&mut self, entry: &mut Expr) {
        let at = entry.at;
        match &mut entry.kind {
            Kind::List(items) => {
                for item in items {
                    self.format_entry(item);
                }
            }
            Kind::Map(entries) => {
                for (_, value) in entries {
                    self.format_entry(value);
                }
            }
            Kind::Call { function, .. } if function == IF_PRESENT => {
                self.unformattable(at, "optional_type");
            }
            _ => {
                // The entry is known to be correct or has been reported.
                let known = self.problems.len();
                let kind = self.check(entry);
                self.problems.truncate(known);
                match self.close(&kind, true) {
                    Type::Optional(_) => self.unformattable(at, "optional_type"),
                    Type::Object(object) => self.unformattable(at, &object.name),
                    Type::Opaque(name) => self.unformattable(at, name),
                    _ => {}
                }
            }
        }
    }

    fn unformattable(&mut self, at: usize, kind: &str) {
        let text = format!(
            "error during formatting: string clause can only be used on strings, bools, bytes, \
             ints, doubles, maps, lists, types, durations, and timestamps, was given {kind}"
        );
        self.problem(at, text);
    }

    fn logic(&mut self, places: &[usize], kinds: &[Type]) -> Type {
        let mut fine = true;
        for (at, kind) in places.iter().zip(kinds) {
            if !self.fits(kind, &Type::Bool) {
                self.problem(*at, format!("expected type 'bool' but found '{kind}'"));
                fine = false;
            }
        }
        if fine { Type::Bool } else { Type::Error }
    }

    /// Like `fits`, but types that were found are discarded if it fails.
    fn try_fit(&mut self, given: &Type, wanted: &Type) -> bool {
        let known = self.changes.len();
        let fits = self.fits(given, wanted);
        if !fits {
            self.take_back(known);
        }
        fits
    }

    fn find(&mut self, open: usize, kind: Type) {
        let before = self.found.insert(open, kind);
        self.changes.push((open, before));
    }

    /// Takes back all but the first changes.
    fn take_back(&mut self, kept: usize) {
        while self.changes.len() > kept {
            match self.changes.pop() {
                Some((open, Some(before))) => self.found.insert(open, before),
                Some((open, None)) => self.found.remove(&open),
                None => return,
            };
        }
    }

    /// Whether a type is accepted where another is expected. Sets type variables.
    fn fits(&mut self, given: &Type, wanted: &Type) -> bool {
        if let Type::Open(id) = wanted {
            match self.settle(given, *id) {
                Some(valid) => return valid,
                None if !matches!(given, Type::Open(_)) => return false,
                None => {}
            }
        }
        if let Type::Open(id) = given {
            return self.settle(wanted, *id).unwrap_or(false);
        }
        match (given, wanted) {
            (Type::Dyn | Type::Any | Type::Error, _)
            | (_, Type::Dyn | Type::Any | Type::Error)
            // Whatever is an object in Go may be null.
            | (
                Type::Null,
                Type::Null
                | Type::Timestamp
                | Type::Duration
                | Type::Object(_)
                | Type::Opaque(_)
                | Type::Optional(_),
            )
            | (
                Type::Timestamp
                | Type::Duration
                | Type::Object(_)
                | Type::Opaque(_)
                | Type::Optional(_),
                Type::Null,
            )
            | (Type::Name(_), Type::Name(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.fits(a, b)
            }
            (Type::Map(ak, av), Type::Map(bk, bv)) => self.fits(ak, bk) && self.fits(av, bv),
            _ => given == wanted,
        }
    }

    /// Sets a type variable to the given type, if possible. `None` if the type would contain
    /// itself.
    fn settle(&mut self, given: &Type, open: usize) -> Option<bool> {
        if *given == Type::Open(open) {
            return Some(true);
        }
        if let Some(found) = self.found.get(&open).cloned() {
            if *given == found {
                return Some(true);
            }
            if !self.fits(given, &found) {
                return Some(false);
            }
            let wider = wider(given, &found).clone();
            if !self.contains(&wider, open) {
                self.find(open, wider);
            }
            return Some(true);
        }
        if self.contains(given, open) {
            return None;
        }
        self.find(open, given.clone());
        Some(true)
    }

    fn contains(&self, kind: &Type, open: usize) -> bool {
        match kind {
            Type::Open(id) if *id == open => true,
            Type::Open(id) => self.found.get(id).is_some_and(|found| self.contains(found, open)),
            Type::List(item) | Type::Name(item) | Type::Optional(item) => self.contains(item, open),
            Type::Map(key, value) => self.contains(key, open) || self.contains(value, open),
            _ => false,
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::Text,
        Literal::Bytes(_) => Type::Bytes,
        Literal::Type(_) => Type::Name(Box::new(Type::Dyn)),
    }
}

/// Gives the type variables of an overload unique names.
fn renamed(kind: &Type, base: usize) -> Type {
    match kind {
        Type::Open(id) => Type::Open(base + id),
        _ => kind.map_parts(&mut |part| renamed(part, base)),
    }
}

fn wider<'a>(a: &'a Type, b: &'a Type) -> &'a Type {
    if is_wider(a, b) { a } else { b }
}

fn is_wider(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Any | Type::Open(_), _) | (Type::Name(_), Type::Name(_)) => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_wider(a, b),
        (Type::Map(ak, av), Type::Map(bk, bv)) => is_wider(ak, bk) && is_wider(av, bv),
        _ => a == b,
    }
}
