//! Prints values exactly like `kubectl -o yaml`, or like the newer version of go-yaml.

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use biplane_go::num;

use super::analyse::{Analysis, Style, is_break, is_printable};
use super::data::Data;
use super::{Dialect, order};
use crate::{Number, Value};

/// In manifests, lines are folded at the first space beyond this column.
const WIDTH: usize = 80;
/// Longer keys, in bytes, are written with a question mark in front.
const LONGEST_SIMPLE_KEY: usize = 128;
/// The number of characters of binary data on a line.
const BINARY_WIDTH: usize = 70;

/// Prints one value as a YAML document, without a `---` line.
pub fn to_string(value: &Value) -> String {
    print(Child::Json(value), Dialect::V2)
}

/// Prints values as a stream of documents, with a `---` line before each.
pub fn write_documents<'value>(documents: impl IntoIterator<Item = &'value Value>) -> String {
    let mut stream = String::new();
    for document in documents {
        stream.push_str("---\n");
        stream.push_str(&to_string(document));
    }
    stream
}

/// Prints one value like the newer version of go-yaml.
pub fn encode_document(data: &Data) -> String {
    print(Child::Data(data), Dialect::V3)
}

fn print(root: Child<'_>, dialect: Dialect) -> String {
    let mut printer = Printer::new(dialect);
    printer.document(root);
    printer.out
}

/// A value to print.
#[derive(Clone, Copy, Debug)]
enum Child<'value> {
    Json(&'value Value),
    Data(&'value Data),
    /// A key of an object.
    Key(&'value str),
}

/// A value, by how it is printed.
#[derive(Debug)]
enum Node<'value> {
    Map(Vec<(Child<'value>, Child<'value>)>),
    List(Vec<Child<'value>>),
    Text(&'value str),
    Binary(&'value [u8]),
    Word(Cow<'static, str>),
}

impl<'value> Node<'value> {
    fn of(child: Child<'value>) -> Self {
        match child {
            Child::Key(text) => Self::Text(text),
            Child::Json(value) => Self::of_json(value),
            Child::Data(data) => Self::of_data(data),
        }
    }

    fn of_json(value: &'value Value) -> Self {
        match value {
            Value::Null => Self::word("null"),
            Value::Bool(true) => Self::word("true"),
            Value::Bool(false) => Self::word("false"),
            Value::Number(number) => Self::Word(Cow::Owned(number_text(number))),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.iter().map(Child::Json).collect()),
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
                order::sort_by_key(&mut entries);
                let children = |(key, value)| (Child::Key(key), Child::Json(value));
                Self::Map(entries.into_iter().map(children).collect())
            }
        }
    }

    fn of_data(data: &'value Data) -> Self {
        match data {
            Data::Null => Self::word("null"),
            Data::Bool(true) => Self::word("true"),
            Data::Bool(false) => Self::word("false"),
            Data::Int(whole) => Self::Word(Cow::Owned(whole.to_string())),
            Data::Uint(whole) => Self::Word(Cow::Owned(whole.to_string())),
            Data::Float(float) => Self::Word(float_text(*float)),
            Data::Time(text) => Self::Word(Cow::Owned(text.clone())),
            Data::Text(text) => Self::Text(text),
            Data::Bytes(bytes) => Self::Binary(bytes),
            Data::List(items) => Self::List(items.iter().map(Child::Data).collect()),
            Data::Map(entries) => {
                let mut entries: Vec<_> = entries.iter().map(|(k, v)| (k, v)).collect();
                order::sort_by(&mut entries, |a, b| compare_keys(a.0, b.0));
                let children = |(key, value)| (Child::Data(key), Child::Data(value));
                Self::Map(entries.into_iter().map(children).collect())
            }
            Data::Struct(fields) => {
                let children = |(key, value): &'value (String, Data)| {
                    (Child::Key(key.as_str()), Child::Data(value))
                };
                Self::Map(fields.iter().map(children).collect())
            }
        }
    }

    fn word(word: &'static str) -> Self {
        Self::Word(Cow::Borrowed(word))
    }
}

fn float_text(float: f64) -> Cow<'static, str> {
    match float {
        _ if float.is_nan() => Cow::Borrowed(".nan"),
        f64::INFINITY => Cow::Borrowed(".inf"),
        f64::NEG_INFINITY => Cow::Borrowed("-.inf"),
        _ => Cow::Owned(num::format_general(float)),
    }
}

/// Numbers first, then by kind, and strings in their natural order.
fn compare_keys(a: &Data, b: &Data) -> Ordering {
    let number = |data: &Data| match data {
        Data::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Data::Int(whole) => Some(*whole as f64),
        Data::Uint(whole) => Some(*whole as f64),
        Data::Float(float) => Some(*float),
        _ => None,
    };
    let kind = |data: &Data| match data {
        Data::Null => 0,
        Data::Bool(_) => 1,
        Data::Int(_) => 2,
        Data::Uint(_) => 3,
        Data::Float(_) => 4,
        Data::Text(_) | Data::Bytes(_) => 5,
        _ => 6,
    };
    match (number(a), number(b), a, b) {
        (Some(a_number), Some(b_number), ..) => {
            a_number.total_cmp(&b_number).then(kind(a).cmp(&kind(b)))
        }
        (_, _, Data::Text(a), Data::Text(b)) => order::compare(a, b, Dialect::V3),
        (_, _, Data::Time(a), Data::Time(b)) => a.cmp(b),
        _ => kind(a).cmp(&kind(b)),
    }
}

/// A list or object that is being written, and the indentation to return to after it.
#[derive(Debug)]
struct Open<'value> {
    outer: Option<usize>,
    rest: Rest<'value>,
}

