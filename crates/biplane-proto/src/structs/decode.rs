//! Decodes a Struct from the wire directly into JSON.

use biplane_model::{Map, Value};
use prost::DecodeError;
use prost::bytes::Buf;
use prost::encoding::{self, DecodeContext, WireType};

use super::finite;

fn error(text: &'static str) -> DecodeError {
    #[allow(deprecated)]
    DecodeError::new(text)
}

/// Decodes a varint. Nearly all are one byte long.
#[inline]
fn varint(buf: &mut &[u8]) -> Result<u64, DecodeError> {
    match *buf {
        [byte @ 0..=0x7f, rest @ ..] => {
            *buf = rest;
            Ok(u64::from(*byte))
        }
        _ => encoding::decode_varint(buf),
    }
}

/// Decodes the number and wire type of a field.
#[inline]
fn key(buf: &mut &[u8]) -> Result<(u32, WireType), DecodeError> {
    match *buf {
        [byte @ 0x08..=0x7f, rest @ ..] => {
            let wire = WireType::try_from(u64::from(byte & 7))?;
            *buf = rest;
            Ok((u32::from(byte >> 3), wire))
        }
        _ => encoding::decode_key(buf),
    }
}

/// The body of a length-delimited field, removed from the front of `buf`.
fn cut<'a>(buf: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let len = varint(buf)?;
    let (body, rest) = usize::try_from(len)
        .ok()
        .and_then(|len| buf.split_at_checked(len))
        .ok_or_else(|| error("buffer underflow"))?;
    *buf = rest;
    Ok(body)
}

fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    std::str::from_utf8(bytes).map_err(|_| error("invalid string value: data is not UTF-8 encoded"))
}

/// Decodes one entry of the outermost map.
pub(super) fn field(
    buf: &mut impl Buf,
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    let len = encoding::decode_varint(buf)?;
    let len = usize::try_from(len)
        .ok()
        .filter(|len| *len <= buf.remaining())
        .ok_or_else(|| error("buffer underflow"))?;
    if let Some(body) = buf.chunk().get(..len) {
        entry(body, map, depth)?;
        buf.advance(len);
        Ok(())
    } else {
        // The entry is spread over several chunks.
        entry(&buf.copy_to_bytes(len), map, depth)
    }
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    depth.checked_sub(1).ok_or_else(|| error("recursion limit reached"))
}

fn entry(mut buf: &[u8], map: &mut Map<String, Value>, depth: usize) -> Result<(), DecodeError> {
    let (mut name, mut value) = ("", Value::Null);
    while !buf.is_empty() {
        match key(&mut buf)? {
            (1, WireType::LengthDelimited) => name = text(cut(&mut buf)?)?,
            (2, WireType::LengthDelimited) => read_value(cut(&mut buf)?, &mut value, depth)?,
            (1 | 2, _) => return Err(error("invalid wire type")),
            (tag, wire) => encoding::skip_field(wire, tag, &mut buf, DecodeContext::default())?,
        }
    }
    map.insert(name.to_owned(), value);
    Ok(())
}

// If a oneof is set repeatedly, the last one wins. Repeated messages of the same variant merge.
fn read_value(mut buf: &[u8], value: &mut Value, depth: usize) -> Result<(), DecodeError> {
    let depth = deeper(depth)?;
    while !buf.is_empty() {
        match key(&mut buf)? {
            (1, WireType::Varint) => {
                varint(&mut buf)?;
                *value = Value::Null;
            }
            (2, WireType::SixtyFourBit) => {
                let (bytes, rest) =
                    buf.split_first_chunk::<8>().ok_or_else(|| error("buffer underflow"))?;
                buf = rest;
                *value = finite(f64::from_le_bytes(*bytes))
                    .ok_or_else(|| error("number is not finite"))?;
            }
            (3, WireType::LengthDelimited) => *value = text(cut(&mut buf)?)?.into(),
            (4, WireType::Varint) => *value = (varint(&mut buf)? != 0).into(),
            (5, WireType::LengthDelimited) => {
                let mut body = cut(&mut buf)?;
                if !value.is_object() {
                    *value = Value::Object(Map::new());
                }
                let Value::Object(map) = value else { continue };
                while !body.is_empty() {
                    match key(&mut body)? {
                        (1, WireType::LengthDelimited) => entry(cut(&mut body)?, map, depth)?,
                        (1, _) => return Err(error("invalid wire type")),
                        (tag, wire) => {
                            encoding::skip_field(wire, tag, &mut body, DecodeContext::default())?;
                        }
                    }
                }
            }
            (6, WireType::LengthDelimited) => {
                let mut body = cut(&mut buf)?;
                if !value.is_array() {
                    *value = Value::Array(Vec::new());
                }
                let Value::Array(items) = value else { continue };
                while !body.is_empty() {
                    match key(&mut body)? {
                        (1, WireType::LengthDelimited) => {
                            let mut item = Value::Null;
                            read_value(cut(&mut body)?, &mut item, depth)?;
                            items.push(item);
                        }
                        (1, _) => return Err(error("invalid wire type")),
                        (tag, wire) => {
                            encoding::skip_field(wire, tag, &mut body, DecodeContext::default())?;
                        }
                    }
                }
            }
            (1..=6, _) => return Err(error("invalid wire type")),
            (tag, wire) => encoding::skip_field(wire, tag, &mut buf, DecodeContext::default())?,
        }
    }
    Ok(())
}
