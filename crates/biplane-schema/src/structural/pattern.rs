//! Compiled patterns. A pattern that does not compile matches nothing and keeps its error.

use biplane_go::regex::GoRegex;

/// A pattern with its source.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub text: String,
    compiled: Result<GoRegex, String>,
}

impl Pattern {
    pub(super) fn compile(text: &str) -> Self {
        let compiled = GoRegex::new(text).map_err(|error| error.to_string());
        Self { text: text.to_owned(), compiled }
    }

    /// Whether a string matches, or why the pattern is invalid.
    pub(super) fn matches(&self, text: &str) -> Result<bool, &str> {
        match &self.compiled {
            Ok(regex) => Ok(regex.is_match(text.as_bytes())),
            Err(reason) => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_classes_are_ascii_and_what_does_not_compile_says_why() {
        assert_eq!(Pattern::compile(r"^\d+$").matches("12"), Ok(true));
        assert_eq!(Pattern::compile(r"^\d+$").matches("١٢"), Ok(false));
        let reason = "error parsing regexp: missing closing ): `(`";
        assert_eq!(Pattern::compile("(").matches("x"), Err(reason));
    }
}
