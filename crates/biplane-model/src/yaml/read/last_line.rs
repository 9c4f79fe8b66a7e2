//! Handles texts whose last line has no line break.

use std::borrow::Cow;

use granit_parser::{Event, ScalarStyle, Span};

/// How a missing line break at the end affects a block scalar there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// As if there were a line break.
    Ended,
    AsItIs,
}

impl LastLine {
    /// Removes the line break that the parser adds at the end of the text.
    pub(super) fn apply<'text>(self, event: Event<'text>, span: &Span, text: &str) -> Event<'text> {
        let at_end = self == Self::AsItIs && span.end.byte_offset() == Some(text.len());
        match event {
            Event::Scalar(
                value,
                style @ (ScalarStyle::Literal | ScalarStyle::Folded),
                anchor,
                tag,
            ) if at_end => {
                let value = Cow::Owned(without_added_break(&value, text).to_owned());
                Event::Scalar(value, style, anchor, tag)
            }
            event => event,
        }
    }
}

/// The value of a block scalar that extends to the end of the text.
fn without_added_break<'value>(value: &'value str, text: &str) -> &'value str {
    let Some(kept) = value.strip_suffix('\n') else { return value };
    let last = |text: &str| text.rsplit(['\r', '\n']).next().unwrap_or_default().to_owned();
    // A last line of only whitespace is part of the scalar only if it is longer than the
    // indentation. Otherwise the line break before it was not added.
    let is_space = |line: &str| line.chars().all(char::is_whitespace);
    let (in_text, in_value) = (last(text), last(kept));
    let added =
        !is_space(&in_text) || (!in_text.is_empty() && !in_value.is_empty() && is_space(&in_value));
    if added { kept } else { value }
}
