//! The fast path for plain block YAML, many times faster than the full parser.
//!
//! It reads blocks of keys and items, bracketed values on one line, plain and quoted scalars, which
//! may continue on the lines below, and literal block scalars. For anything else, including tabs and
//! errors, it returns nothing and the full parser reads the document. It must read everything in the
//! same way as the full parser.

use std::borrow::Cow;

use super::super::build::{Key, plain_key, plain_value};
use super::Root;
use crate::{Map, Value};

/// Deeper than hand-written documents.
const MAX_DEPTH: usize = 64;
/// Longer keys need a question mark in front.
const MAX_KEY: usize = 512;

/// Reads a document if it is plain block YAML.
pub(super) fn read(text: &str) -> Option<Root> {
    let ordinary = |b: &u8| (b' '..=b'~').contains(b) || *b == b'\n';
    // Without an early exit, so that the check can be vectorized.
    if !text.as_bytes().chunks(256).all(|bytes| bytes.iter().fold(true, |all, b| all & ordinary(b)))
    {
        return None;
    }
    // A document may begin with a line that separates it from others.
    let below = text.strip_prefix("---\n");
    let number = usize::from(below.is_some());
    let mut reader = Reader { rest: below.unwrap_or(text), number, depth: 0, line: None };
    reader.advance()?;
    let first = reader.line?;
    let value = reader.block(first.indent)?;
    let at_end = reader.line.is_none();
    at_end.then_some(Root { value: Some(value), line: first.number })
}

/// A line with content.
#[derive(Clone, Copy)]
struct Line<'text> {
    number: usize,
    indent: usize,
    /// The text after the indentation, without trailing spaces.
    content: &'text str,
}

impl Line<'_> {
    fn is_item(&self) -> bool {
        self.content == "-" || self.content.starts_with("- ")
    }
}

/// The content of a line, or of the text after a dash or a key.
enum Content<'text> {
    /// A key, and the text after its colon.
    Entry(&'text str, &'text str),
    Scalar(Value),
}

struct Reader<'text> {
    /// The text below the line.
    rest: &'text str,
    /// The number of lines read so far.
    number: usize,
    depth: usize,
    line: Option<Line<'text>>,
}

impl<'text> Reader<'text> {
    /// Moves to the next line with content.
    fn advance(&mut self) -> Option<()> {
        loop {
            let Some(raw) = self.take() else {
                self.line = None;
                return Some(());
            };
            let content = raw.trim_ascii_start();
            let indent = raw.len() - content.len();
            let content = content.trim_ascii_end();
            match content.as_bytes() {
                [] | [b'#', ..] => {}
                [b'-', b'-', b'-', ..] | [b'.', b'.', b'.', ..] if indent == 0 => return None,
                _ => {
                    self.line = Some(Line { number: self.number, indent, content });
                    return Some(());
                }
            }
        }
    }

    /// The next line, without its line break.
    fn take(&mut self) -> Option<&'text str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }

