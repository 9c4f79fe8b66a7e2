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

#[cfg(test)]
mod tests {
    use super::*;

    /// The colour of a token on a light (1) or dark (2) page.
    fn colour(name: &str, theme: usize) -> [f64; 3] {
        let token = TOKENS.iter().find(|token| token.0 == name).unwrap();
        let text = if theme == 1 { token.1 } else { token.2 };
        let part = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        [1, 3, 5].map(|at| f64::from(part(at)) / 255.0)
    }

    /// The relative luminance of WCAG 2.
    fn luminance(colour: [f64; 3]) -> f64 {
        let linear = |part: f64| {
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = colour.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    fn contrast(a: &str, b: &str, theme: usize) -> f64 {
        let (a, b) = (luminance(colour(a, theme)), luminance(colour(b, theme)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    const GROUNDS: [&str; 3] = ["bg", "surface", "sunken"];

    #[test]
    fn texts_can_be_read_on_every_ground() {
        let mut pairs = Vec::new();
        let texts = ["text", "text-2", "text-3", "accent", "ok", "warn", "fail", "lost"];
        let steps: Vec<String> = (1..=8).map(|number| format!("step-{number}")).collect();
        let steps = steps.iter().map(String::as_str);
        for text in texts.into_iter().chain(["added", "removed", "moved"]).chain(steps) {
            pairs.extend(GROUNDS.map(|ground| (text.to_owned(), ground.to_owned())));
        }
        for own in ["accent", "ok", "warn", "fail", "lost", "added", "removed", "moved"] {
            pairs.push((own.to_owned(), format!("{own}-bg")));
            pairs.push(("text".to_owned(), format!("{own}-bg")));
        }
        for own in ["added", "removed"] {
            pairs.push((own.to_owned(), format!("{own}-strong")));
        }
        let mut low = Vec::new();
        for theme in [1, 2] {
            for (text, ground) in &pairs {
                let found = contrast(text, ground, theme);
                if found < 4.5 {
                    low.push(format!("{text} on {ground}, theme {theme}: {found:.2}"));
                }
            }
        }
        assert!(low.is_empty(), "{}", low.join("\n"));
    }

    #[test]
    fn edges_and_bars_can_be_seen() {
        for theme in [1, 2] {
            for edge in ["edge", "accent", "fail", "warn", "lost"] {
                for ground in GROUNDS {
                    let found = contrast(edge, ground, theme);
                    assert!(found >= 3.0, "{edge} on {ground}, theme {theme}: {found:.2}");
                }
            }
        }
    }

    #[test]
    fn the_style_names_no_other_colour() {
        for style in [include_str!("layout/style.css"), crate::draw::CSS] {
            let named: Vec<&str> =
                style.split(['{', ';', '}']).filter(|rule| rule.contains(":#")).collect();
            assert!(named.is_empty(), "{named:?}");
        }
        let style = css();
        assert!(style.contains("--bg:#F7F8F6;") && style.contains("--bg:#0F1211;"));
    }
}
