//! Parses Go's pattern syntax and writes the engine's syntax.

use super::RegexError;
use super::literal::literal;

/// The largest repeat count, also for nested repeats.
const MAX_REPEAT: u64 = 1000;
/// How large Go lets a pattern become when its repeats are expanded.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// How deeply Go lets a pattern nest.
const MAX_HEIGHT: u64 = 1000;

pub(super) fn invalid(what: &'static str, fragment: &str) -> RegexError {
    RegexError { what, fragment: fragment.to_owned() }
}

/// A pattern in the engine's syntax.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) text: String,
    /// The names of its groups. A group without a name has an empty one.
    pub(super) names: Vec<String>,
    /// About how many bytes it takes when it is compiled.
    pub(super) size: u64,
    /// The number of instructions when its repeats are expanded.
    pub(super) instructions: u64,
}

/// About how many bytes the engine needs for one instruction of each kind.
mod bytes {
    pub(in crate::regex) const ASCII: u64 = 80;
    pub(in crate::regex) const LITERAL: u64 = 160;
    pub(in crate::regex) const RANGE: u64 = 320;
    /// Everything except some ASCII characters.
    pub(in crate::regex) const NEGATED: u64 = 1_200;
    /// The largest of Unicode's classes.
    pub(in crate::regex) const UNICODE: u64 = 50_000;
    pub(super) const OPERATOR: u64 = 40;
    /// Letters have up to three other forms.
    pub(super) const FOLDED: u64 = 4;
}

pub(super) use bytes::{ASCII, NEGATED, RANGE, UNICODE};

pub(super) fn translate(pattern: &str) -> Result<Translated, RegexError> {
    let mut translator = Translator {
        pattern,
        at: 0,
        names: vec![String::new()],
        flags: Flags::default(),
        frames: vec![Frame::new("", Flags::default(), false)],
        last_repeat: None,
    };
    while translator.at < pattern.len() {
        let repeat = translator.one()?;
        translator.last_repeat = repeat;
    }
    if translator.frames.len() > 1 {
        return Err(invalid("missing closing )", pattern));
    }
    let mut whole = translator.frames.remove(0);
    let measure = whole.measure();
    let names = translator.names;
    Ok(Translated { text: whole.out, names, size: measure.bytes, instructions: measure.size })
}

/// The flags of `(?…)`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Go's four flags
struct Flags {
    fold: bool,
    lines: bool,
    dot_all: bool,
    lazy: bool,
}

/// The size of a part of a pattern.
#[derive(Clone, Copy, Debug, Default)]
struct Measure {
    /// Number of instructions when expanded.
    size: u64,
    /// About how many bytes these take.
    bytes: u64,
    /// Nesting depth.
    height: u64,
    /// The largest product of nested repeat counts.
    repeats: u64,
}

impl Measure {
    const ONE: Self = Self { size: 1, bytes: bytes::ASCII, height: 1, repeats: 1 };

    fn one(bytes: u64) -> Self {
        Self { bytes, ..Self::ONE }
    }
}

/// An open group, or the whole pattern.
struct Frame {
    out: String,
    /// The flags to restore when the group closes.
    outer: Flags,
    capture: bool,
    /// Where the last atom starts, and its size.
    atom: Option<(usize, Measure)>,
    /// Atoms of the current branch so far.
    branch: Vec<Measure>,
    /// Earlier branches.
    branches: Vec<Measure>,
}

impl Frame {
    fn new(open: &str, outer: Flags, capture: bool) -> Self {
        Self {
            out: open.to_owned(),
            outer,
            capture,
            atom: None,
            branch: Vec::new(),
            branches: Vec::new(),
        }
    }

    fn push(&mut self, text: &str, measure: Measure) {
        self.atom = Some((self.out.len(), measure));
        self.out.push_str(text);
        self.branch.push(measure);
    }

    fn close_branch(&mut self) {
        let branch = std::mem::take(&mut self.branch);
        self.branches.push(combine(&branch, 0));
        self.atom = None;
    }

    fn measure(&mut self) -> Measure {
        self.close_branch();
        combine(&self.branches, self.branches.len() as u64 - 1)
    }
}

/// The size of several parts in a row, or of alternatives at an extra cost.
fn combine(parts: &[Measure], extra: u64) -> Measure {
    match parts {
        [] => Measure::ONE,
        [one] => *one,
        parts => {
            let start =
                Measure { size: extra, bytes: extra * bytes::OPERATOR, height: 0, repeats: 1 };
            parts.iter().fold(start, |sum, part| Measure {
                size: sum.size.saturating_add(part.size),
                bytes: sum.bytes.saturating_add(part.bytes),
                height: sum.height.max(part.height + 1),
                repeats: sum.repeats.max(part.repeats),
            })
        }
    }
}

pub(super) struct Translator<'a> {
    pattern: &'a str,
    pub(super) at: usize,
    names: Vec<String>,
    flags: Flags,
    frames: Vec<Frame>,
    /// Where the directly preceding repeat started, if there was one.
    last_repeat: Option<usize>,
}

