//! go-yaml's messages about texts that cannot be read. Tools and users know these messages.
//!
//! With few exceptions, go-yaml's parser reports the same errors at the same locations as ours. It
//! counts lines in its own way: the scanner reports the line, the parser reports the line before,
//! and neither reports the first line.

use granit_parser::ErrorKind;

use super::super::error::{Problem, Words};
use super::super::lines;

const KEY: &str = "did not find expected key";
const NODE: &str = "did not find expected node content";
const NAME: &str = "did not find expected alphabetic or numeric character";

/// The message for an error of the parser at a location, counted from 1.
pub(super) fn of(kind: &ErrorKind, text: &str, line: usize, column: usize) -> Words {
    use ErrorKind as Kind;
    const TOKEN: &str = "found character that cannot start any token";
    let scanner = |words: &str| Words::scanned(words, line);
    let parser = |words: &str| Words::parsed(words, line);
    match kind {
        Kind::MappingValueNotAllowed => scanner("mapping values are not allowed in this context"),
        Kind::BlockSequenceEntryNotAllowed => {
            scanner("block sequence entries are not allowed in this context")
        }
        Kind::UnexpectedCharacter { .. } => scanner(TOKEN),
        Kind::SimpleKeyExpected => {
            Words::scanned("could not find expected ':'", next_token(text, line, column))
        }
        Kind::InvalidBlockScalarHeader => scanner("did not find expected comment or line break"),
        Kind::UnknownQuotedScalarEscape => scanner("found unknown escape character"),
        Kind::InvalidQuotedScalarHexEscape => scanner("did not find expected hexdecimal number"),
        Kind::InvalidUnicodeEscape => scanner("found invalid Unicode character escape code"),
        Kind::MissingAnchorOrAliasName => scanner(NAME),
        Kind::MissingDirectiveName => scanner("could not find expected directive name"),
        Kind::InvalidTagTerminator => scanner("did not find expected whitespace or line break"),
        Kind::UnclosedQuotedScalar | Kind::InvalidQuotedScalarIndent => {
            Words::scanned("found unexpected end of stream", lines::starts(text).count() + 1)
        }
        Kind::ExpectedBlockMappingKey
        | Kind::InvalidTrailingSingleQuotedScalar
        | Kind::InvalidTrailingDoubleQuotedScalar
        | Kind::CommentInterceptedScalar => {
            parser(open_bracket(text, line, column).map_or(KEY, separator))
        }
        Kind::ExpectedBlockSequenceEntry => parser("did not find expected '-' indicator"),
        Kind::ExpectedFlowMappingSeparator | Kind::FlowMappingValueAdjacentCollection => {
            parser(separator('{'))
        }
        Kind::ExpectedFlowSequenceSeparator | Kind::InvalidColonPlacement => parser(separator('[')),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            // Reported where the bracket opens or where it closes.
            let rest = lines::line(text, line).chars().skip(column.saturating_sub(1));
            let on = rest.take_while(|c| c != close).count();
            parser(if wants_value(text, line, column + on) { NODE } else { separator(*open) })
        }
        Kind::MisplacedFlowCollectionEnd => {
            parser(if wants_value(text, line, column) { NODE } else { KEY })
        }
        Kind::UnclosedFlowCollection { open } => {
            let words = if ends_in_want(text) { NODE } else { separator(*open) };
            // go-yaml first adds a line break to a last line without one.
            Words::parsed(words, text.lines().count() + 1)
        }
        Kind::BlockEntryInFlowCollection
        | Kind::ExpectedNodeContent
        | Kind::UnexpectedEofBlockMapping
        | Kind::UnexpectedEofImplicitFlowMapping => parser(NODE),
        Kind::UnknownAnchor => {
            let rest = lines::line(text, line).chars().skip(column.saturating_sub(1));
            let is_of_name = |c: &char| u8::try_from(*c).is_ok_and(is_of_name);
            let name: String = rest.skip_while(|c| *c == '*').take_while(is_of_name).collect();
            Words::plain(format!("unknown anchor '{name}' referenced"))
        }
        other => scanner(&other.to_string()),
    }
}

/// Something that our parser accepts and go-yaml does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A tag that is followed by something other than whitespace.
    TagEnd,
    /// A plain scalar within brackets that begins with a colon.
    LeadingColon,
    /// A plain scalar within brackets that contains a question mark.
    QuestionMark,
    /// An anchor whose name contains more than letters, digits and dashes.
    AnchorName,
}

