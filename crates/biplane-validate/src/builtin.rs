//! The kinds that Kubernetes itself has. They are decoded strictly, and not validated further.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use biplane_go::base64;
use biplane_go::fmt::quote;
use biplane_go::{quantity, time};
use biplane_model::{Map, Object, Value};

/// The types of Kubernetes' kinds, from the table beside this file.
#[derive(Debug, Default)]
struct Table {
    /// The type of each kind, by API version and kind.
    kinds: BTreeMap<(&'static str, &'static str), &'static str>,
    /// The members of each type.
    types: BTreeMap<&'static str, BTreeMap<&'static str, &'static str>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::default();
    for line in include_str!("kubernetes.txt").lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next()) {
            (Some("k"), Some(version)) => {
                if let (Some(kind), Some(name)) = (words.next(), words.next()) {
                    table.kinds.insert((version, kind), name);
                }
            }
            (Some("t"), Some(name)) => {
                let members = words.filter_map(|word| word.split_once(':')).collect();
                table.types.insert(name, members);
            }
            _ => {}
        }
    }
    table
});

/// What is wrong with an object of a built-in kind. `None` if its kind is not built in.
pub fn problems(object: &Object) -> Option<Vec<String>> {
    let shape = TABLE.kinds.get(&(object.api_version(), object.kind()))?;
    let mut decoder = Decoder::default();
    let value = object.to_value();
    Some(match decoder.value(&value, shape, "") {
        Ok(()) => decoder.unknown,
        Err(problem) => vec![problem],
    })
}

#[derive(Default)]
struct Decoder {
    unknown: Vec<String>,
}

impl Decoder {
    fn value(&mut self, value: &Value, shape: &str, path: &str) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let wrong = |go: &str| {
            let kind = match value {
                Value::Null => "null",
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            Err(format!("json: cannot unmarshal {kind} into Go struct field {path} of type {go}"))
        };
        if let Some(inner) = shape.strip_prefix("[]") {
            let Value::Array(items) = value else { return wrong("slice") };
            for (place, item) in items.iter().enumerate() {
                self.value(item, inner, &format!("{path}[{place}]"))?;
            }
            return Ok(());
        }
        if let Some(inner) = shape.strip_prefix("{}") {
            let Value::Object(map) = value else { return wrong("map") };
            for (name, item) in map {
                self.value(item, inner, &joined(path, name))?;
            }
            return Ok(());
        }
        match (shape, value) {
            ("s", Value::String(_))
            | ("b", Value::Bool(_))
            | ("f", Value::Number(_))
            | ("*", _) => Ok(()),
            ("s", _) => wrong("string"),
            ("b", _) => wrong("bool"),
            ("f", _) => wrong("float64"),
            ("B", Value::String(text)) => match base64::decode(text.as_bytes()) {
                Ok(_) => Ok(()),
                Err(place) => Err(format!("illegal base64 data at input byte {place}")),
            },
            ("B", _) => wrong("[]uint8"),
            _ => match (shape.strip_prefix('!'), shape.as_bytes().first(), value) {
                (Some(own), _, _) => reads_itself(own, value),
                (None, Some(b'i' | b'u'), Value::Number(number)) if is_integer(shape) => {
                    let fits = number.as_i64().or_else(|| whole(number.as_f64()));
                    if fits.is_some_and(|int| in_range(int, shape)) { Ok(()) } else { wrong(shape) }
                }
                (None, _, _) if is_integer(shape) => wrong(shape),
                (None, _, Value::Object(map)) => self.members(map, shape, path),
                _ => wrong(shape),
            },
        }
    }

    fn members(&mut self, map: &Map<String, Value>, shape: &str, path: &str) -> Result<(), String> {
        let Some(known) = TABLE.types.get(shape) else { return Ok(()) };
        for (name, value) in map {
            let path = joined(path, name);
            match known.get(name.as_str()) {
                Some(shape) => self.value(value, shape, &path)?,
                None => self.unknown.push(format!("unknown field {}", quote(&path))),
            }
        }
        Ok(())
    }
}

fn joined(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn is_integer(shape: &str) -> bool {
    matches!(shape, "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64")
}

fn whole(number: Option<f64>) -> Option<i64> {
    number.filter(|number| number.fract() == 0.0 && number.abs() < 9e18).map(|n| n as i64)
}

fn in_range(int: i64, shape: &str) -> bool {
    match shape {
        "i8" => i8::try_from(int).is_ok(),
        "i16" => i16::try_from(int).is_ok(),
        "i32" => i32::try_from(int).is_ok(),
        "u8" => u8::try_from(int).is_ok(),
        "u16" => u16::try_from(int).is_ok(),
        "u32" => u32::try_from(int).is_ok(),
        "u64" => int >= 0,
        _ => true,
    }
}

/// Checks a value of a type that decodes itself.
fn reads_itself(name: &str, value: &Value) -> Result<(), String> {
    match (name, value) {
        ("resource.Quantity", Value::Number(_))
        | ("intstr.IntOrString", Value::String(_) | Value::Number(_)) => Ok(()),
        ("resource.Quantity", Value::String(text)) => {
            quantity::parse(text.as_bytes()).map(|_| ()).map_err(|error| error.to_string())
        }
        ("resource.Quantity", _) => {
            quantity::parse(b"").map(|_| ()).map_err(|error| error.to_string())
        }
        ("intstr.IntOrString", other) => {
            let kind = if other.is_boolean() { "bool" } else { "object" };
            Err(format!("json: cannot unmarshal {kind} into Go value of type int32"))
        }
        ("v1.Time", Value::String(text)) => parse_time(text, b"2006-01-02T15:04:05Z07:00"),
        ("v1.MicroTime", Value::String(text)) => {
            parse_time(text, b"2006-01-02T15:04:05.000000Z07:00")
        }
        ("v1.Time" | "v1.MicroTime", other) => {
            let kind = match other {
                Value::Number(_) => "number",
                Value::Bool(_) => "bool",
                Value::Array(_) => "array",
                _ => "object",
            };
            Err(format!("json: cannot unmarshal {kind} into Go value of type string"))
        }
        _ => Ok(()),
    }
}

fn parse_time(text: &str, layout: &[u8]) -> Result<(), String> {
    time::parse(layout, text.as_bytes()).map(|_| ())
}
