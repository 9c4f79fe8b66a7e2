//! A buffer into which protobuf is written from end to start.
//!
//! A nested message follows its length. When writing forwards, the length must be computed before
//! the message, at every level. When writing backwards, the length is known when it is needed, so
//! one pass over the data is enough. Callers write the last byte first.

use prost::encoding::{WireType, encoded_len_varint};

/// The buffer. The bytes written so far are at the end of `bytes`, from `at` on.
#[derive(Debug, Default)]
pub(crate) struct Backwards {
    bytes: Vec<u8>,
    at: usize,
}

impl Backwards {
    /// A buffer with a capacity in bytes.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], at: capacity }
    }

    /// The written bytes, in wire order.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The number of written bytes. The difference of two lengths is the length of a message.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Prepends bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let from = self.room(bytes.len());
        if let Some(place) = self.bytes.get_mut(from..self.at) {
            place.copy_from_slice(bytes);
        }
        self.at = from;
    }

    /// Prepends a varint.
    pub(crate) fn varint(&mut self, number: u64) {
        if number < 0x80 {
            return self.bytes(&[number as u8]);
        }
        let mut rest = number;
        let from = self.room(encoded_len_varint(number));
        if let Some(place) = self.bytes.get_mut(from..self.at) {
            for byte in &mut *place {
                *byte = (rest as u8) | 0x80;
                rest >>= 7;
            }
            if let Some(last) = place.last_mut() {
                *last &= 0x7f;
            }
        }
        self.at = from;
    }

    /// Prepends the key of a field.
    pub(crate) fn key(&mut self, field: u8, wire: WireType) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// Turns everything written since the buffer had `before` bytes into a field.
    pub(crate) fn close(&mut self, field: u8, before: usize) {
        let len = self.len() - before;
        if len < 0x80 && field < 0x10 {
            return self.bytes(&[field << 3 | WireType::LengthDelimited as u8, len as u8]);
        }
        self.varint(len as u64);
        self.key(field, WireType::LengthDelimited);
    }

    /// Writes a string or bytes field, even if it is empty.
    pub(crate) fn delimited(&mut self, field: u8, bytes: &[u8]) {
        let before = self.len();
        self.bytes(bytes);
        self.close(field, before);
    }

    /// Reserves space for more bytes and returns its offset.
    #[inline]
    fn room(&mut self, more: usize) -> usize {
        match self.at.checked_sub(more) {
            Some(from) => from,
            None => self.grow(more),
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) -> usize {
        let used = self.len();
        let size = (used + more).max(self.bytes.len() * 2).max(64);
        let mut bytes = vec![0; size];
        if let Some(end) = bytes.get_mut(size - used..) {
            end.copy_from_slice(self.as_slice());
        }
        self.bytes = bytes;
        self.at = size - used;
        self.at - more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_keeps_what_was_written() {
        let mut out = Backwards::default();
        for n in (0..1000u64).rev() {
            out.varint(n);
        }
        let mut bytes = out.as_slice();
        for n in 0..1000 {
            assert_eq!(prost::encoding::decode_varint(&mut bytes), Ok(n));
        }
        assert!(bytes.is_empty());
    }

    #[test]
    fn writes_every_width_of_number() {
        for n in (0..64).map(|bit| 1u64 << bit).flat_map(|n| [n - 1, n, n + 1]).chain([u64::MAX]) {
            let (mut out, mut expected) = (Backwards::with_capacity(3), Vec::new());
            out.varint(n);
            prost::encoding::encode_varint(n, &mut expected);
            assert_eq!(out.as_slice(), expected);
        }
    }
}
