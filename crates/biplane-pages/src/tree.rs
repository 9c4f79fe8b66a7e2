//! Draws a document as a tree that folds. Large ones are an outline with sizes, whose parts have
//! pages of their own.
//!
//! A part is named by positions, not by the names of its fields: those do not belong in addresses.

use biplane_recorder::query::difference::is_redacted;
use biplane_recorder::query::time::bytes;
use maud::{Markup, html};
use serde_json::Value;

use crate::draw;
use crate::parts;

/// How many children of a value one page has.
pub const CHILDREN: usize = 200;
/// How deep an outline goes.
const OUTLINE: usize = 3;
/// A part below the outline is drawn if its text is not longer than this.
const SMALL: usize = 4 * 1024;
/// The longest text that is drawn as a whole, and how much of a longer one its own page has.
const TEXT: usize = 2 * 1024;
const TEXT_PAGE: usize = 32 * 1024;
/// About how many bytes all of it takes.
const BUDGET: usize = 64 * 1024;
/// About how many bytes the markup of a line takes.
const LINE: usize = 90;

/// Where a part is: the position in each value on the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position(pub Vec<usize>);

impl Position {
    /// Reads the text of an address: `0.3.1`.
    pub fn of_text(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>().map(Self)
    }

    /// The text in addresses.
    pub fn text(&self) -> String {
        self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(".")
    }

    fn child(&self, at: usize) -> Self {
        Self(self.0.iter().copied().chain([at]).collect())
    }
}

/// The part of a document at a position, with the names on the way to it.
pub fn part<'a>(document: &'a Value, position: &Position) -> Option<(Vec<String>, &'a Value)> {
    let mut names = Vec::new();
    let mut value = document;
    for at in &position.0 {
        let (name, child) = child(value, *at)?;
        names.push(name);
        value = child;
    }
    Some((names, value))
}

/// The names on the way to a position, as far as the document goes.
pub fn names_towards(document: &Value, position: &Position) -> Vec<String> {
    let mut value = document;
    let children = position.0.iter().map_while(|at| {
        let (name, child) = child(value, *at)?;
        value = child;
        Some(name)
    });
    children.collect()
}

fn child(value: &Value, at: usize) -> Option<(String, &Value)> {
    match value {
        Value::Object(fields) => fields.iter().nth(at).map(|(name, child)| (name.clone(), child)),
        Value::Array(items) => items.get(at).map(|child| (format!("[{at}]"), child)),
        _ => None,
    }
}

/// What stands for a part that was not read: this, and how many bytes it has.
const UNREAD: &str = "\u{1}";

/// What stands for a part of so many bytes that was not read. A page of its own reads it.
pub fn unread(bytes: usize) -> Value {
    format!("{UNREAD}{bytes}").into()
}

fn unread_bytes(text: &str) -> Option<usize> {
    text.strip_prefix(UNREAD)?.parse().ok()
}

/// Draws a part of a document. `page` is the address of its page without the position, and `from`
/// the first child, or the first character of a text, that is shown.
pub fn document(document: &Value, position: &Position, from: usize, page: &str) -> Option<Markup> {
    let (names, value) = part(document, position)?;
    // What fits on a screen or two is not folded.
    let is_small = size(value) <= SMALL;
    let mut drawing = Drawing { page, left: BUDGET, is_small };
    let body = match value {
        Value::String(text) if text.len() > TEXT => drawing.long_text(text, position, from),
        Value::Object(_) | Value::Array(_) => drawing.children(value, position, from, 0),
        value => html! { p { (scalar(value)) } },
    };
    Some(html! {
        @if !names.is_empty() {
            p.path {
                a href=(page) rel="up" { "All of it" }
                span.data { (names.join(" › ")) }
            }
        }
        div.tree.data { (body) }
    })
}

/// How long a value is as JSON.
pub fn size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => unread_bytes(text).unwrap_or(text.len() + 2),
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>()
        }
    }
}

fn scalar(value: &Value) -> Markup {
    if is_redacted(value) {
        return draw::chip();
    }
    match value {
        Value::String(text) if text.contains('\n') => html! { pre { (text) } },
        Value::String(text) if !text.is_empty() => html! { (text) },
        value => html! { (biplane_go::json::to_string(value)) },
    }
}

fn count(value: &Value) -> String {
    let counted =
        |count: usize, noun: &str| parts::counted(i64::try_from(count).unwrap_or(i64::MAX), noun);
    match value {
        Value::Object(fields) => counted(fields.len(), "field"),
        Value::Array(items) => counted(items.len(), "item"),
        _ => String::new(),
    }
}

struct Drawing<'a> {
    page: &'a str,
    left: usize,
    /// Whether all folds are open.
    is_small: bool,
}

