//! Go's `fmt.Sprintf` for JSON values.
//!
//! Errors in a format never fail. They appear in the output, spelt as in Go. Strings are bytes,
//! because a precision or a bad argument can cut a character in half.

mod directive;
mod float;
mod integer;
mod item;
mod quote;
mod value;

use serde_json::Value;

pub use float::{FloatVerb, format_float};
pub use item::Item;
pub use quote::{can_backquote, quote, quote_bytes};

use crate::text::runes;

/// An argument. Integers and doubles are different kinds.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Null.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An `int64`.
    Int(i64),
    /// A `float64`. Unlike a JSON number, it can be infinite.
    Float(f64),
    /// A string, not necessarily valid UTF-8.
    Text(&'a [u8]),
    /// A list.
    Array(&'a [Value]),
    /// An object.
    Object(&'a serde_json::Map<String, Value>),
    /// A value of any Go type.
    Item(&'a Item),
}

impl<'a> From<&'a Value> for Arg<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Self::Int(integer),
                None => Self::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Self::Text(text.as_bytes()),
            Value::Array(items) => Self::Array(items),
            Value::Object(map) => Self::Object(map),
        }
    }
}

impl<'a> Arg<'a> {
    /// Go's name of the type.
    pub fn type_name(&self) -> &'a str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::Array(_) => "[]interface {}",
            Self::Object(_) => "map[string]interface {}",
            Self::Item(item) => item.type_name(),
        }
    }
}

impl Arg<'_> {
    fn is_string(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Item(item) => item.is_string(),
            _ => false,
        }
    }
}

/// Formats arguments.
pub fn sprintf(format: &[u8], args: &[Arg<'_>]) -> Vec<u8> {
    directive::run(format, args, usize::MAX).out
}

/// Formats arguments, unless the result has more than `room` bytes. It is not made then: a format of
/// a few bytes can ask for any width.
pub fn sprintf_within(format: &[u8], args: &[Arg<'_>], room: usize) -> Option<Vec<u8>> {
    let printer = directive::run(format, args, room);
    (!printer.full).then_some(printer.out)
}

/// `fmt.Sprint`: the arguments as `%v` prints them, with a space between two that are no strings.
pub fn sprint(args: &[Arg<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_string = true;
    for arg in args {
        let string = arg.is_string();
        if !string && !after_string {
            out.push(b' ');
        }
        out.extend(display(*arg));
        after_string = string;
    }
    out
}

/// `fmt.Sprintln`: the arguments as `%v` prints them, with a space between them and a newline.
pub fn sprintln(args: &[Arg<'_>]) -> Vec<u8> {
    let texts: Vec<Vec<u8>> = args.iter().map(|arg| display(*arg)).collect();
    let mut out = texts.join(&b' ');
    out.push(b'\n');
    out
}

/// An argument as `%v` prints it.
pub fn display(arg: Arg<'_>) -> Vec<u8> {
    if let Arg::Text(text) = arg {
        return text.to_vec();
    }
    let mut printer = Printer::default();
    printer.arg(arg, 'v');
    printer.out
}

/// The flags between `%` and the verb.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Go's flags, one each
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%#v`: Go syntax.
    source: bool,
    /// `%+v`: with the names of fields.
    names: bool,
}

/// The output so far, and the flags of the current directive.
#[derive(Debug)]
struct Printer {
    out: Vec<u8>,
    flags: Flags,
    /// How long the output may become.
    room: usize,
    /// Whether it would have become longer. From then on nothing is written.
    full: bool,
    /// Whether a value that does not fit its verb is being shown. Its methods are not called then.
    complaining: bool,
}

impl Default for Printer {
    fn default() -> Self {
        Self {
            out: Vec::new(),
            flags: Flags::default(),
            room: usize::MAX,
            full: false,
            complaining: false,
        }
    }
}

impl Printer {
    /// Whether there is room for more bytes.
    fn has_room(&mut self, count: usize) -> bool {
        self.full |= count > self.room.saturating_sub(self.out.len());
        !self.full
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.out.extend_from_slice(bytes);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn push(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.text(c.encode_utf8(&mut buffer));
    }

    fn fill(&mut self, count: usize) {
        let byte = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        if self.has_room(count) {
            self.out.resize(self.out.len() + count, byte);
        }
    }

    /// Writes bytes and pads them to the width, which counts characters.
    fn pad(&mut self, bytes: &[u8]) {
        let width = self.flags.width.unwrap_or_default();
        let count = width.saturating_sub(if width == 0 { 0 } else { runes(bytes).count() });
        if self.flags.minus {
            self.bytes(bytes);
            self.fill(count);
        } else {
            self.fill(count);
            self.bytes(bytes);
        }
    }

    /// Pads like `pad`, but never with zeros.
    fn pad_blank(&mut self, bytes: &[u8]) {
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(bytes);
        self.flags.zero = zero;
    }
}

#[cfg(test)]
mod tests;
