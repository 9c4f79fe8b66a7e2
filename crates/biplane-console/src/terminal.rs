//! The width of the terminal, and text that is safe to show on it.

use std::borrow::Cow;
use std::fmt::Write;

use terminal_size::{Width, terminal_size_of};

/// The number of columns of stderr, if it is a terminal that reports it.
pub fn width() -> Option<usize> {
    let (Width(columns), _) = terminal_size_of(std::io::stderr())?;
    Some(columns.into())
}

/// Escapes all control characters except line breaks, and the marks that change the direction of
/// text: text from files and functions must not control the terminal, nor look like another text.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t' || turns(c);
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

/// Whether a character changes the direction in which text is shown.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
            // Shown as: name "exe.gnp".
            ("name \"\u{202e}png.exe\"\u{202c}", r#"name "\u{202e}png.exe"\u{202c}"#),
            ("\u{2066}a\u{2067}b\u{2068}c\u{2069}", r"\u{2066}a\u{2067}b\u{2068}c\u{2069}"),
            ("\u{61c}\u{200e}\u{200f}\u{202a}", r"\u{61c}\u{200e}\u{200f}\u{202a}"),
            ("שלום, مرحبا", "שלום, مرحبا"),
        ] {
            assert_eq!(harmless(text), want);
        }
    }
}