impl<'a> Translator<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.pattern.get(self.at..).unwrap_or_default()
    }

    fn between(&self, start: usize, end: usize) -> &'a str {
        self.pattern.get(start..end).unwrap_or_default()
    }

    fn push(&mut self, text: &str, measure: Measure) -> Result<(), RegexError> {
        if let Some(frame) = self.frames.last_mut() {
            frame.push(text, measure);
        }
        self.check(measure)
    }

    fn check(&self, measure: Measure) -> Result<(), RegexError> {
        if measure.size > MAX_SIZE {
            return Err(invalid("expression too large", self.pattern));
        }
        if measure.height > MAX_HEIGHT {
            return Err(invalid("expression nests too deeply", self.pattern));
        }
        Ok(())
    }

    /// Adds something whose letters may match in either case.
    fn push_folded(&mut self, text: &str, bytes: u64) -> Result<(), RegexError> {
        if self.flags.fold {
            self.push(&format!("(?i:{text})"), Measure::one(bytes * bytes::FOLDED))
        } else {
            self.push(text, Measure::one(bytes))
        }
    }

    fn push_literal(&mut self, code: u32) -> Result<(), RegexError> {
        let bytes = if code < 0x80 { bytes::ASCII } else { bytes::LITERAL };
        self.push_folded(&literal(code), bytes)
    }

    /// Reads one construct. Returns where it started if it was a repeat.
    fn one(&mut self) -> Result<Option<usize>, RegexError> {
        let start = self.at;
        let rest = self.rest();
        let Some(c) = rest.chars().next() else { return Ok(None) };
        match c {
            '(' if rest.starts_with("(?") => self.perl_group()?,
            '(' => {
                self.names.push(String::new());
                self.open("(", self.flags, true, 1);
            }
            '|' => {
                self.at += 1;
                if let Some(frame) = self.frames.last_mut() {
                    frame.close_branch();
                    frame.out.push('|');
                }
            }
            ')' => self.close()?,
            '^' => self.anchor(if self.flags.lines { "(?m:^)" } else { r"\A" }, 1)?,
            '$' => self.anchor(if self.flags.lines { "(?m:$)" } else { r"\z" }, 1)?,
            '.' => {
                self.at += 1;
                let any = if self.flags.dot_all { "(?s:.)" } else { r"[^\n]" };
                self.push(any, Measure::one(NEGATED))?;
            }
            '[' => {
                let (class, bytes) = self.bracket_class()?;
                self.push_folded(&class, bytes)?;
            }
            '*' => return self.repeat(start, start + 1, "*", (0, None)),
            '+' => return self.repeat(start, start + 1, "+", (0, None)),
            '?' => return self.repeat(start, start + 1, "?", (0, None)),
            '{' => return self.counted(start),
            '\\' => self.backslash()?,
            c => {
                self.at += c.len_utf8();
                self.push_literal(u32::from(c))?;
            }
        }
        Ok(None)
    }

    /// Adds an atom with a known translation and length.
    fn anchor(&mut self, text: &str, length: usize) -> Result<(), RegexError> {
        self.at += length;
        self.push(text, Measure::ONE)
    }

    fn backslash(&mut self) -> Result<(), RegexError> {
        match self.rest().as_bytes().get(1) {
            Some(b'A') => return self.anchor(r"\A", 2),
            Some(b'b') => return self.anchor(r"(?-u:\b)", 2),
            Some(b'B') => return self.anchor(r"(?-u:\B)", 2),
            Some(b'z') => return self.anchor(r"\z", 2),
            Some(b'C') => return Err(invalid("invalid escape sequence", r"\C")),
            Some(b'Q') => {
                let body = self.rest().get(2..).unwrap_or_default();
                let (quoted, length) = match body.split_once(r"\E") {
                    Some((quoted, _)) => (quoted, quoted.len() + 4),
                    None => (body, body.len() + 2),
                };
                self.at += length;
                return quoted.chars().try_for_each(|c| self.push_literal(u32::from(c)));
            }
            _ => {}
        }
        if let Some(class) = self.unicode_class()? {
            return self.push_folded(&class, UNICODE);
        }
        if let Some(class) = self.perl_class() {
            return self.push_folded(&class, NEGATED);
        }
        let code = self.escape()?;
        self.push_literal(code)
    }

    fn open(&mut self, open: &str, outer: Flags, capture: bool, length: usize) {
        self.at += length;
        self.frames.push(Frame::new(open, outer, capture));
    }

    fn close(&mut self) -> Result<(), RegexError> {
        if self.frames.len() < 2 {
            return Err(invalid("unexpected )", self.pattern));
        }
        self.at += 1;
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        let mut measure = frame.measure();
        if frame.capture {
            measure.size += 2;
            measure.bytes += 2 * bytes::OPERATOR;
            measure.height += 1;
        }
        self.flags = frame.outer;
        frame.out.push(')');
        self.push(&frame.out, measure)
    }

    /// `(?…`: a named group, or flags for the rest or for a group.
    fn perl_group(&mut self) -> Result<(), RegexError> {
        let whole = self.rest();
        let named = match whole.as_bytes() {
            [b'(', b'?', b'P', b'<', _, ..] => Some(4),
            [b'(', b'?', b'<', _, ..] => Some(3),
            _ => None,
        };
        if let Some(start) = named {
            let Some(end) = whole.find('>') else {
                return Err(invalid("invalid named capture", whole));
            };
            let name = whole.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                let capture = whole.get(..=end).unwrap_or(whole);
                return Err(invalid("invalid named capture", capture));
            }
            // The engine does not see the name: Go accepts names that the engine does not.
            self.names.push(name.to_owned());
            self.open("(", self.flags, true, end + 1);
            return Ok(());
        }
        let mut flags = self.flags;
        let (mut on, mut seen) = (true, false);
        let mut length = 2;
        for c in whole.chars().skip(2) {
            length += c.len_utf8();
            match c {
                'i' => flags.fold = on,
                'm' => flags.lines = on,
                's' => flags.dot_all = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    on = false;
                    seen = false;
                    continue;
                }
                ':' | ')' if on || seen => {
                    if c == ':' {
                        self.open("(?:", self.flags, false, length);
                    } else {
                        self.at += length;
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            seen = true;
        }
        let fragment = whole.get(..length).unwrap_or(whole);
        Err(invalid("invalid or unsupported Perl syntax", fragment))
    }

    /// `{n}`, `{n,}` or `{n,m}`. Anything else in braces is literal.
    fn counted(&mut self, start: usize) -> Result<Option<usize>, RegexError> {
        let Some((min, max, length)) = counts(self.rest()) else {
            self.at += 1;
            self.push_literal(u32::from('{'))?;
            return Ok(None);
        };
        let end = start + length;
        let valid = min <= MAX_REPEAT && max.is_none_or(|max| max <= MAX_REPEAT && min <= max);
        if !valid {
            return Err(invalid("invalid repeat count", self.between(start, end)));
        }
        let text = match max {
            None => format!("{{{min},}}"),
            Some(max) => format!("{{{min},{max}}}"),
        };
        self.repeat(start, end, &text, (min, max))
    }

    /// Repeats the last atom. The operator is between `start` and `end`.
    fn repeat(
        &mut self,
        start: usize,
        end: usize,
        operator: &str,
        (min, max): (u64, Option<u64>),
    ) -> Result<Option<usize>, RegexError> {
        let lazy_mark = self.between(end, end + 1) == "?";
        let end = end + usize::from(lazy_mark);
        if let Some(last) = self.last_repeat {
            return Err(invalid("invalid nested repetition operator", self.between(last, end)));
        }
        let missing = invalid("missing argument to repetition operator", self.between(start, end));
        let Some(frame) = self.frames.last_mut() else { return Err(missing) };
        let Some((at, inner)) = frame.atom else { return Err(missing) };
        let counted = operator.starts_with('{');
        let mut measure = Measure { height: inner.height + 1, ..inner };
        measure.size = match (operator, max) {
            ("*", _) => inner.size + 2,
            ("+" | "?", _) => inner.size + 1,
            (_, None) if min == 0 => inner.size + 2,
            (_, None) => 1 + min.saturating_mul(inner.size),
            (_, Some(max)) => (max.saturating_mul(inner.size) + max - min).max(1),
        };
        let times = if counted { max.unwrap_or(min).max(1) } else { 1 };
        measure.bytes = times.saturating_mul(inner.bytes.saturating_add(bytes::OPERATOR));
        if counted {
            measure.repeats = match max {
                Some(0) => 1,
                _ => inner.repeats.saturating_mul(max.unwrap_or(min).max(1)),
            };
        }
        frame.out.insert_str(at, "(?:");
        frame.out.push(')');
        frame.out.push_str(operator);
        if self.flags.lazy ^ lazy_mark {
            frame.out.push('?');
        }
        frame.atom = Some((at, measure));
        if let Some(last) = frame.branch.last_mut() {
            *last = measure;
        }
        self.check(measure)?;
        if counted && (min >= 2 || max.is_some_and(|max| max >= 2)) && measure.repeats > MAX_REPEAT
        {
            return Err(invalid("invalid repeat count", self.between(start, end)));
        }
        self.at = end;
        Ok(Some(start))
    }
}

/// The counts in braces and the length of the operator, if one comes first.
fn counts(text: &str) -> Option<(u64, Option<u64>, usize)> {
    let body = text.strip_prefix('{')?;
    let (min, rest) = count(body)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = count(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some((min, max, text.len() - rest.len()))
}

/// A number without leading zeros. A number that is too large becomes some other number that is too
/// large.
fn count(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}
