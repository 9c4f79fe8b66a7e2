//! JSON of any value, like `encoding/json`.

use std::fmt::Write as _;

use biplane_go::json::Style;

use super::args::{DEPTH, any, made, text};
use crate::func::{Call, Failure, Func};
use crate::types::Type;
use crate::value::{Json, List, Map, Text, Value};

const RAW: Style = Style { html: false, line_separators: true, indent: None };

pub(super) fn functions() -> Vec<Func> {
    const ANY: &[Type] = &[Type::Any];
    const TEXT: &[Type] = &[Type::String];
    let mut functions = vec![
        Func::new("fromJson", TEXT, Type::Any, |call, args| {
            Ok(decode(call, text(args, 0))?.map_or(Value::Nil, |(value, _)| value))
        }),
        Func::new("mustFromJson", TEXT, Type::Any, |call, args| {
            match decode(call, text(args, 0))? {
                Ok((value, None)) => Ok(value),
                Ok((_, Some(error))) | Err(error) => Err(Failure::new(error)),
            }
        }),
    ];
    let styles = [
        ("toJson", "mustToJson", Style::MARSHAL),
        ("toPrettyJson", "mustToPrettyJson", Style::MARSHAL.indented("  ")),
    ];
    for (name, must_name, style) in styles {
        functions.push(Func::new(name, ANY, Type::String, move |call, args| {
            let encoded = encode(call, any(args, 0), style)?;
            made(call, encoded.unwrap_or_default())
        }));
        functions.push(Func::new(must_name, ANY, Type::String, move |call, args| {
            must(call, any(args, 0), style)
        }));
    }
    for name in ["toRawJson", "mustToRawJson"] {
        functions
            .push(Func::new(name, ANY, Type::String, |call, args| must(call, any(args, 0), RAW)));
    }
    functions
}

fn must(call: &mut Call<'_>, value: &Value, style: Style) -> Result<Value, Failure> {
    let encoded = encode(call, value, style)?.map_err(Failure::new)?;
    made(call, encoded)
}

/// A decoded value with an error about its content, or an error about its syntax.
type Decoded = Result<(Value, Option<String>), String>;

/// Decodes JSON. All numbers are doubles.
fn decode(call: &mut Call<'_>, text: &[u8]) -> Result<Decoded, Failure> {
    call.spend(text.len() as u64 / 8)?;
    // A value can be as short as `1,`.
    call.reserve(text.len() as u64 * 64)?;
    Ok(biplane_go::json::decode(text).map(|(value, error)| (untyped(&value), error)))
}

fn untyped(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(untyped).collect()),
        serde_json::Value::Object(map) => {
            Value::dict(map.iter().map(|(key, value)| (Text::from(key.as_str()), untyped(value))))
        }
        other => Value::from_json(other),
    }
}

/// The JSON of a value. The outer error is a limit, the inner one is Go's complaint.
pub fn encode(
    call: &mut Call<'_>,
    value: &Value,
    style: Style,
) -> Result<Result<String, String>, Failure> {
    let out = String::new();
    let mut writer = Writer { call, out, style, level: 0, reserved: 0, ancestors: Vec::new() };
    match writer.value(value, 0) {
        Ok(()) => Ok(Ok(writer.out)),
        Err(Stop::Complaint(text)) => Ok(Err(text)),
        Err(Stop::Limit(failure)) => Err(failure),
    }
}

enum Stop {
    Complaint(String),
    Limit(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Limit(failure)
    }
}

struct Writer<'a, 'b> {
    call: &'a mut Call<'b>,
    out: String,
    style: Style,
    level: usize,
    /// The bytes of output that are accounted for.
    reserved: usize,
    /// The lists and maps around the current value.
    ancestors: Vec<Value>,
}

