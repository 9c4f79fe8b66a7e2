//! Transforms, which change a value between its source and its destination.

mod convert;
mod hash;
mod json;
mod text;

use biplane_go::regex::GoRegex;
use biplane_model::{Map, Value, fieldpath};

use super::input;
use super::validate;
use super::value::Val;

/// A prepared transform. Many errors show only when it runs.
#[derive(Clone, Debug)]
pub(super) enum Transform {
    /// Fails for every value.
    Fail(String),
    Resolve(&'static str, Op),
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Math(Result<Math, String>),
    Map(Map<String, Value>),
    Match(Match),
    Text(text::Text),
    Convert(Result<convert::Convert, String>),
}

#[derive(Clone, Debug)]
pub(super) enum Math {
    Multiply(i64),
    ClampMin(i64),
    ClampMax(i64),
}

#[derive(Clone, Debug)]
pub(super) struct Match {
    patterns: Vec<(Pattern, Value)>,
    fallback_value: Value,
    fallback_to_input: bool,
}

#[derive(Clone, Debug)]
enum Pattern {
    Literal(String),
    Regexp(Result<GoRegex, String>),
    Fail(String),
}

/// Applies transforms in order.
pub(super) fn run(transforms: &[Transform], mut value: Val) -> Result<Val, String> {
    for (index, transform) in transforms.iter().enumerate() {
        value = transform
            .run(value)
            .map_err(|error| format!("transform at index {index} returned error: {error}"))?;
    }
    Ok(value)
}

impl Transform {
    pub(super) fn new(transform: &input::Transform) -> Self {
        let op = match transform.kind.as_str() {
            "math" => transform.math.as_ref().map(|config| ("math", Op::Math(math(config)))),
            "map" => transform.map.as_ref().map(|pairs| {
                let mut pairs = pairs.clone();
                pairs.values_mut().for_each(fieldpath::to_doubles);
                ("map", Op::Map(pairs))
            }),
            "match" => transform.matching.as_ref().map(|m| ("match", Op::Match(Match::new(m)))),
            "string" => transform.string.as_ref().map(|s| ("string", Op::Text(text::Text::new(s)))),
            "convert" => transform
                .convert
                .as_ref()
                .map(|config| ("convert", Op::Convert(convert::Convert::new(config)))),
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

    /// Whether the transform is too large to cache.
    pub(super) fn is_large(&self) -> bool {
        let large = |regex: &Result<GoRegex, String>| regex.as_ref().is_ok_and(GoRegex::is_large);
        match self {
            Self::Resolve(_, Op::Match(Match { patterns, .. })) => patterns
                .iter()
                .any(|(pattern, _)| matches!(pattern, Pattern::Regexp(regex) if large(regex))),
            Self::Resolve(_, Op::Text(text::Text::Regexp { regex, .. })) => large(regex),
            _ => false,
        }
    }

    fn run(&self, value: Val) -> Result<Val, String> {
        match self {
            Self::Fail(error) => Err(error.clone()),
            Self::Resolve(name, op) => op
                .run(value)
                .map_err(|error| format!("{name} transform could not resolve: {error}")),
        }
    }
}

impl Op {
    fn run(&self, value: Val) -> Result<Val, String> {
        match self {
            Self::Math(math) => math.as_ref().map_err(Clone::clone)?.run(value),
            Self::Map(pairs) => look_up(pairs, &value),
            Self::Match(matching) => matching.run(value),
            Self::Text(text) => text.run(&value).map(Val::Text),
            Self::Convert(convert) => convert.as_ref().map_err(Clone::clone)?.run(value),
        }
    }
}

fn math(config: &input::Math) -> Result<Math, String> {
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

fn look_up(pairs: &Map<String, Value>, value: &Val) -> Result<Val, String> {
    let Val::Text(key) = value else {
        return Err(format!("type {} is not supported for map transform", value.type_name()));
    };
    let key = String::from_utf8_lossy(key);
    match pairs.get(key.as_ref()) {
        None => Err(format!("key {key} is not found in map")),
        Some(Value::Null) => {
            Err(format!("value for key {key} is not valid JSON: unexpected end of JSON input"))
        }
        Some(value) => Ok(value.clone().into()),
    }
}

impl Match {
    fn new(config: &input::Match) -> Self {
        let doubles = |value: &Value| {
            let mut value = value.clone();
            fieldpath::to_doubles(&mut value);
            value
        };
        let patterns = config.patterns.iter();
        Self {
            patterns: patterns.map(|p| (Pattern::new(p), doubles(&p.result))).collect(),
            fallback_value: doubles(&config.fallback_value),
            fallback_to_input: config.fallback_to == "Input",
        }
    }

    fn run(&self, value: Val) -> Result<Val, String> {
        for (index, (pattern, result)) in self.patterns.iter().enumerate() {
            let matches = pattern
                .matches(&value)
                .map_err(|error| format!("cannot match pattern at index {index}: {error}"))?;
            if matches {
                return Ok(result.clone().into());
            }
        }
        match (self.fallback_to_input, self.fallback_value.is_null()) {
            (true, true) => Ok(value),
            (true, false) => {
                Err("cannot set both a fallback value and the fallback to input flag".into())
            }
            (false, _) => Ok(self.fallback_value.clone().into()),
        }
    }
}

impl Pattern {
    fn new(pattern: &input::Pattern) -> Self {
        match (pattern.kind.as_str(), &pattern.literal, &pattern.regexp) {
            ("literal", Some(literal), _) => Self::Literal(literal.clone()),
            ("literal", None, _) => Self::Fail("literal is required by type literal".into()),
            ("regexp", _, Some(regexp)) => Self::Regexp(
                GoRegex::new(regexp).map_err(|error| format!("cannot compile regexp: {error}")),
            ),
            ("regexp", _, None) => Self::Fail("regexp is required by type regexp".into()),
            (other, ..) => Self::Fail(format!("unsupported pattern type '{other}'")),
        }
    }

    fn matches(&self, value: &Val) -> Result<bool, String> {
        let unsupported = |name| Err(format!("unsupported input type '{name}'"));
        match (self, value) {
            (Self::Fail(error) | Self::Regexp(Err(error)), _) => Err(error.clone()),
            (Self::Literal(literal), Val::Text(text)) => Ok(literal.as_bytes() == text.as_slice()),
            (Self::Regexp(Ok(regex)), Val::Text(text)) => Ok(regex.is_match(text)),
            (Self::Regexp(_), Val::Null) => unsupported("null"),
            (_, value) => unsupported(value.type_name()),
        }
    }
}

#[cfg(test)]
mod tests;
