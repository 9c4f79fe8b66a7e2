//! Splits lines like the parser: a lone carriage return also ends a line.

/// The offsets at which all lines except the first begin.
pub(super) fn starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter_map(|(at, b)| match b {
        b'\n' => Some(at + 1),
        b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at + 1),
        _ => None,
    })
}

/// The line with this number, counted from 1, without its line break.
pub(super) fn line(text: &str, number: usize) -> &str {
    let start = match number {
        0 => return "",
        1 => Some(0),
        _ => starts(text).nth(number - 2),
    };
    let rest = start.and_then(|start| text.get(start..)).unwrap_or_default();
    rest.split(['\r', '\n']).next().unwrap_or_default()
}
