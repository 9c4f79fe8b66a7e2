//! Applies verbs to each kind of value.

use serde_json::Value;

use super::float::{FloatVerb, format_float};
use super::{Arg, Item, Printer, quote, runes};

impl Printer {
    /// Executes a directive whose flags have been parsed.
    pub(super) fn verb(&mut self, arg: Arg<'_>, verb: char) {
        if matches!(verb, 'v' | 'w') {
            self.flags.source = std::mem::take(&mut self.flags.sharp);
            self.flags.names = std::mem::take(&mut self.flags.plus);
        }
        self.arg(arg, verb);
    }

    /// Prints a top-level argument.
    pub(super) fn arg(&mut self, arg: Arg<'_>, verb: char) {
        match (arg, verb) {
            (Arg::Nil | Arg::Item(Item::Nil), 'v' | 'T') => self.pad(b"<nil>"),
            (_, 'T') => self.string(arg.type_name().as_bytes()),
            // Go would print an address, which is useless here. Values without an address are a bad
            // verb.
            (Arg::Array(_) | Arg::Object(_) | Arg::Item(_), 'w' | 'p') => self.bad_verb(arg, verb),
            _ => self.value(arg, verb),
        }
    }

    /// Prints a value, which may be part of another value.
    pub(super) fn value(&mut self, arg: Arg<'_>, verb: char) {
        // A number is made whole before it is written.
        let digits = match arg {
            Arg::Int(_) | Arg::Float(_) => self.flags.precision.max(self.flags.width),
            _ => None,
        };
        if !self.has_room(digits.unwrap_or_default()) {
            return;
        }
        match arg {
            Arg::Item(item) => self.item(item, verb, false),
            Arg::Nil => self.bad_verb(arg, verb),
            Arg::Bool(flag) => match verb {
                't' | 'v' => self.pad(if flag { b"true" } else { b"false" }),
                _ => self.bad_verb(arg, verb),
            },
            Arg::Int(integer) => {
                if !self.integer(integer.unsigned_abs(), integer < 0, verb) {
                    self.bad_verb(arg, verb);
                }
            }
            Arg::Float(float) => self.float(float, verb),
            Arg::Text(text) => self.string_verb(text, verb),
            Arg::Array(items) => self.array(items, verb),
            Arg::Object(map) => self.object(map, verb),
        }
    }

    /// Reports that a verb does not fit the argument, and shows the argument.
    pub(super) fn bad_verb(&mut self, arg: Arg<'_>, verb: char) {
        let complaining = std::mem::replace(&mut self.complaining, true);
        self.text("%!");
        self.push(verb);
        self.push('(');
        if let Arg::Nil | Arg::Item(Item::Nil) = arg {
            self.text("<nil>");
        } else {
            self.text(arg.type_name());
            self.push('=');
            self.value(arg, 'v');
        }
        self.push(')');
        self.complaining = complaining;
    }

    fn element(&mut self, value: &Value, verb: char) {
        match value {
            Value::Null if self.flags.source => self.text("interface {}(nil)"),
            Value::Null => self.text("<nil>"),
            _ => self.value(value.into(), verb),
        }
    }