/// The message for it, at a location counted from 1.
pub(super) fn of_found(found: Found, text: &str, line: usize, column: usize) -> Words {
    match found {
        Found::TagEnd => Words::scanned("did not find expected whitespace or line break", line),
        Found::AnchorName => Words::scanned(NAME, line),
        Found::LeadingColon => Words::parsed(NODE, line),
        Found::QuestionMark => {
            Words::parsed(open_bracket(text, line, column).map_or(KEY, separator), line)
        }
    }
}

/// The message for a document that is valid YAML but cannot be read.
pub(super) fn of_problem(problem: &Problem) -> Words {
    match problem {
        Problem::UnsupportedKey(_) => Words::plain(format!("invalid map key: {problem}")),
        Problem::NotJson(text) => {
            let value = match text.trim_start_matches('+').to_lowercase().as_str() {
                ".nan" => "NaN",
                ".inf" => "+Inf",
                "-.inf" => "-Inf",
                _ => text,
            };
            Words::of_json(format!("unsupported value: {value}"))
        }
        other => Words::plain(other.to_string()),
    }
}

/// The message for a colon at a location, if there is one without a key before it.
pub(super) fn of_missing_key(text: &str, line: usize, column: usize) -> Option<Words> {
    let at = lines::line(text, line).chars().nth(column.checked_sub(1)?);
    let words = open_bracket(text, line, column).map_or(KEY, |_| NODE);
    (at == Some(':')).then(|| Words::parsed(words, line))
}

/// Whether the name of an anchor may contain this byte.
pub(super) fn is_of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
}

fn separator(open: char) -> &'static str {
    if open == '[' {
        "did not find expected ',' or ']'"
    } else {
        "did not find expected ',' or '}'"
    }
}

/// The line of the token that follows a key without a colon. A plain key continues on lines that
/// are indented further, up to a comment or a colon.
fn next_token(text: &str, line: usize, column: usize) -> usize {
    let total = text.lines().count();
    let is_comment = |line: &str| line.trim_start().starts_with('#');
    let key: String = lines::line(text, line).chars().skip(column.saturating_sub(1)).collect();
    let ends = |line: &str| {
        let line = line.trim_end();
        line.contains(" #") || line.contains(": ") || line.ends_with(':')
    };
    let goes_on = |below: &str| {
        let indented = below.chars().take_while(|c| *c == ' ').count() >= column;
        indented && !is_comment(below) && !ends(below)
    };
    let over = key.starts_with(['"', '\'']) || key.contains(" #");
    let below = (line + 1..=total).find(|below| {
        let below = lines::line(text, *below);
        let passed = if over { is_comment(below) } else { goes_on(below) };
        !below.trim().is_empty() && !passed
    });
    below.unwrap_or(total + 1)
}

/// The bracket that is open at a location. This is an estimate without parsing: brackets in block
/// scalars also count.
fn open_bracket(text: &str, line: usize, column: usize) -> Option<char> {
    let above = (1..line).map(|above| lines::line(text, above));
    let last: String = lines::line(text, line).chars().take(column.saturating_sub(1)).collect();
    let (mut open, mut quote) = (Vec::new(), None);
    for line in above.chain([last.as_str()]) {
        // The last character, and the last one that is not a space.
        let (mut before, mut word) = (' ', '-');
        for c in line.chars() {
            let spaced = matches!(before, ' ' | '\t');
            let begins = match open.last() {
                None => spaced && matches!(word, '-' | ':' | '?'),
                Some(_) => spaced || matches!(before, '[' | '{' | ',' | ':'),
            };
            match (quote, c) {
                (Some(end), c) => quote = Some(end).filter(|end| *end != c || before == '\\'),
                (None, '"' | '\'') if begins => quote = Some(c),
                (None, '#') if spaced => break,
                (None, '[' | '{') if begins => open.push(c),
                (None, ']' | '}') => drop(open.pop()),
                _ => {}
            }
            before = c;
            word = if matches!(c, ' ' | '\t') { word } else { c };
        }
    }
    open.pop()
}

/// Whether the text before a location still needs a value.
fn wants_value(text: &str, line: usize, column: usize) -> bool {
    let before: String = lines::line(text, line).chars().take(column.saturating_sub(1)).collect();
    let before = before.trim_end();
    before.ends_with([':', '-', ',', '[', '{'])
}

fn ends_in_want(text: &str) -> bool {
    text.trim_end().ends_with(['{', '[', ',', ':'])
}
