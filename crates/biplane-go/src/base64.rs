//! Decodes base64 like Go: padded, with line breaks anywhere, and with any unused bits at the end.

/// Decodes padded base64 with line breaks anywhere. The error is the offset of the first invalid
/// byte.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    decode_into(text, &mut out)?;
    Ok(out)
}

/// Decodes up to the first error, as Go returns it to callers that ignore the error.
pub fn decode_prefix(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    // The error is what the caller ignores.
    let _ = decode_into(text, &mut out);
    out
}

fn decode_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while at < text.len() {
        at = quantum(text, at, out)?;
    }
    Ok(())
}

fn sextet(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Decodes up to four characters starting at `at`. Returns the offset of the next ones.
fn quantum(text: &[u8], mut at: usize, out: &mut Vec<u8>) -> Result<usize, usize> {
    let skip_breaks = |mut at: usize| {
        while matches!(text.get(at), Some(b'\n' | b'\r')) {
            at += 1;
        }
        at
    };
    let (mut bits, mut count) = (0, 0);
    let mut padded = false;
    while count < 4 {
        let Some(byte) = text.get(at) else {
            return if count == 0 { Ok(at) } else { Err(at - count) };
        };
        at += 1;
        match (sextet(*byte), byte, count) {
            (Some(sextet), ..) => {
                bits = bits << 6 | sextet;
                count += 1;
                continue;
            }
            (None, b'\n' | b'\r', _) => continue,
            (None, b'=', 2) => {
                at = skip_breaks(at);
                match text.get(at) {
                    None => return Err(text.len()),
                    Some(b'=') => at += 1,
                    Some(_) => return Err(at - 1),
                }
            }
            (None, b'=', 3) => {}
            _ => return Err(at - 1),
        }
        at = skip_breaks(at);
        padded = true;
        break;
    }
    bits <<= 6 * (4 - count);
    let bytes = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
    out.extend(bytes.iter().take(count - 1));
    if padded && at < text.len() { Err(at) } else { Ok(at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_and_left_over_bits_are_passed_over() {
        for (text, want) in [
            ("", ""),
            ("\r\n", ""),
            ("YWJj", "abc"),
            ("YWJj\nZGVm\n", "abcdef"),
            ("Y\rWJ\njZGU\n=\n", "abcde"),
            ("YQ\n=\n=\n", "a"),
            ("YR==", "a"),
            ("YWK=", "ab"),
        ] {
            assert_eq!(decode(text.as_bytes()), Ok(want.as_bytes().to_vec()), "{text:?}");
        }
    }

    #[test]
    fn what_precedes_an_error_can_be_had() {
        for (text, want) in
            [("value", &[0xbd, 0xa9, 0x6e][..]), ("aGk=x", b"hi"), ("%", b""), ("aGk=", b"hi")]
        {
            assert_eq!(decode_prefix(text.as_bytes()), want, "{text:?}");
        }
    }

    /// Offsets include the line breaks of the input.
    #[test]
    fn errors_say_where() {
        for (text, at) in [
            ("hunter2!", 7),
            ("%%%", 0),
            ("YW\nJ%", 4),
            ("Y", 0),
            ("YWJjYW", 4),
            ("YQ=", 3),
            ("YQ=a", 2),
            ("=", 0),
            ("Y===", 1),
            ("YQ==YQ==", 4),
            ("YWJ=\nx", 5),
            ("YQ-_", 2),
            ("Y Q=", 1),
        ] {
            assert_eq!(decode(text.as_bytes()), Err(at), "{text:?}");
        }
    }
}