    fn array(&mut self, items: &[Value], verb: char) {
        let source = self.flags.source;
        self.text(if source { "[]interface {}{" } else { "[" });
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text(if source { ", " } else { " " });
            }
            self.element(item, verb);
        }
        self.push(if source { '}' } else { ']' });
    }

    fn object(&mut self, map: &serde_json::Map<String, Value>, verb: char) {
        let source = self.flags.source;
        self.text(if source { "map[string]interface {}{" } else { "map[" });
        for (index, (key, item)) in map.iter().enumerate() {
            if index > 0 {
                self.text(if source { ", " } else { " " });
            }
            self.value(Arg::Text(key.as_bytes()), verb);
            self.push(':');
            self.element(item, verb);
        }
        self.push(if source { '}' } else { ']' });
    }

    fn string_verb(&mut self, text: &[u8], verb: char) {
        if !self.text_verb(text, verb) {
            self.bad_verb(Arg::Text(text), verb);
        }
    }

    /// Prints a string. Returns whether the verb is for strings.
    pub(super) fn text_verb(&mut self, text: &[u8], verb: char) -> bool {
        match verb {
            'v' if self.flags.source => self.quoted(text),
            'v' | 's' => self.string(text),
            'x' => self.hex(text, false),
            'X' => self.hex(text, true),
            'q' => self.quoted(text),
            _ => return false,
        }
        true
    }

    /// Cuts a string to the number of characters that the precision allows.
    fn truncate<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let Some(precision) = self.flags.precision else { return text };
        let end = runes(text).take(precision).map(|(_, bytes)| bytes.len()).sum();
        text.get(..end).unwrap_or(text)
    }

    fn string(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        self.pad(text);
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncate(text);
        let quoted = if self.flags.sharp && quote::can_backquote(text) {
            [b"`", text, b"`"].concat()
        } else {
            quote::quote_with(text, self.flags.plus)
        };
        self.pad(&quoted);
    }

    fn hex(&mut self, text: &[u8], upper: bool) {
        let digits: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let prefix: &[u8] = match (self.flags.sharp, upper) {
            (false, _) => b"",
            (true, false) => b"0x",
            (true, true) => b"0X",
        };
        let length = self.flags.precision.unwrap_or(text.len()).min(text.len());
        let mut out = Vec::new();
        for (index, byte) in text.iter().take(length).enumerate() {
            if index > 0 && self.flags.space {
                out.push(b' ');
            }
            if index == 0 || self.flags.space {
                out.extend_from_slice(prefix);
            }
            out.push(digits[usize::from(byte >> 4)]);
            out.push(digits[usize::from(byte & 15)]);
        }
        self.pad(&out);
    }

    pub(super) fn float(&mut self, float: f64, verb: char) {
        let (kind, precision) = match verb {
            'v' | 'g' => (FloatVerb::General, None),
            'G' => (FloatVerb::GeneralUpper, None),
            'b' => (FloatVerb::Binary, None),
            'x' => (FloatVerb::Hex, None),
            'X' => (FloatVerb::HexUpper, None),
            'f' | 'F' => (FloatVerb::Plain, Some(6)),
            'e' => (FloatVerb::Exponent, Some(6)),
            'E' => (FloatVerb::ExponentUpper, Some(6)),
            _ => return self.bad_verb(Arg::Float(float), verb),
        };
        let precision = self.flags.precision.or(precision);
        let mut text = format_float(float, kind, precision);
        let mut sign = match text.as_bytes().first() {
            Some(b'-') => b'-',
            _ => b'+',
        };
        if text.starts_with(['-', '+']) {
            text.remove(0);
        }
        if self.flags.space && sign == b'+' && !self.flags.plus {
            sign = b' ';
        }
        if !float.is_finite() {
            let signless = float.is_nan() && !self.flags.space && !self.flags.plus;
            let mut out = if signless { Vec::new() } else { vec![sign] };
            out.extend_from_slice(text.as_bytes());
            return self.pad_blank(&out);
        }
        if self.flags.sharp && kind != FloatVerb::Binary {
            text = sharpen(&text, kind, precision);
        }
        if !self.flags.plus && sign == b'+' {
            return self.pad(text.as_bytes());
        }
        let width = self.flags.width.unwrap_or_default();
        if self.flags.zero && !self.flags.minus && width > text.len() + 1 {
            self.bytes(&[sign]);
            self.fill(width - text.len() - 1);
            return self.text(&text);
        }
        let mut out = vec![sign];
        out.extend_from_slice(text.as_bytes());
        self.pad(&out);
    }
}

/// Adds the decimal point that `#` requires and, for general forms, the zeros.
fn sharpen(text: &str, kind: FloatVerb, precision: Option<usize>) -> String {
    let hex = matches!(kind, FloatVerb::Hex | FloatVerb::HexUpper);
    let mut wanted = match kind {
        FloatVerb::General | FloatVerb::GeneralUpper | FloatVerb::Hex => {
            i64::try_from(precision.unwrap_or(6)).unwrap_or(i64::MAX)
        }
        _ => 0,
    };
    let tail = text.find(['p', 'P']).or_else(|| if hex { None } else { text.find(['e', 'E']) });
    let (head, tail) = text.split_at(tail.unwrap_or(text.len()));
    let mut significant = false;
    for c in head.chars().filter(|c| *c != '.') {
        significant |= c != '0';
        wanted -= i64::from(significant);
    }
    let mut out = head.to_owned();
    if !head.contains('.') {
        if head == "0" {
            wanted -= 1;
        }
        out.push('.');
    }
    (0..wanted).for_each(|_| out.push('0'));
    out + tail
}
