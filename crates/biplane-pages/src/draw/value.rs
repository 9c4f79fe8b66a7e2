//! Values as text: short, unambiguous, and with what differs between two of them emphasised.

use std::borrow::Cow;

use biplane_recorder::query::difference::is_redacted;
use maud::{Markup, html};
use serde_json::Value;

use super::window::LONGEST;

/// How many characters that two long values share are shown on each side of what differs.
const AROUND: usize = 60;

/// The text of a value. A string has quotes only where it could be taken for something else.
pub(super) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) if !is_ambiguous(text) => Cow::Borrowed(text),
        value => Cow::Owned(biplane_go::json::to_string(value)),
    }
}

fn is_ambiguous(text: &str) -> bool {
    // Lines speak for themselves.
    let is_padded = text.trim() != text && !text.contains('\n');
    let is_short = text.len() < 64;
    let is_json = || is_short && serde_json::from_str::<Value>(text).is_ok();
    text.trim().is_empty() || is_padded || is_json()
}

/// A value on its own.
pub(super) fn one(value: &Value) -> Markup {
    if is_redacted(value) {
        return chip();
    }
    let text = text(value);
    let (shown, more) = start(&text, LONGEST);
    html! { (shown) (rest(more)) }
}

/// What stands for a value that was redacted.
pub fn chip() -> Markup {
    html! { span class="chip redacted" { "redacted" } }
}

/// A value and the one that replaced it.
pub(super) fn pair(before: &Value, after: &Value) -> Markup {
    let (was, is) = (text(before), text(after));
    let both =
        before.is_string() && after.is_string() && !is_redacted(before) && !is_redacted(after);
    let (old, new) = if both {
        let (start, end) = common(&was, &is);
        (emphasised(&was, start, end), emphasised(&is, start, end))
    } else {
        (one(before), one(after))
    };
    change(&old, &new)
}

/// What was and what is.
pub(super) fn change(old: &Markup, new: &Markup) -> Markup {
    html! {
        del { (old) }
        span class="to" aria-hidden="true" { " → " }
        span class="hidden" { " to " }
        ins { (new) }
    }
}

/// How many bytes two texts share at their beginning and at their end.
fn common(a: &str, b: &str) -> (usize, usize) {
    let same = |(x, y): &(char, char)| x == y;
    let bytes = |pairs: &mut dyn Iterator<Item = (char, char)>| {
        pairs.map(|(c, _)| c.len_utf8()).sum::<usize>()
    };
    let start = bytes(&mut a.chars().zip(b.chars()).take_while(same));
    let (a, b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let end = bytes(&mut a.chars().rev().zip(b.chars().rev()).take_while(same));
    (start, end)
}

/// A text whose middle is emphasised, unless that is all of it.
fn emphasised(text: &str, start: usize, end: usize) -> Markup {
    let head = text.get(..start).unwrap_or_default();
    let tail = text.get(text.len() - end..).unwrap_or_default();
    let middle = text.get(start..text.len() - end).unwrap_or_default();
    let (middle, more) = self::start(middle, LONGEST);
    if head.is_empty() && tail.is_empty() {
        return html! { (middle) (rest(more)) };
    }
    let (head_hidden, head) = self::end(head, AROUND);
    let (tail, tail_hidden) = self::start(tail, AROUND);
    html! {
        (rest(head_hidden)) (head)
        @if !middle.is_empty() { em { (middle) } }
        (rest(more)) (tail) (rest(tail_hidden))
    }
}

/// The first characters of a text, and how many follow.
fn start(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().nth(most) {
        Some((at, _)) => {
            let hidden = text.get(at..).unwrap_or_default().chars().count();
            (text.get(..at).unwrap_or_default(), hidden)
        }
        None => (text, 0),
    }
}

/// How many characters come before the last ones of a text, and these.
fn end(text: &str, most: usize) -> (usize, &str) {
    let hidden = text.chars().count().saturating_sub(most);
    let at = text.char_indices().nth(hidden).map_or(text.len(), |(at, _)| at);
    (hidden, text.get(at..).unwrap_or_default())
}

fn rest(hidden: usize) -> Markup {
    html! {
        @if hidden > 0 { span class="cut" { "… " (hidden) " more characters …" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drawn(before: &Value, after: &Value) -> String {
        let arrow =
            r#"<span class="to" aria-hidden="true"> → </span><span class="hidden"> to </span>"#;
        pair(before, after).into_string().replace(arrow, " -> ")
    }

    #[test]
    fn what_differs_between_two_texts_is_emphasised() {
        for (before, after, want) in [
            (
                json!("eu-central-1"),
                json!("eu-west-1"),
                "<del>eu-<em>central</em>-1</del> -> <ins>eu-<em>west</em>-1</ins>",
            ),
            (json!("abc"), json!("xyz"), "<del>abc</del> -> <ins>xyz</ins>"),
            (json!("aa"), json!("aaa"), "<del>aa</del> -> <ins>aa<em>a</em></ins>"),
            (json!("größe"), json!("größte"), "<del>größe</del> -> <ins>größ<em>t</em>e</ins>"),
            (json!(30), json!(34), "<del>30</del> -> <ins>34</ins>"),
            (
                json!("<b>"),
                json!("<i>"),
                "<del>&lt;<em>b</em>&gt;</del> -> <ins>&lt;<em>i</em>&gt;</ins>",
            ),
        ] {
            assert_eq!(drawn(&before, &after), want);
        }
    }

    #[test]
    fn a_text_that_looks_like_something_else_has_quotes() {
        for (value, want) in [
            (json!("plain text"), "plain text"),
            (json!("5"), "\"5\""),
            (json!(5), "5"),
            // Messages have doubles.
            (json!(5.0), "5"),
            (json!("true"), "\"true\""),
            (json!(""), "\"\""),
            (json!(" a"), "\" a\""),
            (json!("a\nb\n"), "a\nb\n"),
            (json!({}), "{}"),
            (json!(null), "null"),
        ] {
            assert_eq!(text(&value), want);
        }
    }

    #[test]
    fn long_texts_are_cut_around_what_differs() {
        let text = |middle: &str| json!(format!("{}{middle}{}", "a".repeat(100), "z".repeat(100)));
        let drawn = drawn(&text("1"), &text("2"));
        let cut = "<span class=\"cut\">… 40 more characters …</span>";
        let (a, z) = ("a".repeat(60), "z".repeat(60));
        let want = |m: &str| format!("{cut}{a}<em>{m}</em>{z}{cut}");
        assert_eq!(drawn, format!("<del>{}</del> -> <ins>{}</ins>", want("1"), want("2")));
        let all = one(&json!("x".repeat(LONGEST + 7))).into_string();
        assert!(all.ends_with("<span class=\"cut\">… 7 more characters …</span>"), "{all}");
    }

    #[test]
    fn a_redacted_value_is_a_chip() {
        assert_eq!(one(&json!("**REDACTED**")).into_string(), chip().into_string());
        let drawn = drawn(&json!("**REDACTED**"), &json!("shown"));
        assert_eq!(drawn, format!("<del>{}</del> -> <ins>shown</ins>", chip().into_string()));
    }
}
