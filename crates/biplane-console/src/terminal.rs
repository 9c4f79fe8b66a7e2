//! What a terminal can show.

use std::borrow::Cow;
use std::fmt::Write;

use terminal_size::{Width, terminal_size_of};

/// How many columns stderr has, if it is a terminal that knows.
pub fn width() -> Option<usize> {
    let (Width(columns), _) = terminal_size_of(std::io::stderr())?;
    Some(columns.into())
}

/// A text with everything in it spelt out that would steer a terminal, apart from its lines: what comes
/// from files and functions must not.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return text.into();
    }
    let mut spelt = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            let _ = write!(spelt, "{}", c.escape_default());
        } else {
            spelt.push(c);
        }
    }
    spelt.into()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn only_what_steers_a_terminal_is_spelt_out() {
        for (text, want) in [
            ("plain\n\ttext, grüße \u{1f600}", "plain\n\ttext, grüße \u{1f600}"),
            ("\u{1b}[31mred\u{1b}]0;title\u{7}", r"\u{1b}[31mred\u{1b}]0;title\u{7}"),
            ("over\rwritten\u{8}", r"over\rwritten\u{8}"),
            ("\u{9b}2J\u{7f}\0", r"\u{9b}2J\u{7f}\u{0}"),
        ] {
            assert_eq!(harmless(text), want);
        }
    }
}
