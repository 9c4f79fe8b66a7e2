//! Reads bytes in JSON: base64 in either alphabet, padded or not.

use std::fmt;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The value of a bytes field, or of an entry in a map of bytes.
pub(crate) struct Bytes<T>(pub(crate) T);

impl<'de, T: From<Vec<u8>>> Deserialize<'de> for Bytes<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Base64).map(|bytes| Self(bytes.into()))
    }
}

struct Base64;

/// Accepts every type, so that all errors have the same message.
impl<'de> Visitor<'de> for Base64 {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes in base64")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
        decode(text).ok_or_else(|| invalid(serde_json::Value::from(text)))
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Vec<u8>, E> {
        Err(invalid(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<u8>, E> {
        Err(invalid(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<u8>, E> {
        Err(invalid(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Vec<u8>, E> {
        Err(invalid(super::format_float(number)))
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<u8>, E> {
        Err(invalid("null"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Vec<u8>, A::Error> {
        Err(invalid("["))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Vec<u8>, A::Error> {
        Err(invalid("{"))
    }
}

/// Go's error message. In practice all bytes are in maps, whose values have this name.
fn invalid<E: Error>(token: impl fmt::Display) -> E {
    E::custom(format_args!("invalid value for bytes field value: {token}"))
}

/// A string does not mix alphabets. Its length decides whether it is padded. Line breaks count for
/// the length, but are otherwise ignored.
fn decode(text: &str) -> Option<Vec<u8>> {
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    let padding = if text.len().is_multiple_of(4) {
        DecodePaddingMode::RequireCanonical
    } else {
        DecodePaddingMode::RequireNone
    };
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(padding)
        .with_decode_allow_trailing_bits(true);
    let letters: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    GeneralPurpose::new(alphabet, config).decode(letters).ok()
}
