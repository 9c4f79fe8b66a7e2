//! JSON text as Go reads and prints it.

mod decode;

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use crate::num::format_float;
pub use decode::decode;

/// How JSON text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Escapes `<`, `>` and `&`, as `json.Marshal` does.
    pub html: bool,
    /// Escapes U+2028 and U+2029, as `encoding/json` always and `protojson` never does.
    pub line_separators: bool,
    /// What a level of nesting is set in by; none for text on one line.
    pub indent: Option<&'static str>,
}

impl Style {
    /// As `json.Marshal`.
    pub const MARSHAL: Self = Self { html: true, line_separators: true, indent: None };
    /// As `protojson` escapes.
    pub const PROTOJSON: Self = Self { html: false, line_separators: false, indent: None };

    /// The same over several lines, as `json.MarshalIndent` with an empty prefix.
    #[must_use]
    pub const fn indented(self, indent: &'static str) -> Self {
        Self { indent: Some(indent), ..self }
    }
}

/// JSON as `json.Marshal` prints it: on one line, keys sorted, `<`, `>` and `&` escaped.
pub fn to_string(value: &Value) -> String {
    to_string_with(value, Style::MARSHAL)
}

/// JSON in a style of choice. No line break follows the text.
pub fn to_string_with(value: &Value, style: Style) -> String {
    let mut out = String::new();
    write_value(&mut out, value, style);
    out
}

/// An object in a style of choice, without a [`Value`] around it.
pub fn object_to_string(map: &Map<String, Value>, style: Style) -> String {
    let mut out = String::new();
    Writer { out: &mut out, style, level: 0 }.object(map);
    out
}

/// Appends JSON in a style of choice.
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

/// Appends a number: integers as they are, doubles by [`format_float`].
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
