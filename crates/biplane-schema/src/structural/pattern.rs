//! Patterns of strings. A pattern that cannot be used matches nothing and keeps its error.

use std::cell::Cell;

use biplane_go::regex::GoRegex;

/// About how many bytes the patterns of one schema may take when they are compiled.
pub(super) const ROOM: usize = 64 << 20;

/// A pattern with its source. It is compiled when it is first used.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub text: String,
    parsed: Result<GoRegex, String>,
}

impl Pattern {
    /// Parses a pattern. One that needs more than the room that is left is invalid.
    pub(super) fn parse(text: &str, room: &Cell<usize>) -> Self {
        let parsed = GoRegex::new(text).map_err(|error| error.to_string()).and_then(|regex| {
            let left = room.get().checked_sub(regex.size()).ok_or_else(|| {
                let limit = ROOM >> 20;
                format!(
                    "the patterns of a schema may take {limit} MiB, and this one is beyond that"
                )
            })?;
            room.set(left);
            Ok(regex)
        });
        Self { text: text.to_owned(), parsed }
    }

    /// Whether a string matches, or why the pattern is invalid.
    pub(super) fn matches(&self, text: &str) -> Result<bool, String> {
        let regex = self.parsed.as_ref().map_err(Clone::clone)?;
        regex.is_match(text.as_bytes()).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> Result<bool, String> {
        Pattern::parse(pattern, &Cell::new(ROOM)).matches(text)
    }

    #[test]
    fn short_classes_are_ascii_and_what_does_not_compile_says_why() {
        assert_eq!(matches(r"^\d+$", "12"), Ok(true));
        assert_eq!(matches(r"^\d+$", "١٢"), Ok(false));
        let reason = "error parsing regexp: missing closing ): `(`";
        assert_eq!(matches("(", "x"), Err(reason.to_owned()));
    }

    #[test]
    fn patterns_share_the_room_of_their_schema() {
        let room = Cell::new(ROOM);
        let first = Pattern::parse(r"^\pL{1000}$", &room);
        assert!(first.parsed.is_ok());
        let second = Pattern::parse(r"^\pL{1000}$", &room).matches("x").unwrap_err();
        assert!(second.starts_with("the patterns of a schema may take 64 MiB"), "{second}");
        assert_eq!(Pattern::parse("^a$", &room).matches("a"), Ok(true));
    }
}