impl Writer<'_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Stop> {
        self.call.spend(1)?;
        if self.out.len() > self.reserved + 65_536 {
            // What is written counts while it grows. The result itself counts once more.
            self.call.reserve((self.out.len() - self.reserved) as u64)?;
            self.reserved = self.out.len();
        }
        if depth > DEPTH {
            return Err(self.too_deep(value));
        }
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Int(_, number) => self.number(number),
            Value::Uint(_, number) => self.number(number),
            Value::Float(number) => self.float(*number)?,
            Value::Str(text) => self.text(text),
            Value::List(list) => {
                self.ancestors.push(value.clone());
                self.list(value, list, depth)?;
                self.ancestors.pop();
            }
            Value::Map(map) => {
                self.ancestors.push(value.clone());
                self.map(map, depth)?;
                self.ancestors.pop();
            }
            Value::Object(object) => match object.json() {
                Json::As(value) => self.value(&value, depth + 1)?,
                Json::Fields(fields) => {
                    let fields = fields.iter();
                    self.members(fields.map(|(name, value)| (name.as_bytes(), value)), depth)?;
                }
                Json::Failed(text) => return Err(Stop::Complaint(text)),
            },
            Value::Complex(..) => {
                let text = format!("json: unsupported type: {}", value.type_name());
                return Err(Stop::Complaint(text));
            }
        }
        Ok(())
    }

    /// Go finds out about values that contain themselves. Others may nest deeper there.
    fn too_deep(&self, value: &Value) -> Stop {
        let contains_itself = self.ancestors.iter().any(|ancestor| match (ancestor, value) {
            (Value::List(a), Value::List(b)) => a.is(b),
            (Value::Map(a), Value::Map(b)) => a.is(b),
            _ => false,
        });
        if contains_itself {
            let name = value.type_name();
            let text = format!("json: unsupported value: encountered a cycle via {name}");
            return Stop::Complaint(text);
        }
        let text = format!("cannot encode values that nest more than {DEPTH} deep");
        Stop::Limit(Failure::new(text))
    }

    fn number(&mut self, number: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{number}");
    }

    fn float(&mut self, number: f64) -> Result<(), Stop> {
        if !number.is_finite() {
            let shown = biplane_go::num::format_general(number);
            return Err(Stop::Complaint(format!("json: unsupported value: {shown}")));
        }
        self.out.push_str(&biplane_go::num::format_float(number));
        Ok(())
    }

    /// A string. Invalid bytes are escaped as replacement characters.
    fn text(&mut self, text: &[u8]) {
        if let Ok(text) = std::str::from_utf8(text) {
            biplane_go::json::write_string(&mut self.out, text, self.style);
            return;
        }
        self.out.push('"');
        for chunk in text.utf8_chunks() {
            let mut part = String::new();
            biplane_go::json::write_string(&mut part, chunk.valid(), self.style);
            self.out.push_str(part.get(1..part.len() - 1).unwrap_or_default());
            for _ in chunk.invalid() {
                self.out.push_str("\\ufffd");
            }
        }
        self.out.push('"');
    }

    fn line(&mut self) {
        if let Some(indent) = self.style.indent {
            self.out.push('\n');
            for _ in 0..self.level {
                self.out.push_str(indent);
            }
        }
    }

    fn list(&mut self, value: &Value, list: &List, depth: usize) -> Result<(), Stop> {
        if list.is_nil() {
            self.out.push_str("null");
            return Ok(());
        }
        if let Some(bytes) = value.as_byte_slice() {
            let encoded = super::encoding::base64(&bytes);
            biplane_go::json::write_string(&mut self.out, &encoded, self.style);
            return Ok(());
        }
        self.out.push('[');
        self.level += 1;
        let items = list.items();
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.line();
            self.value(item, depth + 1)?;
        }
        self.level -= 1;
        if !items.is_empty() {
            self.line();
        }
        self.out.push(']');
        Ok(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Result<(), Stop> {
        if *map.key() != Type::String {
            let name = Value::Map(map.clone()).type_name();
            return Err(Stop::Complaint(format!("json: unsupported type: {name}")));
        }
        if map.is_nil() {
            self.out.push_str("null");
            return Ok(());
        }
        let entries = map.entries();
        self.members(entries.iter().map(|(key, value)| (key.as_bytes(), value)), depth)
    }

    fn members<'v>(
        &mut self,
        members: impl ExactSizeIterator<Item = (&'v [u8], &'v Value)>,
        depth: usize,
    ) -> Result<(), Stop> {
        let empty = members.len() == 0;
        self.out.push('{');
        self.level += 1;
        for (at, (key, value)) in members.enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.line();
            self.text(key);
            self.out.push_str(if self.style.indent.is_some() { ": " } else { ":" });
            self.value(value, depth + 1)?;
        }
        self.level -= 1;
        if !empty {
            self.line();
        }
        self.out.push('}');
        Ok(())
    }
}
