//! Tells from which JSON a Go struct can be decoded.
//!
//! Upstream decodes function inputs and some Kubernetes kinds into Go structs and acts on the
//! result. Only success or failure matters here. So a table describes the structs, and decoding
//! compares the value with its type.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::fmt::quote;
use crate::{json, num, quantity, time};

/// The metadata of every object.
pub const META: &str = include_str!("types/meta.txt");

/// The kinds whose readiness upstream derives from a fully decoded object. Read it together with
/// `META`.
pub const KUBERNETES: &str = include_str!("types/kubernetes.txt");

/// The three decoders of upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// JSON in which every field must be known.
    Strict,
    /// JSON as the API server's clients read it: unknown fields are ignored.
    Lenient,
    /// Conversion of an object that is already in memory, in which every number is a double.
    Converter,
}

/// The reason why a value does not fit its type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("json: cannot unmarshal JSON {found} into Go value of type {wanted}")]
    Kind { found: &'static str, wanted: String },
    #[error("json: cannot unmarshal JSON {found} {text} into Go value of type {wanted}")]
    Content { found: &'static str, text: String, wanted: &'static str },
    #[error("json: cannot unmarshal Go value of type {within}: unknown name {}", quote(name))]
    Unknown { within: &'static str, name: String },
}

/// The type of a field.
#[derive(Debug)]
pub enum Type {
    /// A string, and Go's name of its type.
    String(&'static str),
    /// A boolean.
    Bool,
    /// A signed integer.
    Int {
        /// Its size.
        bits: u32,
    },
    /// An unsigned integer.
    Uint,
    /// Any value.
    Any,
    /// A point in time.
    Time,
    /// A quantity of a resource, such as `100Mi`.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// A list.
    List(Box<Type>),
    /// A map from strings.
    Map(Box<Type>),
    /// A struct of the tables.
    Struct(&'static str),
}

/// Structs by name.
#[derive(Debug)]
pub struct Types(BTreeMap<&'static str, Struct>);

/// The fields of a struct. They are parsed when the first value is compared with them, because most
/// tables hold many more structs than a process uses.
#[derive(Debug)]
struct Struct {
    text: &'static str,
    fields: OnceLock<BTreeMap<&'static str, Type>>,
}

impl Struct {
    fn fields(&self) -> &BTreeMap<&'static str, Type> {
        self.fields.get_or_init(|| {
            let fields = self.text.split_whitespace().filter_map(|word| word.split_once(':'));
            fields.map(|(field, text)| (field, Type::read(text))).collect()
        })
    }
}

impl Types {
    /// Parses tables of `name field:type field:type …` lines. `#` starts a comment. A string with
    /// its own type is `string=name`.
    pub fn read(tables: &[&'static str]) -> Self {
        let lines = tables.iter().flat_map(|table| table.lines());
        let structs = lines.filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
            let (name, text) = line.split_once(' ').unwrap_or((line, ""));
            (name, Struct { text, fields: OnceLock::new() })
        });
        Self(structs.collect())
    }

    /// The fields of a struct, ordered by name. None if there is no such struct.
    pub fn fields(&self, name: &str) -> impl Iterator<Item = (&'static str, &Type)> {
        let fields = self.0.get(name).map(Struct::fields);
        fields.into_iter().flatten().map(|(field, r#type)| (*field, r#type))
    }

    /// Whether the named struct can be decoded from the object.
    pub fn check(
        &self,
        object: &Map<String, Value>,
        name: &str,
        decoder: Decoder,
    ) -> Result<(), Mismatch> {
        let Some((name, wanted)) = self.0.get_key_value(name) else { return Ok(()) };
        let fields = wanted.fields();
        for (key, value) in object {
            match fields.get(key.as_str()) {
                Some(wanted) => self.check_value(value, wanted, decoder)?,
                None if decoder == Decoder::Strict => {
                    return Err(Mismatch::Unknown { within: name, name: key.clone() });
                }
                None => {}
            }
        }
        Ok(())
    }

    fn check_value(&self, value: &Value, wanted: &Type, decoder: Decoder) -> Result<(), Mismatch> {
        let content =
            |text: String, wanted| Err(Mismatch::Content { found: kind_of(value), text, wanted });
        match (wanted, value) {
            // Null is the zero value of every type.
            (_, Value::Null)
            | (Type::Any, _)
            | (Type::String(_) | Type::IntOrString, Value::String(_))
            | (Type::Bool, Value::Bool(_)) => Ok(()),
            (Type::Int { bits }, Value::Number(n)) => {
                let number = n.as_f64().unwrap_or_default();
                if fits_signed(number, *bits, decoder) {
                    return Ok(());
                }
                content(num::format_float(number), if *bits == 32 { "int32" } else { "int64" })
            }
            (Type::IntOrString, Value::Number(n)) => {
                let number = n.as_f64().unwrap_or_default();
                // This type has its own decoder, which always reads JSON.
                if fits_signed(number, 32, Decoder::Lenient) {
                    return Ok(());
                }
                content(num::format_float(number), "int32")
            }
            (Type::Uint, Value::Number(_)) => match unsigned(value) {
                Some(_) => Ok(()),
                None => content(json::to_string(value), "uint64"),
            },
            (Type::Time, Value::String(text)) => match time::instant(text) {
                Some(_) => Ok(()),
                None => content(quote(text), "v1.Time"),
            },
            (Type::Quantity, Value::String(text)) => {
                if quantity::parse(trim_json(text).as_bytes()).is_ok() {
                    return Ok(());
                }
                content(quote(text), "resource.Quantity")
            }
            (Type::Quantity, Value::Number(n)) => {
                let text = num::format_float(n.as_f64().unwrap_or_default());
                if quantity::parse(text.as_bytes()).is_ok() {
                    Ok(())
                } else {
                    content(text, "resource.Quantity")
                }
            }
            (Type::List(item), Value::Array(items)) => {
                items.iter().try_for_each(|value| self.check_value(value, item, decoder))
            }
            (Type::Map(item), Value::Object(map)) => {
                map.values().try_for_each(|value| self.check_value(value, item, decoder))
            }
            (Type::Struct(name), Value::Object(map)) => self.check(map, name, decoder),
            _ => Err(Mismatch::Kind { found: kind_of(value), wanted: wanted.name() }),
        }
    }
}

impl Type {
    fn read(text: &'static str) -> Self {
        if let Some(item) = text.strip_prefix("[]") {
            return Self::List(Box::new(Self::read(item)));
        }
        if let Some(item) = text.strip_prefix("{}") {
            return Self::Map(Box::new(Self::read(item)));
        }
        if let Some(name) = text.strip_prefix("string=") {
            return Self::String(name);
        }
        match text {
            "string" => Self::String(text),
            "bool" => Self::Bool,
            "int32" => Self::Int { bits: 32 },
            "int64" => Self::Int { bits: 64 },
            "uint64" => Self::Uint,
            "any" | "meta.FieldsV1" => Self::Any,
            "meta.Time" => Self::Time,
            "resource.Quantity" => Self::Quantity,
            "intstr.IntOrString" => Self::IntOrString,
            name => Self::Struct(name),
        }
    }

    /// The type as Go prints it.
    fn name(&self) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int { bits } => format!("int{bits}"),
            Self::Uint => "uint64".to_owned(),
            Self::Any => "interface {}".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::IntOrString => "intstr.IntOrString".to_owned(),
            Self::List(item) => format!("[]{}", item.name()),
            Self::Map(item) => format!("map[string]{}", item.name()),
            Self::String(name) | Self::Struct(name) => (*name).to_owned(),
        }
    }
}

/// Trims the characters that are whitespace in JSON. Other whitespace is escaped in JSON.
fn trim_json(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() && !matches!(c, '\t'..='\r' | '\u{2028}' | '\u{2029}')
    })
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The number as an unsigned integer: without sign, fraction or exponent.
pub fn unsigned(value: &Value) -> Option<u64> {
    num::format_float(value.as_f64()?).parse().ok()
}

fn fits_signed(number: f64, bits: u32, decoder: Decoder) -> bool {
    if decoder == Decoder::Converter {
        // A number that does not fit wraps. Only a fraction is refused.
        return number.fract() == 0.0;
    }
    match num::format_float(number).parse::<i64>() {
        Ok(integer) => bits == 64 || i32::try_from(integer).is_ok(),
        Err(_) => false,
    }
}

/// Converts a double to an integer like Go's conversion on the architectures that functions run on.
pub fn to_int64(number: f64) -> i64 {
    // The bounds are exact: -2^63 fits, 2^63 does not.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

#[cfg(test)]
mod tests;
