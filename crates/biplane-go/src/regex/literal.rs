//! Translates literal characters.

/// A class that matches no character.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// One character in the engine's syntax.
pub(super) fn literal(code: u32) -> String {
    match char::from_u32(code) {
        Some(c) if c.is_ascii_alphanumeric() => c.to_string(),
        Some(_) => format!(r"\x{{{code:X}}}"),
        None => NOTHING.to_owned(),
    }
}
