//! Prints values exactly like `kubectl -o yaml`.

use biplane_go::num;

use super::analyse::{Analysis, Style, is_break, is_printable};
use super::order;
use crate::{Map, Number, Value};

/// Lines are folded at the first space beyond this column.
const WIDTH: usize = 80;
const INDENT: usize = 2;
/// Longer keys, in bytes, are written with a question mark in front.
const LONGEST_SIMPLE_KEY: usize = 128;

/// Prints one value as a YAML document, without a `---` line.
pub fn to_string(value: &Value) -> String {
    let mut printer = Printer::new();
    printer.document(Node::of(value));
    printer.out
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

/// A value, by how it is printed.
#[derive(Clone, Copy, Debug)]
enum Node<'value> {
    Map(&'value Map<String, Value>),
    List(&'value [Value]),
    Text(&'value str),
    Number(&'value Number),
    Word(&'static str),
}

impl<'value> Node<'value> {
    fn of(value: &'value Value) -> Self {
        match value {
            Value::Null => Self::Word("null"),
            Value::Bool(true) => Self::Word("true"),
            Value::Bool(false) => Self::Word("false"),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items),
            Value::Object(map) => Self::Map(map),
        }
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
    Entries(std::vec::IntoIter<(&'value str, &'value Value)>),
    Items(std::slice::Iter<'value, Value>),
}

/// The state of the output. The flags are named after what they record.
#[derive(Debug)]
struct Printer {
    out: String,
    column: usize,
    /// `None` at the top level.
    indent: Option<usize>,
    /// The last output was a space, or counts as one.
    after_space: bool,
    /// The current line has only indentation and indicators that open an item.
    line_is_indent: bool,
}

impl Printer {
    fn new() -> Self {
        Self {
            out: String::new(),
            column: 0,
            indent: None,
            after_space: true,
            line_is_indent: true,
        }
    }

    /// Keeps its own stack, because values may be nested to any depth.
    fn document(&mut self, root: Node<'_>) {
        let mut open = Vec::new();
        open.extend(self.node(root, false));
        while let Some(Open { outer, rest }) = open.last_mut() {
            let child = match rest {
                Rest::Entries(entries) => entries.next().map(|(key, value)| {
                    self.key(key);
                    self.node(Node::of(value), true)
                }),
                Rest::Items(items) => items.next().map(|item| {
                    self.start_line();
                    self.mark("-", true, true);
                    self.node(Node::of(item), false)
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
    fn node<'value>(&mut self, node: Node<'value>, of_key: bool) -> Option<Open<'value>> {
        match node {
            Node::Word(word) => self.bare(word),
            Node::Number(number) => self.bare(&number_text(number)),
            Node::Text(text) => {
                let style = Analysis::of(text).style(text, false);
                self.text(text, style, true);
            }
            Node::Map(map) if map.is_empty() => self.empty("{", "}"),
            Node::List([]) => self.empty("[", "]"),
            Node::Map(map) => {
                let outer = self.indent;
                self.indent = Some(outer.map_or(0, |indent| indent + INDENT));
                let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.as_str(), v)).collect();
                order::sort_by_key(&mut entries);
                return Some(Open { outer, rest: Rest::Entries(entries.into_iter()) });
            }
            Node::List(items) => {
                let outer = self.indent;
                // The items of a list below a key have the same indentation as the key.
                let step = if of_key && !self.line_is_indent { 0 } else { INDENT };
                self.indent = Some(outer.map_or(0, |indent| indent + step));
                return Some(Open { outer, rest: Rest::Items(items.iter()) });
            }
        }
        None
    }

    fn key(&mut self, key: &str) {
        self.start_line();
        let analysis = Analysis::of(key);
        if analysis.multiline || key.len() > LONGEST_SIMPLE_KEY {
            self.mark("?", true, true);
            self.text(key, analysis.style(key, false), true);
            self.start_line();
            self.mark(":", true, true);
        } else {
            self.text(key, analysis.style(key, true), false);
            self.mark(":", false, false);
        }
    }

    fn empty(&mut self, opening: &str, closing: &str) {
        self.mark(opening, true, false);
        self.mark(closing, false, false);
    }

    fn text(&mut self, text: &str, style: Style, may_fold: bool) {
        let outer = self.indent;
        self.indent = Some(outer.map_or(INDENT, |indent| indent + INDENT));
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
        self.out.push_str(text);
        self.column += text.chars().count();
        self.after_space = false;
        self.line_is_indent = false;
    }

    fn plain(&mut self, text: &str) {
        if !self.after_space {
            self.put(' ');
        }
        let mut chars = text.chars().peekable();
        let mut after_space = false;
        while let Some(c) = chars.next() {
            let foldable = c == ' ' && !after_space && self.column > WIDTH;
            if foldable && chars.peek() != Some(&' ') {
                self.start_line();
            } else {
                self.put(c);
            }
            after_space = c == ' ';
            if !after_space {
                self.line_is_indent = false;
            }
        }
        self.after_space = false;
        self.line_is_indent = false;
    }

    fn single_quoted(&mut self, text: &str, may_fold: bool) {
        self.mark("'", true, false);
        let mut chars = text.chars().peekable();
        let (mut at_start, mut after_space) = (true, false);
        while let Some(c) = chars.next() {
            let inside = !at_start && chars.peek().is_some_and(|next| *next != ' ');
            at_start = false;
            if c == ' ' && may_fold && !after_space && self.column > WIDTH && inside {
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
        let mut chars = text.chars().peekable();
        let (mut at_start, mut after_space) = (true, false);
        while let Some(c) = chars.next() {
            let inside = !at_start && chars.peek().is_some();
            at_start = false;
            if !is_printable(c) || is_break(c) || matches!(c, '"' | '\\') {
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
            self.mark("2", false, false);
        }
        // The number of trailing line breaks that belong to the string.
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next().is_none_or(is_break)) {
            (false, _) => self.mark("-", false, false),
            (true, true) => self.mark("+", false, false),
            (true, false) => {}
        }
        self.end_line('\n');
        self.line_is_indent = true;
        self.after_space = true;
        let mut after_break = true;
        for c in text.chars() {
            if is_break(c) {
                self.end_line(c);
                self.line_is_indent = true;
                after_break = true;
            } else {
                if after_break {
                    self.start_line();
                }
                self.put(c);
                self.line_is_indent = false;
                after_break = false;
            }
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
