//! Finds all matches, replaces them, and splits at them, like Go.

use std::ops::Range;

use super::{GoRegex, Haystack, RegexError};

impl GoRegex {
    /// The places of all matches, or of the first few. Fails like [`GoRegex::is_match`].
    pub fn find_all(
        &self,
        text: &[u8],
        limit: Option<usize>,
    ) -> Result<Vec<Range<usize>>, RegexError> {
        let haystack = Haystack::new(text);
        let found = self.regex()?.find_iter(&haystack.text);
        let found = found.filter(|found| haystack.is_boundary(found.start()));
        let found = found.take(limit.unwrap_or(usize::MAX));
        let place = |found: regex::bytes::Match<'_>| {
            haystack.origin(found.start())..haystack.origin(found.end())
        };
        Ok(found.map(place).collect())
    }

    /// Replaces all matches. `expand` gets the groups of each match: `None` for a group that did not
    /// take part.
    fn replace_with(
        &self,
        text: &[u8],
        mut expand: impl FnMut(&mut Vec<u8>, &[Option<Range<usize>>]),
    ) -> Result<Vec<u8>, RegexError> {
        let haystack = Haystack::new(text);
        let mut out = Vec::with_capacity(text.len());
        let mut done = 0;
        for captures in self.regex()?.captures_iter(&haystack.text) {
            let place = |group: regex::bytes::Match<'_>| {
                haystack.origin(group.start())..haystack.origin(group.end())
            };
            let groups: Vec<_> = captures.iter().map(|group| group.map(place)).collect();
            let Some(Some(whole)) = groups.first() else { continue };
            if captures.get(0).is_none_or(|whole| !haystack.is_boundary(whole.start())) {
                continue;
            }
            out.extend_from_slice(text.get(done..whole.start).unwrap_or_default());
            expand(&mut out, &groups);
            done = whole.end;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        Ok(out)
    }

    /// Replaces all matches by a text in which `$1`, `$name` and `${name}` stand for groups.
    pub fn replace_all(&self, text: &[u8], template: &[u8]) -> Result<Vec<u8>, RegexError> {
        let parts = parts(template);
        self.replace_with(text, |out, groups| {
            for part in &parts {
                match part {
                    Part::Literal(literal) => out.extend_from_slice(literal),
                    Part::Group(name) => {
                        let place = self.group_of(name, groups);
                        let group = place.and_then(|place| text.get(place));
                        out.extend_from_slice(group.unwrap_or_default());
                    }
                }
            }
        })
    }

    /// Replaces all matches by a text as it is.
    pub fn replace_all_literal(
        &self,
        text: &[u8],
        replacement: &[u8],
    ) -> Result<Vec<u8>, RegexError> {
        self.replace_with(text, |out, _| out.extend_from_slice(replacement))
    }

    /// The group of a number or name. The first group of a name that took part counts.
    fn group_of(&self, name: &str, groups: &[Option<Range<usize>>]) -> Option<Range<usize>> {
        if let Some(number) = number(name) {
            return groups.get(number)?.clone();
        }
        let mut named =
            self.0.translated.names.iter().zip(groups).filter(|(known, _)| known.as_str() == name);
        named.find_map(|(_, group)| group.clone())
    }

    /// The parts of a text between matches, at most so many. `None` means all of them.
    pub fn split(
        &self,
        text: &[u8],
        limit: Option<usize>,
    ) -> Result<Vec<Range<usize>>, RegexError> {
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        if !self.0.pattern.is_empty() && text.is_empty() {
            return Ok(std::iter::once(0..0).collect());
        }
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, 0);
        for found in self.find_all(text, limit)? {
            if limit.is_some_and(|limit| parts.len() + 1 == limit) {
                break;
            }
            end = found.start;
            if found.end != 0 {
                parts.push(begin..end);
            }
            begin = found.end;
        }
        if end != text.len() {
            parts.push(begin..text.len());
        }
        Ok(parts)
    }
}

/// A part of a replacement.
enum Part<'a> {
    Literal(&'a [u8]),
    Group(&'a str),
}

/// The number that a group name is. A name with a zero in front is a name.
fn number(name: &str) -> Option<usize> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && (name.len() == 1 || !name.starts_with('0'));
    name.parse().ok().filter(|_| plain)
}

fn parts(template: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        let (before, dollar) = rest.split_at(at);
        parts.push(Part::Literal(before));
        let after = dollar.get(1..).unwrap_or_default();
        if let Some(tail) = after.strip_prefix(b"$") {
            parts.push(Part::Literal(b"$"));
            rest = tail;
        } else if let Some((name, tail)) = group_name(after) {
            parts.push(Part::Group(name));
            rest = tail;
        } else {
            // A malformed `$` stands for itself.
            parts.push(Part::Literal(b"$"));
            rest = after;
        }
    }
    parts.push(Part::Literal(rest));
    parts
}

/// A group name after `$`, with or without braces, and what follows.
fn group_name(text: &[u8]) -> Option<(&str, &[u8])> {
    let (braced, body) = match text.strip_prefix(b"{") {
        Some(body) => (true, body),
        None => (false, text),
    };
    let mut length = 0;
    for (c, bytes) in crate::text::runes(body) {
        match c {
            Some(c) if c == '_' || crate::text::is_letter(c) || crate::text::is_digit(c) => {
                length += bytes.len();
            }
            _ => break,
        }
    }
    let (name, rest) = body.split_at_checked(length).filter(|_| length > 0)?;
    let rest = if braced { rest.strip_prefix(b"}")? } else { rest };
    Some((std::str::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn replaces_groups_by_number_and_name() {
        let regex = GoRegex::new("a(x*)b(?P<tail>c?)").unwrap();
        for (template, expected) in [
            ("$1", "-x--"),
            ("$1W", "---"),
            ("${1}W", "-xW-W-"),
            ("$tail.", "-.-c.-"),
            ("$$${2}$", "-$$-$c$-"),
            ("${1", "-${1-${1-"),
        ] {
            assert_eq!(
                text(regex.replace_all(b"-axb-abc-", template.as_bytes()).unwrap()),
                expected
            );
        }
        assert_eq!(text(regex.replace_all_literal(b"-axb-", b"$1").unwrap()), "-$1-");
    }

    #[test]
    fn splits_like_go() {
        let split = |pattern: &str, text: &str, limit| {
            let parts = GoRegex::new(pattern).unwrap().split(text.as_bytes(), limit).unwrap();
            parts.into_iter().map(|part| text[part].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(split("a", "banana", None), ["b", "n", "n", ""]);
        assert_eq!(split("a", "banana", Some(2)), ["b", "nana"]);
        assert_eq!(split("", "abc", None), ["a", "b", "c"]);
        assert_eq!(split("a*", "", None), [""]);
        assert_eq!(split("z*", "ab", None), ["a", "b"]);
        assert_eq!(split("z*", "é日", None), ["é", "日"]);
        assert!(split("a", "a", Some(0)).is_empty());
    }
}