    /// The value that begins on this line, at this indentation.
    fn block(&mut self, indent: usize) -> Option<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let line = self.line?;
        let value = if line.is_item() {
            self.list(indent)?
        } else if line.content.starts_with(['{', '[']) {
            self.on_this_line(line.content, indent)?
        } else {
            self.object(indent)?
        };
        self.depth -= 1;
        Some(value)
    }

    fn object(&mut self, indent: usize) -> Option<Value> {
        let mut map = Map::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            if line.indent > indent || line.is_item() {
                return None;
            }
            let Content::Entry(key, after) = content(line.content)? else { return None };
            let key = key_of(key)?;
            let value = if after.is_empty() || after.starts_with('#') {
                self.advance()?;
                match self.line {
                    Some(next) if next.indent > indent => self.block(next.indent)?,
                    // A list may have the same indentation as its key.
                    Some(next) if next.indent == indent && next.is_item() => self.block(indent)?,
                    _ => Value::Null,
                }
            } else {
                self.on_this_line(after, indent)?
            };
            map.insert(key, value);
        }
        Some(Value::Object(map))
    }

    fn list(&mut self, indent: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.line.filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return None;
            }
            if !line.is_item() {
                break;
            }
            let after = line.content.strip_prefix('-')?.trim_ascii_start();
            items.push(if after.is_empty() || after.starts_with('#') {
                self.advance()?;
                match self.line {
                    Some(next) if next.indent > indent => self.block(next.indent)?,
                    _ => Value::Null,
                }
            } else {
                let column = indent + line.content.len() - after.len();
                let inner = Line { indent: column, content: after, ..line };
                if inner.is_item() || matches!(content(after), Some(Content::Entry(..))) {
                    self.line = Some(inner);
                    self.block(column)?
                } else {
                    self.on_this_line(after, indent)?
                }
            });
        }
        Some(Value::Array(items))
    }

    /// A scalar after a dash or a key. Then moves to the next line.
    fn on_this_line(&mut self, text: &'text str, parent: usize) -> Option<Value> {
        let value = match text.as_bytes().first()? {
            b'|' if matches!(text, "|" | "|-") => self.literal(text == "|", parent)?,
            b'"' | b'\'' => self.quoted(text, parent)?,
            b'{' | b'[' => scalar(text)?,
            _ => scalar(&self.continued(text, parent)?)?,
        };
        // Whoever comes next refuses a line that is indented more than it may be.
        self.advance()?;
        Some(value)
    }

    /// The next line with content that is indented more than a parent, and the number of empty lines
    /// before it.
    fn below(&mut self, parent: usize) -> Option<(usize, &'text str)> {
        let before = (self.rest, self.number);
        let mut empty = 0;
        while let Some(line) = self.take() {
            let content = line.trim_ascii_start();
            if content.is_empty() {
                empty += 1;
            } else if line.len() - content.len() > parent {
                return Some((empty, content.trim_ascii_end()));
            } else {
                break;
            }
        }
        (self.rest, self.number) = before;
        None
    }

    /// A plain scalar with its lines below. Returns nothing if they have what ends a scalar.
    fn continued(&mut self, first: &'text str, parent: usize) -> Option<Cow<'text, str>> {
        let mut all = Cow::Borrowed(first);
        // A comment ends the scalar.
        if first.contains(" #") {
            return Some(all);
        }
        loop {
            let before = (self.rest, self.number);
            let Some((empty, line)) = self.below(parent) else { return Some(all) };
            if line.starts_with('#') {
                (self.rest, self.number) = before;
                return Some(all);
            }
            if line.contains(": ") || line.ends_with(':') || line.contains(" #") {
                return None;
            }
            fold(all.to_mut(), empty);
            all.to_mut().push_str(line);
        }
    }

    /// A quoted scalar, which may end on a line below.
    fn quoted(&mut self, text: &'text str, parent: usize) -> Option<Value> {
        let quote = text.chars().next()?;
        let (mut value, mut rest) = (String::new(), text.get(1..)?);
        loop {
            match until_quote(rest, quote, &mut value)? {
                End::Here(after) => return ends(after).then_some(Value::String(value)),
                End::Below => {
                    let (empty, line) = self.below(parent)?;
                    fold(&mut value, empty);
                    rest = line;
                }
            }
        }
    }

    /// The lines of a literal block scalar, which are indented more than its parent.
    fn literal(&mut self, keeps_break: bool, parent: usize) -> Option<Value> {
        // Callers differ on a last line without a line break.
        if !self.rest.ends_with('\n') {
            return None;
        }
        let mut text = String::new();
        let mut blank = 0;
        let mut indent = None;
        loop {
            let before = (self.rest, self.number);
            let Some(line) = self.take() else { break };
            let spaces = line.len() - line.trim_ascii_start().len();
            if spaces == line.len() && indent.is_none_or(|indent| spaces <= indent) {
                if indent.is_none() && spaces > 0 {
                    return None;
                }
                blank += 1;
                continue;
            }
            let indent = *indent.get_or_insert(spaces);
            if spaces < indent || indent <= parent {
                (self.rest, self.number) = before;
                break;
            }
            text.extend(std::iter::repeat_n('\n', std::mem::take(&mut blank)));
            text.push_str(line.get(indent..)?);
            text.push('\n');
        }
        if text.is_empty() {
            return None;
        }
        if !keeps_break {
            text.pop();
        }
        Some(Value::String(text))
    }
}

/// Appends what stands for a line break with so many empty lines below it.
fn fold(text: &mut String, empty: usize) {
    match empty {
        0 => text.push(' '),
        _ => text.extend(std::iter::repeat_n('\n', empty)),
    }
}

/// Where a quoted scalar ends.
enum End<'text> {
    /// On this line, before this text.
    Here(&'text str),
    Below,
}

/// Appends the content of a quoted scalar up to the quote that ends it, or to the end of the line.
/// Rare escapes are left to the full parser.
fn until_quote<'text>(text: &'text str, quote: char, out: &mut String) -> Option<End<'text>> {
    let mut rest = text;
    loop {
        let is_special = |c: char| c == quote || (c == '\\' && quote == '"');
        let Some(at) = rest.find(is_special) else {
            out.push_str(rest);
            return Some(End::Below);
        };
        let (before, special) = rest.split_at_checked(at)?;
        out.push_str(before);
        match special.as_bytes() {
            [b'\\', b'n', ..] => out.push('\n'),
            [b'\\', b't', ..] => out.push('\t'),
            [b'\\', escaped @ (b'"' | b'\\'), ..] => out.push(char::from(*escaped)),
            [b'\\', ..] => return None,
            [b'\'', b'\'', ..] => out.push('\''),
            _ => return special.get(1..).map(End::Here),
        }
        rest = special.get(2..)?;
    }
}

fn scalar(text: &str) -> Option<Value> {
    match content(text)? {
        Content::Scalar(value) => Some(value),
        Content::Entry(..) => None,
    }
}

