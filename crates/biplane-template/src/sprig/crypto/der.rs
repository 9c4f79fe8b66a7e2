//! Writes and reads ASN.1 in its distinguished encoding, as far as keys and certificates need it.

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OID: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The tag of an explicitly tagged element.
pub(super) const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// The tag of an implicitly tagged primitive element.
pub(super) const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// An element.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if let Ok(short @ 0..=0x7f) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(0);
        let bytes = bytes.get(start..).unwrap_or_default();
        out.push(0x80 | bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A number that is not negative, from its bytes.
pub(super) fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let digits = bytes.get(start..).unwrap_or_default();
    let mut content = Vec::with_capacity(digits.len() + 1);
    if digits.first().is_none_or(|first| first & 0x80 != 0) {
        content.push(0);
    }
    content.extend_from_slice(digits);
    element(INTEGER, &content)
}

/// A string of whole bytes of bits.
pub(super) fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// An object identifier whose first two numbers are already one.
pub(super) fn oid(encoded: &[u8]) -> Vec<u8> {
    element(OID, encoded)
}

/// Reads elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The tag of the next element.
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// The next element: its tag, its content, and all of its bytes.
    pub(super) fn any(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let (tag, after) = self.rest.split_first()?;
        let (first, after) = after.split_first()?;
        let (length, content) = match first {
            0..=0x7f => (usize::from(*first), after),
            0x81..=0x84 => {
                let (bytes, content) = after.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), content)
            }
            _ => return None,
        };
        let (content, rest) = content.split_at_checked(length)?;
        let whole = self.rest.get(..self.rest.len() - rest.len())?;
        self.rest = rest;
        Some((*tag, content, whole))
    }

    /// The content of the next element, if it has the tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let (found, content, _) = ahead.any()?;
        if found != tag {
            return None;
        }
        *self = ahead;
        Some(content)
    }

    /// The elements within the next element.
    pub(super) fn enter(&mut self, tag: u8) -> Option<Self> {
        self.expect(tag).map(Self::new)
    }

    /// A number that is not negative.
    pub(super) fn unsigned(&mut self) -> Option<&'a [u8]> {
        let bytes = self.expect(INTEGER)?;
        match bytes {
            [] => None,
            [first, ..] if first & 0x80 != 0 => None,
            [0, digits @ ..] if !digits.is_empty() => Some(digits),
            digits => Some(digits),
        }
    }
}
