//! Reads and prints JSON like Go.

mod decode;

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use crate::num::format_float;
pub use decode::{Next, StreamError, decode, decode_next};

/// The style of JSON output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Escapes `<`, `>` and `&`, like `json.Marshal`.
    pub html: bool,
    /// Escapes U+2028 and U+2029. `encoding/json` always does this, `protojson` never does.
    pub line_separators: bool,
    /// The indentation of one nesting level. `None` prints everything on one line.
    pub indent: Option<&'static str>,
}

impl Style {
    /// The style of `json.Marshal`.
    pub const MARSHAL: Self = Self { html: true, line_separators: true, indent: None };
    /// The escapes of `protojson`.
    pub const PROTOJSON: Self = Self { html: false, line_separators: false, indent: None };

    /// The same style over several lines, like `json.MarshalIndent` with an empty prefix.
    #[must_use]
    pub const fn indented(self, indent: &'static str) -> Self {
        Self { indent: Some(indent), ..self }
    }
}

/// Prints JSON like `json.Marshal`: on one line, with sorted keys, and with `<`, `>` and `&`
/// escaped.
pub fn to_string(value: &Value) -> String {
    to_string_with(value, Style::MARSHAL)
}

/// Prints JSON in the given style, without a line break at the end.
pub fn to_string_with(value: &Value, style: Style) -> String {
    let mut out = String::new();
    write_value(&mut out, value, style);
    out
}

/// Prints an object in the given style, without wrapping it in a [`Value`].
pub fn object_to_string(map: &Map<String, Value>, style: Style) -> String {
    let mut out = String::new();
    Writer { out: &mut out, style, level: 0 }.object(map);
    out
}

/// Appends JSON in the given style.
pub fn write_value(out: &mut String, value: &Value, style: Style) {
    Writer { out, style, level: 0 }.value(value);
}

/// Appends a JSON string with its quotes.
pub fn write_string(out: &mut String, text: &str, style: Style) {
    out.push('"');
    let mut done = 0;
    for (at, c) in text.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\0'..='\u{1f}' => "",
            '<' | '>' | '&' if style.html => "",
            '\u{2028}' | '\u{2029}' if style.line_separators => "",
            _ => continue,
        };
        out.push_str(text.get(done..at).unwrap_or_default());
        if escape.is_empty() {
            push(out, format_args!("\\u{:04x}", u32::from(c)));
        } else {
            out.push_str(escape);
        }
        done = at + c.len_utf8();
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out.push('"');
}

/// Appends a number. Integers stay as they are, doubles use [`format_float`].
pub fn write_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => out.push_str(&format_float(float)),
        _ => push(out, format_args!("{number}")),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

struct Writer<'a> {
    out: &'a mut String,
    style: Style,
    level: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(true) => self.out.push_str("true"),
            Value::Bool(false) => self.out.push_str("false"),
            Value::Number(number) => write_number(self.out, number),
            Value::String(text) => write_string(self.out, text, self.style),
            Value::Array(items) => self.array(items),
            Value::Object(map) => self.object(map),
        }
    }

    fn array(&mut self, items: &[Value]) {
        self.open('[');
        for (index, item) in items.iter().enumerate() {
            self.next(index);
            self.value(item);
        }
        self.close(']', items.is_empty());
    }

    fn object(&mut self, map: &Map<String, Value>) {
        self.open('{');
        for (index, (key, value)) in map.iter().enumerate() {
            self.next(index);
            write_string(self.out, key, self.style);
            self.out.push_str(if self.style.indent.is_some() { ": " } else { ":" });
            self.value(value);
        }
        self.close('}', map.is_empty());
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.level += 1;
    }

    fn next(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.line();
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.level -= 1;
        if !empty {
            self.line();
        }
        self.out.push(bracket);
    }

    fn line(&mut self) {
        if let Some(indent) = self.style.indent {
            self.out.push('\n');
            for _ in 0..self.level {
                self.out.push_str(indent);
            }
        }
    }
}

#[cfg(test)]
mod tests;
