//! The colours of the pages, as variables of their style.

use std::fmt::Write as _;

/// A colour: its name in the style, and its values on a light and on a dark page.
pub struct Token(pub &'static str, pub &'static str, pub &'static str);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// All colours. No other place of the style names one.
pub const TOKENS: &[Token] = &[
    Token("bg", "#F7F8F6", "#0F1211"),
    Token("surface", "#FFFFFF", "#161A18"),
    Token("sunken", "#EEF0EC", "#0B0E0D"),
    Token("text", "#171B19", "#E9EDEA"),
    Token("text-2", "#454D48", "#B7BFBA"),
    Token("text-3", "#5C645F", "#98A29C"),
    Token("line", "#D9DDD6", "#2A302D"),
    Token("edge", "#7D867F", "#78827C"),
    Token("accent", "#0A5AA8", "#74B7F7"),
    Token("accent-bg", "#E3EEF9", "#0F2438"),
    Token("ok", "#156B3E", "#63CF94"),
    Token("ok-bg", "#E4F3EA", "#10291C"),
    Token("warn", "#7A4E00", "#E8B95C"),
    Token("warn-bg", "#FFF1CF", "#2E230B"),
    Token("fail", "#A8201A", "#FF938A"),
    Token("fail-bg", "#FCE6E3", "#3A1513"),
    Token("lost", "#5B4A86", "#BCA9F0"),
    Token("lost-bg", "#EFEAF8", "#231C38"),
    Token("added", "#0F5132", "#9FE3B8"),
    Token("added-bg", "#E2F3E7", "#0F2A1B"),
    Token("added-strong", "#B8E0C5", "#1C5233"),
    Token("removed", "#7C1A14", "#FFB4AC"),
    Token("removed-bg", "#FBE4E1", "#351413"),
    Token("removed-strong", "#F2BBB4", "#6A2420"),
    Token("moved", "#4A318F", "#CDBEFA"),
    Token("moved-bg", "#EEE9F9", "#221B38"),
    Token("step-1", "#0A5AA8", "#74B7F7"),
    Token("step-2", "#8A3FA0", "#D79BEA"),
    Token("step-3", "#156B3E", "#63CF94"),
    Token("step-4", "#A04510", "#F2A06B"),
    Token("step-5", "#0B6B73", "#5CC9D3"),
    Token("step-6", "#A0215F", "#F58BBB"),
    Token("step-7", "#5B5F00", "#C9CC5A"),
    Token("step-8", "#4A4FB0", "#A9ADF7"),
];

/// The variables: light, dark where the reader's system is dark, and either by choice.
pub fn css() -> String {
    let list = |value: fn(&Token) -> &'static str| {
        let mut list = String::new();
        for token in TOKENS {
            let _ = write!(list, "--{}:{};", token.0, value(token));
        }
        list
    };
    let (light, dark) = (list(|token| token.1), list(|token| token.2));
    format!(
        ":root{{color-scheme:light;{light}}}\n\
         :root[data-theme=dark]{{color-scheme:dark;{dark}}}\n\
         @media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
    )
}
