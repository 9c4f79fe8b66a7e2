//! The width of the terminal, and text that is safe to show on it.

use std::borrow::Cow;
use std::fmt::Write;

use terminal_size::{Width, terminal_size_of};

/// The number of columns of stderr, if it is a terminal that reports it.
pub fn width() -> Option<usize> {
    let (Width(columns), _) = terminal_size_of(std::io::stderr())?;
    Some(columns.into())
}

/// Escapes all control characters except line breaks, because text from files and functions must
/// not control the terminal.
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