/// Distinguishes a key from a scalar. A comment may follow.
fn content(text: &str) -> Option<Content<'_>> {
    let first = *text.as_bytes().first()?;
    match first {
        b'"' | b'\'' => quoted(text),
        b'{' | b'[' => {
            let (value, after) = bracketed(text, 0)?;
            ends(after).then_some(Content::Scalar(value))
        }
        // These characters would have a special meaning.
        b'?' | b':' | b',' | b']' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%'
        | b'@' | b'`' => None,
        b'-' if text.len() == 1 || text.starts_with("- ") => None,
        _ => plain(text),
    }
}

fn plain(text: &str) -> Option<Content<'_>> {
    let bytes = text.as_bytes();
    let mut end = bytes.len();
    for (at, &b) in bytes.iter().enumerate() {
        if b == b':' && matches!(bytes.get(at + 1), None | Some(b' ')) {
            let (key, after) = text.split_at_checked(at)?;
            let after = after.strip_prefix(':')?.trim_ascii_start();
            return Some(Content::Entry(key.trim_ascii_end(), after));
        }
        if b == b'#' && at > 0 && bytes.get(at - 1) == Some(&b' ') {
            end = at;
            break;
        }
    }
    plain_value(text.get(..end)?.trim_ascii_end()).map(Content::Scalar)
}

/// The content of a quoted string, and the text after it. Strings with escapes are left to the full
/// parser.
fn unquoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next()?;
    let (inner, after) = text.strip_prefix(quote)?.split_once(quote)?;
    let escapes = (quote == '"' && inner.contains('\\')) || after.starts_with(quote);
    (!escapes).then_some((inner, after))
}

fn quoted(text: &str) -> Option<Content<'_>> {
    let (inner, after) = unquoted(text)?;
    if let Some(after) = after.strip_prefix(':') {
        let value = after.trim_ascii_start();
        let is_entry = after.is_empty() || value.len() < after.len();
        let key = text.get(..inner.len() + 2)?;
        return is_entry.then_some(Content::Entry(key, value));
    }
    ends(after).then(|| Content::Scalar(Value::from(inner)))
}

/// Whether only a comment follows.
fn ends(after: &str) -> bool {
    after.is_empty() || (after.starts_with(' ') && after.trim_ascii_start().starts_with('#'))
}

/// A value in braces or brackets, or inside them, and the text after it.
fn bracketed(text: &str, depth: usize) -> Option<(Value, &str)> {
    if depth > MAX_DEPTH {
        return None;
    }
    match text.as_bytes().first()? {
        b'{' => {
            let mut map = Map::new();
            let mut rest = text.get(1..)?.trim_ascii_start();
            while !rest.starts_with('}') {
                let (key, after) = word(rest)?;
                let after = after.strip_prefix(':')?;
                let value = after.trim_ascii_start();
                if value.len() == after.len() && !rest.starts_with(['"', '\'']) {
                    return None;
                }
                let (value, after) = bracketed(value, depth + 1)?;
                map.insert(key_of(key)?, value);
                rest = separated(after, '}')?;
            }
            Some((Value::Object(map), rest.get(1..)?))
        }
        b'[' => {
            let mut items = Vec::new();
            let mut rest = text.get(1..)?.trim_ascii_start();
            while !rest.starts_with(']') {
                let (value, after) = bracketed(rest, depth + 1)?;
                items.push(value);
                rest = separated(after, ']')?;
            }
            Some((Value::Array(items), rest.get(1..)?))
        }
        b'"' | b'\'' => {
            let (text, after) = unquoted(text)?;
            Some((Value::from(text), after))
        }
        _ => {
            let (text, after) = word(text)?;
            Some((plain_value(text)?, after))
        }
    }
}

/// The text after the comma that follows a value in brackets, or from the closing bracket on.
fn separated(after: &str, end: char) -> Option<&str> {
    let after = after.trim_ascii_start();
    match after.strip_prefix(',') {
        Some(next) => Some(next.trim_ascii_start()),
        None => after.starts_with(end).then_some(after),
    }
}

/// A quoted string with its quotes, or a plain word, and the text after it.
fn word(text: &str) -> Option<(&str, &str)> {
    let length = if text.starts_with(['"', '\'']) {
        unquoted(text)?.0.len() + 2
    } else {
        let ordinary = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'/' | b'_');
        text.bytes().position(|b| !ordinary(b)).unwrap_or(text.len())
    };
    if length == 0 || text.get(..length)? == "-" {
        return None;
    }
    text.split_at_checked(length)
}

/// The key, from its spelling.
fn key_of(text: &str) -> Option<String> {
    if text.len() > MAX_KEY {
        return None;
    }
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.strip_suffix(quote).map(str::to_owned);
        }
    }
    match plain_key(text)? {
        Key::Name(name) => Some(name),
        Key::Merge => None,
    }
}

#[cfg(test)]
mod tests;
