//! Transforms, which change a value between its source and its destination.

mod convert;
mod hash;
mod json;
mod text;

use std::cell::Cell;

pub use text::format_within;

use biplane_function::Budget;
use biplane_go::fmt::quote;
use biplane_go::regex::GoRegex;
use biplane_model::object::memory;
use biplane_model::{Map, Value, fieldpath};

use crate::config;
use crate::dialect::Dialect;
use crate::validate;
use crate::value::Val;

/// About how many bytes the regular expressions of one input may take when they are compiled.
const PATTERN_ROOM: usize = 64 << 20;

/// What the search with one regular expression keeps besides its compiled form.
const SEARCH_SIZE: usize = 64 << 10;

/// The regular expressions of one input. They are compiled when they are first used.
#[derive(Debug, Default)]
pub struct Patterns {
    size: Cell<usize>,
    count: Cell<usize>,
}

impl Patterns {
    /// Parses a pattern. The error shows when it is used.
    fn parse(&self, pattern: &str) -> Result<GoRegex, String> {
        let regex = GoRegex::new(pattern).map_err(|error| error.to_string())?;
        let size = self.size.get() + regex.size();
        if size > PATTERN_ROOM {
            let limit = PATTERN_ROOM >> 20;
            return Err(format!(
                "the regular expressions of an input may take {limit} MiB when compiled, and {} is \
                 beyond that",
                quote(pattern)
            ));
        }
        self.size.set(size);
        self.count.set(self.count.get() + 1);
        Ok(regex)
    }

    /// About how many bytes all of them take once they were used.
    pub fn kept_size(&self) -> usize {
        2 * self.size.get() + self.count.get() * SEARCH_SIZE
    }
}

/// The steps of one transform.
const STEPS: u64 = 16;

/// The steps from which on it is worth to read the clock before a search.
const LONG_SEARCH: u64 = 10_000;

/// A prepared transform. Many errors show only when it runs.
#[derive(Debug)]
pub enum Transform {
    /// Fails for every value.
    Fail(String),
    Resolve(&'static str, Op),
}

#[derive(Debug)]
pub enum Op {
    Math(Result<Math, String>),
    Map(Map<String, Value>),
    Match(Match),
    Text(text::Text),
    Convert(Result<convert::Convert, String>),
}

#[derive(Debug)]
pub enum Math {
    Multiply(i64),
    ClampMin(i64),
    ClampMax(i64),
}

#[derive(Debug)]
pub struct Match {
    patterns: Vec<(Pattern, Value)>,
    fallback_value: Value,
    fallback_to_input: bool,
}

#[derive(Debug)]
enum Pattern {
    Literal(String),
    Regexp(Result<GoRegex, String>),
    Fail(String),
}

/// Applies transforms in order.
pub fn run(transforms: &[Transform], mut value: Val, budget: &Budget) -> Result<Val, String> {
    for (index, transform) in transforms.iter().enumerate() {
        value = transform
            .run(value, budget)
            .map_err(|error| format!("transform at index {index} returned error: {error}"))?;
    }
    Ok(value)
}

impl Transform {
    pub fn new(transform: &config::Transform, patterns: &Patterns, dialect: Dialect) -> Self {
        let op = match transform.kind.as_str() {
            "math" => transform.math.as_ref().map(|config| ("math", Op::Math(math(config)))),
            "map" => transform.map.as_ref().map(|pairs| {
                let mut pairs = pairs.clone();
                pairs.values_mut().for_each(fieldpath::to_doubles);
                ("map", Op::Map(pairs))
            }),
            "match" => {
                let matching = transform.matching.as_ref();
                matching.map(|config| ("match", Op::Match(Match::new(config, patterns))))
            }
            "string" => {
                let string = transform.string.as_ref();
                string.map(|config| {
                    ("string", Op::Text(text::Text::new(config, patterns, dialect.join)))
                })
            }
            "convert" => transform
                .convert
                .as_ref()
                .map(|config| ("convert", Op::Convert(convert::Convert::new(config, dialect)))),
            other => return Self::Fail(format!("transform type {other} is not supported")),
        };
        match op {
            Some((name, op)) => Self::Resolve(name, op),
            None => Self::Fail(format!(
                "given transform type {} requires configuration",
                transform.kind
            )),
        }
    }