#[derive(Debug)]
enum Rest<'value> {
    Entries(std::vec::IntoIter<(Child<'value>, Child<'value>)>),
    Items(std::vec::IntoIter<Child<'value>>),
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Nothing,
    Item,
    Entry,
}

/// The state of the output. The flags are named after what they record.
#[derive(Debug)]
struct Printer {
    out: String,
    dialect: Dialect,
    column: usize,
    /// `None` at the top level.
    indent: Option<usize>,
    /// The last output was a space, or counts as one.
    after_space: bool,
    /// The current line has only indentation and indicators that open an item.
    line_is_indent: bool,
}

impl Printer {
    fn new(dialect: Dialect) -> Self {
        Self {
            out: String::new(),
            dialect,
            column: 0,
            indent: None,
            after_space: true,
            line_is_indent: true,
        }
    }

    /// The indentation of one level, and of block scalars.
    fn step(&self) -> usize {
        match self.dialect {
            Dialect::V2 => 2,
            Dialect::V3 => 4,
        }
    }

    /// The indentation of a value inside the current one.
    fn deeper(&self, outer: usize, within: Within) -> usize {
        match (self.dialect, within) {
            (Dialect::V2, _) | (Dialect::V3, Within::Item) => outer + 2,
            // To the next multiple.
            (Dialect::V3, _) => (outer + 4) / 4 * 4,
        }
    }

    /// Keeps its own stack, because values may be nested to any depth.
    fn document(&mut self, root: Child<'_>) {
        let mut open = Vec::new();
        open.extend(self.node(Node::of(root), Within::Nothing));
        while let Some(Open { outer, rest }) = open.last_mut() {
            let child = match rest {
                Rest::Entries(entries) => entries.next().map(|(key, value)| {
                    self.key(key);
                    self.node(Node::of(value), Within::Entry)
                }),
                Rest::Items(items) => items.next().map(|item| {
                    self.start_line();
                    self.mark("-", true, true);
                    self.node(Node::of(item), Within::Item)
                }),
            };
            if let Some(child) = child {
                open.extend(child);
            } else {
                self.indent = *outer;
                open.pop();
            }
        }
        self.start_line();
    }

