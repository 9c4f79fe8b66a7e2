//! The `convert` transform, which changes the type of a value.

use biplane_function::Budget;
use biplane_go::fmt::{FloatVerb, format_float};
use biplane_go::{num, quantity};

use super::json;
use crate::config;
use crate::dialect::Dialect;
use crate::validate;
use crate::value::Val;

#[derive(Debug)]
pub struct Convert {
    to: &'static str,
    format: &'static str,
    names_value: bool,
}

impl Convert {
    pub fn new(config: &config::Convert, dialect: Dialect) -> Result<Self, String> {
        validate::convert(config).map_err(|error| error.to_string())?;
        Ok(Self {
            to: match config.to.as_str() {
                "string" => "string",
                "bool" => "bool",
                "float64" => "float64",
                "object" => "object",
                "array" => "array",
                _ => "int64",
            },
            format: match config.format.as_deref() {
                Some("quantity") => "quantity",
                Some("json") => "json",
                _ => "none",
            },
            names_value: dialect.names_converted_value,
        })
    }

    pub fn run(&self, value: Val, budget: &Budget) -> Result<Val, String> {
        let from = value.type_name();
        if matches!(
            value,
            Val::Null | Val::Array(_) | Val::Object(_) | Val::NilArray | Val::NilObject
        ) {
            return Err(format!("invalid input type {from}"));
        }
        if from == self.to {
            return Ok(value);
        }
        let named = |error: String| match &value {
            Val::Text(text) if self.names_value => {
                format!("cannot convert value {}: {error}", String::from_utf8_lossy(text))
            }
            _ => error,
        };
        let converted = match (&value, self.to, self.format) {
            (Val::Text(text), "int64", "none") => num::parse_int(text).map(Val::Int),
            (Val::Text(text), "bool", "none") => num::parse_bool(text).map(Val::Bool),
            (Val::Text(text), "float64", "none") => num::parse_float(text).map(Val::Float),
            (Val::Text(text), "float64", "quantity") => {
                quantity::parse(text).map(Val::Float).map_err(|error| error.to_string())
            }
            (Val::Text(text), "object", "json") => json::object(text, budget),
            (Val::Text(text), "array", "json") => json::array(text, budget),
            (Val::Int(integer), "string", "none") => Ok(Val::text(integer.to_string())),
            (Val::Int(integer), "bool", "none") => Ok(Val::Bool(*integer == 1)),
            (Val::Int(integer), "float64", "none") => Ok(Val::Float(*integer as f64)),
            (Val::Bool(flag), "string", "none") => Ok(Val::text(flag.to_string())),
            (Val::Bool(flag), "int64", "none") => Ok(Val::Int(i64::from(*flag))),
            (Val::Bool(flag), "float64", "none") => Ok(Val::Float(f64::from(u8::from(*flag)))),
            (Val::Float(float), "string", "none") => {
                Ok(Val::text(format_float(*float, FloatVerb::Plain, None)))
            }
            // Values out of range are clamped.
            (Val::Float(float), "int64", "none") => Ok(Val::Int(*float as i64)),
            #[allow(clippy::float_cmp)] // compares with exactly one
            (Val::Float(float), "bool", "none") => Ok(Val::Bool(*float == 1.0)),
            _ => {
                return Err(format!(
                    "conversion from {from} to {} is not supported with format {}",
                    self.to, self.format
                ));
            }
        };
        converted.map_err(named)
    }
}
