//! Escapes in string literals.

/// The length of the escape at the front in characters. `None` if there is no valid escape.
pub(super) fn length(rest: &[char]) -> Option<usize> {
    let digits = |from: usize, count: usize, base: u32| {
        let digits = rest.get(from..from + count)?;
        digits.iter().all(|c| c.is_digit(base)).then_some(from + count)
    };
    match rest.get(1)? {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Some(2),
        '0'..='3' => digits(1, 3, 8),
        'x' | 'X' => digits(2, 2, 16),
        'u' => digits(2, 4, 16),
        'U' => digits(2, 8, 16),
        _ => None,
    }
}

/// The content of a string literal: UTF-8, or for bytes the values of the escapes.
pub(super) fn resolve(body: &[char], raw: bool, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let mut content = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(first) = rest.first() {
        let escaped = if *first == '\\' && !raw { length(rest) } else { None };
        let (piece, tail) = rest.split_at(escaped.unwrap_or(1));
        rest = tail;
        let c = if escaped.is_some() {
            let code = code(piece);
            if bytes {
                content.push(u8::try_from(code).map_err(|_| "unable to unescape string")?);
                continue;
            }
            char::from_u32(code).ok_or("invalid unicode code point")?
        } else {
            *first
        };
        content.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(content)
}

fn code(escape: &[char]) -> u32 {
    let number = |from: usize, base: u32| {
        let digits: String = escape.get(from..).unwrap_or_default().iter().collect();
        u32::from_str_radix(&digits, base).unwrap_or(u32::MAX)
    };
    match escape.get(1).copied().unwrap_or_default() {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '0'..='3' => number(1, 8),
        'x' | 'X' | 'u' | 'U' => number(2, 16),
        other => u32::from(other),
    }
}
