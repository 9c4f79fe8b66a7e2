//! The categories and title case of characters, as Go's `unicode` package has them.

use std::sync::LazyLock;

use regex::Regex;

/// Whether one character matches a class. ASCII, which is nearly everything, takes no pattern.
macro_rules! category {
    ($(#[$doc:meta])* $name:ident, $ascii:expr, $class:literal) => {
        $(#[$doc])*
        pub fn $name(c: char) -> bool {
            static CLASS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new($class).ok());
            if c.is_ascii() {
                return $ascii(&c);
            }
            let mut buffer = [0; 4];
            CLASS.as_ref().is_some_and(|class| class.is_match(c.encode_utf8(&mut buffer)))
        }
    };
}

category!(
    /// Whether a character is an upper-case letter.
    is_upper, char::is_ascii_uppercase, r"\p{Lu}"
);
category!(
    /// Whether a character is a lower-case letter.
    is_lower, char::is_ascii_lowercase, r"\p{Ll}"
);
category!(
    /// Whether a character is a title-case letter.
    is_title, |_: &char| false, r"\p{Lt}"
);
category!(
    /// Whether a character is a letter.
    is_letter, char::is_ascii_alphabetic, r"\p{L}"
);
category!(
    /// Whether a character is a decimal digit.
    is_digit, char::is_ascii_digit, r"\p{Nd}"
);
category!(
    /// Whether a character is a number of any kind.
    is_number, char::is_ascii_digit, r"\p{N}"
);
category!(
    /// Whether a character is punctuation. Symbols such as `$` and `+` are not.
    is_punct, |c: &char| c.is_ascii_punctuation() && !"$+<=>^`|~".contains(*c), r"\p{P}"
);

/// The title case of a character. It is the upper case of nearly all of them.
pub fn to_title(c: char) -> char {
    match c {
        // Letters that are two letters.
        '\u{1c4}'..='\u{1c6}' => '\u{1c5}',
        '\u{1c7}'..='\u{1c9}' => '\u{1c8}',
        '\u{1ca}'..='\u{1cc}' => '\u{1cb}',
        '\u{1f1}'..='\u{1f3}' => '\u{1f2}',
        // Georgian has capitals, but no titles.
        '\u{10d0}'..='\u{10ff}' => c,
        c => super::upper(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_letters_numbers_and_punctuation_apart() {
        assert!(is_upper('A') && is_upper('É') && !is_upper('é') && !is_upper('Ⅷ'));
        assert!(is_lower('ß') && !is_lower('ª') && is_title('ǅ') && !is_title('A'));
        assert!(is_letter('日') && !is_letter('1') && is_digit('٣') && !is_digit('½'));
        assert!(is_number('½') && is_punct('-') && is_punct('、') && !is_punct('+'));
        assert_eq!(('Ǆ', 'A', 'ა'), (super::super::upper('ǆ'), to_title('a'), to_title('ა')));
        assert_eq!(to_title('ǆ'), 'ǅ');
    }
}
