//! IP addresses, with the complaints of Go's `net/netip`.

use biplane_go::fmt::quote_bytes;

/// An address of four or sixteen bytes, and whether it has a zone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) bytes: Vec<u8>,
    pub(super) zone: bool,
}

/// Checks an address between brackets. The error is `None` for an IPv4 address.
pub(super) fn check_ipv6(text: &[u8]) -> Result<(), Option<String>> {
    match parse(text) {
        Ok(address) if address.bytes.len() == 4 => Err(None),
        Ok(_) => Ok(()),
        Err(why) => Err(Some(why)),
    }
}

/// Reads an address. The error is Go's.
pub(super) fn parse(text: &[u8]) -> Result<Address, String> {
    let fail = |(message, at): (&str, &[u8])| {
        let place =
            if at.is_empty() { String::new() } else { format!(" (at {})", quote_bytes(at)) };
        format!("ParseAddr({}): {message}{place}", quote_bytes(text))
    };
    match text.iter().find(|byte| b".:%".contains(byte)) {
        Some(b'.') => {
            let bytes = ipv4(text).map_err(fail)?.to_vec();
            Ok(Address { bytes, zone: false })
        }
        Some(b':') => ipv6(text).map_err(fail),
        Some(_) => Err(fail(("missing IPv6 address", b""))),
        None => Err(fail(("unable to parse IP", b""))),
    }
}

/// A message, and the text at which it happened.
type Problem<'a> = (&'static str, &'a [u8]);

fn ipv4(text: &[u8]) -> Result<[u8; 4], Problem<'_>> {
    let mut fields = [0; 4];
    let (mut value, mut digits, mut field) = (0_u16, 0, 0);
    for (at, byte) in text.iter().enumerate() {
        let here = text.get(at..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", b""));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", b""));
                }
            }
            b'.' => {
                if digits == 0 || at + 1 == text.len() {
                    return Err(("IPv4 field must have at least one digit", here));
                }
                if field == 3 {
                    return Err(("IPv4 address too long", b""));
                }
                if let Some(slot) = fields.get_mut(field) {
                    *slot = value as u8;
                }
                field += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(("unexpected character", here)),
        }
    }
    if field < 3 {
        return Err(("IPv4 address too short", b""));
    }
    fields[3] = value as u8;
    Ok(fields)
}

fn ipv6(text: &[u8]) -> Result<Address, Problem<'_>> {
    let (mut rest, zone) = match text.iter().position(|byte| *byte == b'%') {
        Some(at) => (text.get(..at).unwrap_or_default(), true),
        None => (text, false),
    };
    if zone && rest.len() + 1 == text.len() {
        return Err(("zone must be a non-empty string", b""));
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(16);
    let mut gap = None;
    if let Some(after) = rest.strip_prefix(b"::") {
        gap = Some(0);
        rest = after;
    }
    while bytes.len() < 16 && !(gap == Some(0) && bytes.is_empty() && rest.is_empty()) {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", rest));
        }
        let (group, after) = rest.split_at(digits);
        if after.starts_with(b".") {
            if gap.is_none() && bytes.len() != 12 {
                let message =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return Err((message, rest));
            }
            if bytes.len() > 12 {
                let message =
                    "too many hex fields to fit an embedded IPv4 at the end of the address";
                return Err((message, rest));
            }
            bytes.extend_from_slice(&ipv4(rest)?);
            rest = b"";
            break;
        }
        let number = group.iter().fold(0_u16, |number, digit| {
            number << 4 | char::from(*digit).to_digit(16).unwrap_or_default() as u16
        });
        bytes.extend_from_slice(&number.to_be_bytes());
        rest = after;
        match rest {
            [] => break,
            [b':'] => return Err(("colon must be followed by more characters", rest)),
            [b':', b':', ..] if gap.is_some() => {
                return Err(("multiple :: in address", rest.get(1..).unwrap_or_default()));
            }
            [b':', b':', after @ ..] => {
                gap = Some(bytes.len());
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            [b':', after @ ..] => rest = after,
            _ => return Err(("unexpected character, want colon", rest)),
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match gap {
        None if bytes.len() < 16 => return Err(("address string too short", b"")),
        Some(_) if bytes.len() == 16 => {
            return Err(("the :: must expand to at least one field of zeros", b""));
        }
        Some(gap) => {
            let tail = bytes.split_off(gap);
            bytes.resize(16 - tail.len(), 0);
            bytes.extend(tail);
        }
        None => {}
    }
    Ok(Address { bytes, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_as_the_standard_library_does() {
        for text in
            ["1.2.3.4", "::", "::1", "1::", "fe80::1:2", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4"]
        {
            let expected = match text.parse::<std::net::IpAddr>().unwrap() {
                std::net::IpAddr::V4(address) => address.octets().to_vec(),
                std::net::IpAddr::V6(address) => address.octets().to_vec(),
            };
            assert_eq!(parse(text.as_bytes()).unwrap().bytes, expected, "{text}");
        }
        assert!(parse(b"fe80::1%eth0").unwrap().zone);
        assert_eq!(parse(b"1.2.3").unwrap_err(), r#"ParseAddr("1.2.3"): IPv4 address too short"#);
        let error = r#"ParseAddr("1::2::3"): multiple :: in address (at ":3")"#;
        assert_eq!(parse(b"1::2::3").unwrap_err(), error);
    }
}
