//! Patterns in Go's dialect: its short classes are ASCII.

use regex::Regex;

/// A pattern with its text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub text: String,
    compiled: Result<Regex, String>,
}

impl Pattern {
    pub(super) fn compile(text: &str) -> Self {
        let compiled = Regex::new(&to_rust(text)).map_err(|error| error.to_string());
        Self { text: text.to_owned(), compiled }
    }

    /// Whether a text matches, or why nothing can.
    pub(super) fn matches(&self, text: &str) -> Result<bool, &str> {
        match &self.compiled {
            Ok(regex) => Ok(regex.is_match(text)),
            Err(reason) => Err(reason),
        }
    }
}

/// The pattern with ASCII classes spelled out.
fn to_rust(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push('\\');
                    break;
                };
                match (escaped, in_class) {
                    ('d', false) => out.push_str("[0-9]"),
                    ('d', true) => out.push_str("0-9"),
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('s', false) => out.push_str("[\\t\\n\\f\\r ]"),
                    ('s', true) => out.push_str("\\t\\n\\f\\r "),
                    ('D', _) => out.push_str("[^0-9]"),
                    ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                    ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
                    ('b', false) => out.push_str("(?-u:\\b)"),
                    // Rust refuses an escape of a character that needs none; Go does not.
                    ('/' | '"' | '\'' | '@' | '%' | ',' | ':' | ';' | '=' | '!' | '_' | '`', _) => {
                        out.push(escaped);
                    }
                    _ => out.extend(['\\', escaped]),
                }
            }
            '[' if in_class => {
                // A plain bracket inside a class, unless it opens a named class.
                let named = chars.as_str().starts_with(':');
                out.push_str(if named { "[" } else { "\\[" });
                if named {
                    for c in chars.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_class = true;
                out.push('[');
                // A bracket that comes first stands for itself.
                if chars.as_str().starts_with('^') {
                    chars.next();
                    out.push('^');
                }
                if chars.as_str().starts_with(']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            // Rust gives these a meaning inside classes that Go does not.
            '&' | '~' if in_class => out.extend(['\\', c]),
            '-' if in_class && chars.as_str().starts_with('-') => out.push_str("\\-"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_classes_are_ascii_and_brackets_inside_classes_are_plain() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a-b_1", true),
            (r"^[\w-]+$", "é", false),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[a[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^a\/b$", "a/b", true),
            (r"^[a&&b]+$", "&", true),
            (r"\bfoo\b", "a foo b", true),
        ] {
            assert_eq!(Pattern::compile(pattern).matches(text), Ok(expected), "{pattern} {text}");
        }
        assert!(Pattern::compile("(").matches("x").is_err());
    }
}