    fn run(&self, value: Val, budget: &Budget) -> Result<Val, String> {
        match self {
            Self::Fail(error) => Err(error.clone()),
            Self::Resolve(name, op) => op
                .run(value, budget)
                .map_err(|error| format!("{name} transform could not resolve: {error}")),
        }
    }
}

impl Op {
    fn run(&self, value: Val, budget: &Budget) -> Result<Val, String> {
        budget.steps(STEPS).map_err(|exceeded| exceeded.to_string())?;
        match self {
            Self::Math(math) => math.as_ref().map_err(Clone::clone)?.run(value),
            Self::Map(pairs) => look_up(pairs, &value, budget),
            Self::Match(matching) => matching.run(value, budget),
            Self::Text(text) => text.run(&value, budget).map(Val::Text),
            Self::Convert(convert) => convert.as_ref().map_err(Clone::clone)?.run(value, budget),
        }
    }
}

fn math(config: &config::Math) -> Result<Math, String> {
    validate::math(config).map_err(|error| error.to_string())?;
    let operation = match config.kind.as_str() {
        "Multiply" => config.multiply.map(Math::Multiply),
        "ClampMin" => config.clamp_min.map(Math::ClampMin),
        _ => config.clamp_max.map(Math::ClampMax),
    };
    operation
        .ok_or_else(|| format!("type {} is not supported for math transform type", config.kind))
}

impl Math {
    fn run(&self, value: Val) -> Result<Val, String> {
        let whole = match value {
            Val::Int(integer) => integer,
            // Values out of range are clamped.
            Val::Float(float) => float as i64,
            _ => {
                return Err(format!(
                    "input is required to be a number for math transformer, got {}",
                    value.type_name()
                ));
            }
        };
        Ok(match (self, value) {
            (Self::Multiply(by), Val::Float(float)) => Val::Float(float * *by as f64),
            (Self::Multiply(by), _) => Val::Int(whole.wrapping_mul(*by)),
            (Self::ClampMin(bound), _) if whole < *bound => Val::Int(*bound),
            (Self::ClampMax(bound), _) if whole > *bound => Val::Int(*bound),
            (_, value) => value,
        })
    }
}

/// A copy of a value of the input.
fn copy(value: &Value, budget: &Budget) -> Result<Val, String> {
    budget.make(memory(value)).map_err(|exceeded| exceeded.to_string())?;
    Ok(value.clone().into())
}

fn look_up(pairs: &Map<String, Value>, value: &Val, budget: &Budget) -> Result<Val, String> {
    let Val::Text(key) = value else {
        return Err(format!("type {} is not supported for map transform", value.type_name()));
    };
    let key = String::from_utf8_lossy(key);
    match pairs.get(key.as_ref()) {
        None => Err(format!("key {key} is not found in map")),
        Some(Value::Null) => {
            Err(format!("value for key {key} is not valid JSON: unexpected end of JSON input"))
        }
        Some(value) => copy(value, budget),
    }
}

impl Match {
    fn new(config: &config::Match, known: &Patterns) -> Self {
        let doubles = |value: &Value| {
            let mut value = value.clone();
            fieldpath::to_doubles(&mut value);
            value
        };
        let patterns = config.patterns.iter();
        Self {
            patterns: patterns.map(|p| (Pattern::new(p, known), doubles(&p.result))).collect(),
            fallback_value: doubles(&config.fallback_value),
            fallback_to_input: config.fallback_to == "Input",
        }
    }

    fn run(&self, value: Val, budget: &Budget) -> Result<Val, String> {
        for (index, (pattern, result)) in self.patterns.iter().enumerate() {
            let matches = pattern
                .matches(&value, budget)
                .map_err(|error| format!("cannot match pattern at index {index}: {error}"))?;
            if matches {
                return copy(result, budget);
            }
        }
        match (self.fallback_to_input, self.fallback_value.is_null()) {
            (true, true) => Ok(value),
            (true, false) => {
                Err("cannot set both a fallback value and the fallback to input flag".into())
            }
            (false, _) => copy(&self.fallback_value, budget),
        }
    }
}

impl Pattern {
    fn new(pattern: &config::Pattern, patterns: &Patterns) -> Self {
        match (pattern.kind.as_str(), &pattern.literal, &pattern.regexp) {
            ("literal", Some(literal), _) => Self::Literal(literal.clone()),
            ("literal", None, _) => Self::Fail("literal is required by type literal".into()),
            ("regexp", _, Some(regexp)) => Self::Regexp(
                patterns.parse(regexp).map_err(|error| format!("cannot compile regexp: {error}")),
            ),
            ("regexp", _, None) => Self::Fail("regexp is required by type regexp".into()),
            (other, ..) => Self::Fail(format!("unsupported pattern type '{other}'")),
        }
    }

    fn matches(&self, value: &Val, budget: &Budget) -> Result<bool, String> {
        let unsupported = |name| Err(format!("unsupported input type '{name}'"));
        match (self, value) {
            (Self::Fail(error) | Self::Regexp(Err(error)), _) => Err(error.clone()),
            (Self::Literal(literal), Val::Text(text)) => Ok(literal.as_bytes() == text.as_slice()),
            (Self::Regexp(Ok(regex)), Val::Text(text)) => {
                search(regex, text, budget)?;
                let matches = regex.is_match(text);
                matches.map_err(|error| format!("cannot compile regexp: {error}"))
            }
            (Self::Regexp(_), Val::Null) => unsupported("null"),
            (_, value) => unsupported(value.type_name()),
        }
    }
}

/// Announces a search, which cannot be interrupted.
fn search(regex: &GoRegex, text: &[u8], budget: &Budget) -> Result<(), String> {
    let steps = regex.search_steps(text.len());
    let announced = budget
        .steps(STEPS.saturating_add(steps))
        .and_then(|()| if steps > LONG_SEARCH { budget.check() } else { Ok(()) });
    announced.map_err(|exceeded| exceeded.to_string())
}

#[cfg(test)]
mod tests;