    /// Writes a scalar, or opens a list or object.
    fn node<'value>(&mut self, node: Node<'value>, within: Within) -> Option<Open<'value>> {
        match node {
            Node::Word(word) => self.bare(&word),
            Node::Text(text) => {
                let style = Analysis::of(text, self.dialect).style(text, false, self.dialect);
                self.text(text, style, true, within);
            }
            Node::Binary(bytes) => self.binary(bytes, within),
            Node::Map(entries) if entries.is_empty() => self.empty("{", "}"),
            Node::List(items) if items.is_empty() => self.empty("[", "]"),
            Node::Map(entries) => {
                let outer = self.indent;
                self.indent = Some(outer.map_or(0, |outer| self.deeper(outer, within)));
                return Some(Open { outer, rest: Rest::Entries(entries.into_iter()) });
            }
            Node::List(items) => {
                let outer = self.indent;
                // In manifests, the items of a list below a key have the same indentation as the
                // key.
                let level =
                    self.dialect == Dialect::V2 && within == Within::Entry && !self.line_is_indent;
                let deeper = |outer| if level { outer } else { self.deeper(outer, within) };
                self.indent = Some(outer.map_or(0, deeper));
                return Some(Open { outer, rest: Rest::Items(items.into_iter()) });
            }
        }
        None
    }

    fn key(&mut self, key: Child<'_>) {
        self.start_line();
        let text = match Node::of(key) {
            Node::Text(text) => text,
            Node::Binary(bytes) => {
                self.binary(bytes, Within::Entry);
                return self.mark(":", false, false);
            }
            Node::Word(word) => {
                self.bare(&word);
                return self.mark(":", false, false);
            }
            // No other keys are read, and none can be made.
            Node::Map(_) | Node::List(_) => {
                self.empty("{", "}");
                return self.mark(":", false, false);
            }
        };
        let analysis = Analysis::of(text, self.dialect);
        if analysis.multiline || text.len() > LONGEST_SIMPLE_KEY {
            self.mark("?", true, true);
            self.text(text, analysis.style(text, false, self.dialect), true, Within::Entry);
            self.start_line();
            self.mark(":", true, true);
        } else {
            self.text(text, analysis.style(text, true, self.dialect), false, Within::Entry);
            self.mark(":", false, false);
        }
    }

    /// Writes a string that is not valid UTF-8.
    fn binary(&mut self, bytes: &[u8], within: Within) {
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.mark("!!binary", true, false);
        if encoded.len() < BINARY_WIDTH {
            return self.bare(&encoded);
        }
        let mut lines = String::with_capacity(encoded.len() + encoded.len() / BINARY_WIDTH + 1);
        for (at, c) in encoded.char_indices() {
            if at > 0 && at % BINARY_WIDTH == 0 {
                lines.push('\n');
            }
            lines.push(c);
        }
        lines.push('\n');
        self.text(&lines, Style::Literal, false, within);
    }

    fn empty(&mut self, opening: &str, closing: &str) {
        self.mark(opening, true, false);
        self.mark(closing, false, false);
    }

    fn text(&mut self, text: &str, style: Style, may_fold: bool, within: Within) {
        let outer = self.indent;
        let step = self.step();
        self.indent = Some(outer.map_or(step, |outer| self.deeper(outer, within)));
        let may_fold = may_fold && self.dialect == Dialect::V2;
        match style {
            Style::Plain if !may_fold || self.column + text.len() <= WIDTH => self.bare(text),
            Style::Plain => self.plain(text),
            Style::SingleQuoted => self.single_quoted(text, may_fold),
            Style::DoubleQuoted => self.double_quoted(text, may_fold),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    /// Writes a string that needs neither quotes nor folding.
    fn bare(&mut self, text: &str) {
        if !self.after_space {
            self.put(' ');
        }
        self.put_all(text);
        self.after_space = false;
        self.line_is_indent = false;
    }

    fn plain(&mut self, text: &str) {
        if !self.after_space {
            self.put(' ');
        }
        let (mut rest, mut after_space) = (text, false);
        while !rest.is_empty() {
            let (word, after) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
            if !word.is_empty() {
                self.put_all(word);
                (after_space, self.line_is_indent) = (false, false);
            }
            let Some(after) = after.strip_prefix(' ') else { break };
            if !after_space && self.column > WIDTH && !after.starts_with(' ') {
                self.start_line();
            } else {
                self.put(' ');
            }
            (rest, after_space) = (after, true);
        }
        self.after_space = false;
        self.line_is_indent = false;
    }

    fn single_quoted(&mut self, text: &str, may_fold: bool) {
        self.mark("'", true, false);
        let (mut rest, mut after_space, mut after_break) = (text, false, false);
        while let Some(c) = rest.chars().next() {
            if is_break(c) {
                self.end_line(c);
                self.line_is_indent = true;
                after_break = true;
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
                continue;
            }
            if std::mem::take(&mut after_break) {
                self.start_line();
            }
            let is_special = |c: char| matches!(c, ' ' | '\'') || is_break(c);
            let (word, after) = rest.split_at(rest.find(is_special).unwrap_or(rest.len()));
            if !word.is_empty() {
                self.put_all(word);
                (after_space, self.line_is_indent) = (false, false);
                rest = after;
                continue;
            }
            let is_first = rest.len() == text.len();
            rest = rest.get(1..).unwrap_or_default();
            let is_inside = !is_first && !rest.is_empty() && !rest.starts_with(' ');
            if c == ' ' && may_fold && !after_space && self.column > WIDTH && is_inside {
                self.start_line();
            } else {
                self.put(c);
            }
            if c == '\'' {
                self.put(c);
            }
            after_space = c == ' ';
            self.line_is_indent &= after_space;
        }
        self.mark("'", false, false);
    }

    fn double_quoted(&mut self, text: &str, may_fold: bool) {
        self.mark("\"", true, false);
        // The newer version then takes every character for a byte order mark.
        let everything = self.dialect == Dialect::V3 && text.starts_with('\u{feff}');
        let mut chars = text.chars().peekable();
        let (mut at_start, mut after_space) = (true, false);
        while let Some(c) = chars.next() {
            let inside = !at_start && chars.peek().is_some();
            at_start = false;
            if everything
                || !is_printable(c, self.dialect)
                || is_break(c)
                || matches!(c, '"' | '\\')
            {
                self.escape(c);
            } else if c == ' ' && may_fold && !after_space && self.column > WIDTH && inside {
                self.start_line();
                if chars.peek() == Some(&' ') {
                    self.put('\\');
                }
            } else {
                self.put(c);
            }
            after_space = c == ' ';
        }
        self.mark("\"", false, false);
    }

    fn escape(&mut self, c: char) {
        self.put('\\');
        let short = match c {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => c,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(c);
                let escape = match code {
                    0..=0xff => format!("x{code:02X}"),
                    0x100..=0xffff => format!("u{code:04X}"),
                    _ => format!("U{code:08X}"),
                };
                self.out.push_str(&escape);
                self.column += escape.len();
                return;
            }
        };
        self.put(short);
    }

    fn literal(&mut self, text: &str) {
        self.mark("|", true, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            let step = self.step().to_string();
            self.mark(&step, false, false);
        }
        // The number of trailing line breaks that belong to the string.
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next().is_none_or(is_break)) {
            (false, _) => self.mark("-", false, false),
            (true, true) => self.mark("+", false, false),
            (true, false) => {}
        }
        // The newer version ends this line only before a line with content. So it loses a line break
        // at the start of the text.
        if self.dialect == Dialect::V2 {
            self.end_line('\n');
            self.line_is_indent = true;
        }
        self.after_space = true;
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.find(is_break).unwrap_or(rest.len()));
            if !line.is_empty() {
                self.start_line();
                self.put_all(line);
                self.line_is_indent = false;
            }
            let mut after = after.chars();
            if let Some(c) = after.next() {
                self.end_line(c);
                self.line_is_indent = true;
            }
            rest = after.as_str();
        }
    }

    /// Writes a YAML indicator. Some leave the line open for another item.
    fn mark(&mut self, mark: &str, needs_space: bool, opens_item: bool) {
        if needs_space && !self.after_space {
            self.put(' ');
        }
        self.out.push_str(mark);
        self.column += mark.len();
        self.after_space = false;
        self.line_is_indent &= opens_item;
    }

    /// Moves to the current indentation, on a new line unless this line is still within it.
    fn start_line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        let passed = self.column > indent || (self.column == indent && !self.after_space);
        if !self.line_is_indent || passed {
            self.end_line('\n');
        }
        while self.column < indent {
            self.put(' ');
        }
        self.after_space = true;
        self.line_is_indent = true;
    }

    fn end_line(&mut self, line_break: char) {
        self.out.push(line_break);
        self.column = 0;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_all(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }
}

/// Upstream prints a number in two steps: first as JSON in Go, then as YAML of the result.
fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    let Some(float) = number.as_f64() else { return number.to_string() };
    let json = num::format_float(float);
    if json == "-0" {
        return "0".to_owned();
    }
    if json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok() {
        return json;
    }
    num::format_general(float)
}
