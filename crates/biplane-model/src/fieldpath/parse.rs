//! Parses paths.

use super::Segment;
use super::error::ParseError;

/// Splits a path into segments. Positions in errors are byte offsets.
pub(super) fn segments(text: &str) -> Result<Vec<Segment>, ParseError> {
    let fail = |what, at: usize| Err(ParseError { path: text.to_owned(), what, at });
    let mut segments = Vec::new();
    let mut start = 0;
    // Every special character is ASCII, so slicing at one never cuts another character.
    loop {
        let rest = &text[start..];
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        if end > 0 {
            segments.push(Segment::field(&rest[..end]));
        }
        let at = start + end;
        match text.as_bytes().get(at) {
            None => return Ok(segments),
            Some(b'.') => {
                if at == 0 || at == text.len() - 1 {
                    return fail("unexpected '.'", at);
                }
                match text.as_bytes().get(at + 1) {
                    Some(b'.') => return fail("unexpected '.'", at + 1),
                    Some(b'[') => return fail("unexpected '['", at + 1),
                    _ => start = at + 1,
                }
            }
            Some(b'[') => {
                let inner = &text[at + 1..];
                let Some(close) = inner.find(']') else {
                    return fail("unterminated '['", at);
                };
                if close == 0 {
                    return fail("unexpected ']'", at + 1);
                }
                if let Some(open) = inner[..close].find('[') {
                    return fail("unexpected '['", at + 1 + open);
                }
                segments.push(Segment::field_or_index(&inner[..close]));
                start = at + 1 + close + 1;
            }
            Some(_) => return fail("unexpected ']'", at),
        }
    }
}
