//! Checks types, strings and numbers.

use biplane_go::num::format_general;
use serde_json::{Number, Value};

use super::super::error::{FieldError, Problem};
use super::super::node::Node;
use super::Place;

/// The JSON type of a value and the API server's name for its representation.
fn kind_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// The largest integer up to which doubles hold all of them.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// Whether a double counts as an integer. A relative difference of a billionth is forgiven.
fn is_whole(value: &Value) -> bool {
    let Some(float) = value.as_f64().filter(|float| float.abs() <= LARGEST) else { return false };
    let near = float.trunc();
    if float.fract() == 0.0 {
        return true;
    }
    let difference = (float - near).abs();
    // Go compares a negative number with what is left of it as an unsigned one.
    near > 0.0 && difference / (float.abs() + near.abs()) < 1e-9
}

pub(super) fn check_type(value: &Value, node: &Node, place: Place<'_>) -> Option<FieldError> {
    let (kind, representation) = kind_of(value);
    let wants = |name: &str| node.types.contains(&name);
    let whole = kind == "number" && is_whole(value) && wants("integer");
    let widened = kind == "integer" && wants("number");
    let fits = wants(kind) || whole || widened;
    let open = value.is_string() || value.is_array();
    if let Some(format) = &node.format {
        if !open && !fits && format.name != representation {
            return Some(place.wrong_type(&format.name, representation));
        }
        if open && !wants("number") && !wants("integer") {
            // The format of strings is checked elsewhere.
            return None;
        }
    }
    (!fits).then(|| place.wrong_type(&node.type_names(), kind))
}

/// Reports the first of length and pattern that is violated.
pub(super) fn check_text(text: &str, node: &Node, place: Place<'_>) -> Option<FieldError> {
    let path = place.path;
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(most) = node.max_length.filter(|most| length > *most) {
        let plural = if most == 1 { "" } else { "s" };
        let detail = format!("may not be more than {most} byte{plural}");
        return Some(place.here(Problem::TooLong, "<value omitted>", detail));
    }
    if let Some(least) = node.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        return Some(place.here(Problem::Invalid, text, detail));
    }
    let pattern = node.pattern.as_ref()?;
    let expected = match pattern.matches(text) {
        Ok(true) => return None,
        Ok(false) => pattern.text.clone(),
        Err(reason) => format!("{}, but pattern is invalid: {reason}", pattern.text),
    };
    let detail = format!("{path} in body should match '{expected}'");
    Some(place.here(Problem::Invalid, text, detail))
}

pub(super) fn check_number(
    number: &Number,
    node: &Node,
    place: Place<'_>,
    errors: &mut Vec<FieldError>,
) {
    let path = place.path;
    let float = number.as_f64().unwrap_or_default();
    let format = node.format.as_ref().map(|format| format.name.as_str());
    if node.types == ["integer"] {
        let fits = match number.as_i64() {
            Some(int) => !node.is_int32 || i32::try_from(int).is_ok(),
            None => {
                float.fract() == 0.0
                    && float.abs() < 9.2e18
                    && (!node.is_int32 || i32::try_from(float as i64).is_ok())
            }
        };
        let format = format.or(node.is_int32.then_some("int32"));
        if !fits {
            let kind = match format {
                Some(format) => format!("integer with format {format}"),
                None => "integer (default format)".to_owned(),
            };
            let detail = format!("Checked value must be of type {kind} in {path}");
            errors.push(place.nowhere(detail));
        }
    }
    let value = || Value::Number(number.clone());
    // Integers are compared as integers, and bounds are then shown without their fraction.
    let int = number.as_i64();
    let shown = |bound: f64| match int {
        Some(_) => (bound as i64).to_string(),
        None => format_general(bound),
    };
    if let Some(factor) = node.multiple_of {
        let cut = factor as i64;
        let multiple = match int {
            Some(int) => int.checked_rem(cut) == Some(0),
            None => (float / factor).fract() == 0.0,
        };
        // For integers, a factor below one is cut to zero. The API server has the same bug.
        if factor <= 0.0 || (int.is_some() && cut <= 0) {
            let shown = shown(factor);
            let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
            let factor = if int.is_some() { Value::from(cut) } else { Value::from(factor) };
            errors.push(place.here(Problem::Invalid, factor, detail));
        } else if !multiple {
            let detail = format!("{path} in body should be a multiple of {}", shown(factor));
            errors.push(place.here(Problem::Invalid, value(), detail));
        }
    }
    if let Some(least) = node.minimum {
        let broken = match (int, node.exclusive_minimum) {
            (Some(int), false) => int < least as i64,
            (Some(int), true) => int <= least as i64,
            (None, false) => float < least,
            (None, true) => float <= least,
        };
        if broken {
            let or_equal = if node.exclusive_minimum { "" } else { " or equal to" };
            let detail =
                format!("{path} in body should be greater than{or_equal} {}", shown(least));
            errors.push(place.here(Problem::Invalid, value(), detail));
        }
    }
    if let Some(most) = node.maximum {
        let broken = match (int, node.exclusive_maximum) {
            (Some(int), false) => int > most as i64,
            (Some(int), true) => int >= most as i64,
            (None, false) => float > most,
            (None, true) => float >= most,
        };
        if broken {
            let or_equal = if node.exclusive_maximum { "" } else { " or equal to" };
            let detail = format!("{path} in body should be less than{or_equal} {}", shown(most));
            errors.push(place.here(Problem::Invalid, value(), detail));
        }
    }
}