impl Drawing<'_> {
    fn href(&self, position: &Position, from: usize) -> String {
        let sign = if self.page.contains('?') { '&' } else { '?' };
        let from = if from == 0 { String::new() } else { format!("&o={from}") };
        format!("{}{sign}p={}{from}", self.page, position.text())
    }

    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }

    fn children(&mut self, value: &Value, at: &Position, from: usize, depth: usize) -> Markup {
        let named: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, v)| (name.clone(), v)).collect(),
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, v)| (format!("[{at}]"), v)).collect()
            }
            _ => Vec::new(),
        };
        let total = named.len();
        let shown: Vec<_> = named.into_iter().enumerate().skip(from).take(CHILDREN).collect();
        let end = from + shown.len();
        let mut drawn = Vec::new();
        for (index, (name, child)) in shown {
            drawn.push(self.child(&name, child, &at.child(index), depth));
        }
        html! {
            ul {
                @for line in drawn { li { (line) } }
                @if total == 0 { li.dim { "empty" } }
            }
            @if from > 0 || end < total {
                p.pages {
                    @if from > 0 {
                        a href=(self.href(at, from.saturating_sub(CHILDREN))) rel="prev" { "Before" }
                    }
                    span.dim { (from + 1) " to " (end) " of " (parts::number(i64::try_from(total).unwrap_or(i64::MAX))) }
                    @if end < total { a href=(self.href(at, end)) rel="next" { "Next" } }
                }
            }
        }
    }

    fn child(&mut self, name: &str, value: &Value, at: &Position, depth: usize) -> Markup {
        self.spend(LINE + name.len());
        let is_text = |most: usize| matches!(value, Value::String(text) if text.len() > most);
        match value {
            Value::String(text) if unread_bytes(text).is_some() => html! {
                span.name { (name) ": " }
                a href=(self.href(at, 0)) { "all of it" }
                " " span.dim { (bytes(size(value))) }
            },
            Value::String(text) if is_text(TEXT) || is_text(self.left) => {
                self.spend(3 * LINE);
                html! {
                    span.name { (name) ": " } (parts::cut(text, 200)) " "
                    a href=(self.href(at, 0)) { "all " (bytes(text.len())) }
                }
            }
            Value::Object(_) | Value::Array(_) => {
                let size = size(value);
                let is_small = size <= SMALL || depth + 1 < OUTLINE;
                // Markup takes about four times what the text takes.
                if !is_small || self.left < size.min(SMALL) * 4 {
                    return html! {
                        span.name { (name) ": " }
                        a href=(self.href(at, 0)) { (count(value)) }
                        " " span.dim { (bytes(size)) }
                    };
                }
                let is_open = self.is_small || (depth == 0 && size <= SMALL);
                let below = self.children(value, at, 0, depth + 1);
                html! {
                    details open[is_open] {
                        summary { span.name { (name) } " " span.dim { (count(value)) } }
                        (below)
                    }
                }
            }
            value => {
                if let Value::String(text) = value {
                    self.spend(text.len());
                }
                html! { span.name { (name) ": " } (scalar(value)) }
            }
        }
    }

    fn long_text(&mut self, text: &str, at: &Position, from: usize) -> Markup {
        let start = text.char_indices().map(|(at, _)| at).find(|at| *at >= from);
        let start = start.unwrap_or(text.len());
        let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= start + TEXT_PAGE);
        let end = end.unwrap_or(text.len());
        html! {
            pre { (text.get(start..end).unwrap_or_default()) }
            @if end < text.len() { p.pages { a href=(self.href(at, end)) rel="next" { "Next" } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drawn(value: &Value, position: &str, from: usize) -> String {
        let position = Position::of_text(position).unwrap();
        document(value, &position, from, "/p").map(Markup::into_string).unwrap_or_default()
    }

    #[test]
    fn small_documents_are_whole_and_values_inert() {
        let text =
            drawn(&json!({"a": {"b": ["<script>", 1, null]}, "secret": "**REDACTED**"}), "", 0);
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script"), "{text}");
        assert!(text.contains("redacted"), "{text}");
    }

    #[test]
    fn parts_are_named_by_position() {
        let value = json!({"a": {"b": [{"c": 7}]}});
        let text = drawn(&value, "0.0.0", 0);
        assert!(text.contains("a › b › [0]") && text.contains("c: "), "{text}");
        assert_eq!(drawn(&value, "0.5", 0), "");
        assert_eq!(Position::of_text("0.x"), None);
    }

    #[test]
    fn large_documents_are_outlines_with_sizes() {
        let body = json!({"text": "x".repeat(4000), "n": 1});
        let many: Vec<Value> = (0..1000).map(|_| body.clone()).collect();
        let value = json!({"resources": many, "long": "y".repeat(1_000_000)});
        for position in ["", "0", "1"] {
            let text = drawn(&value, position, 0);
            assert!(text.len() < 90 * 1024, "{position}: {}", text.len());
        }
        let text = drawn(&value, "1", 0);
        assert!(
            text.contains("1 to 200 of 1,000") && text.contains("p=1&amp;o=200"),
            "{text:.300}"
        );
        assert!(drawn(&value, "1", 800).contains("801 to 1000"));
        assert!(drawn(&value, "0", 40_000).contains("yyy"));
    }
}
