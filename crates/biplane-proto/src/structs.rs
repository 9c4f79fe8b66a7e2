//! `google.protobuf.Struct` as a JSON object, with its codec.

use std::ops::Deref;

use biplane_model::{Map, Object, Value};
use prost::DecodeError;
use prost::bytes::{Buf, BufMut};
use prost::encoding::{self, DecodeContext, WireType};
use serde::{Deserialize, Serialize};

/// A `google.protobuf.Struct`: a JSON object whose numbers follow the rules of protobuf.
///
/// Cloning shares the object. Every number is what a double can hold: see [`Struct::from`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Struct(Object);

/// How deep objects and lists may nest on the wire. Real documents stay below a tenth of it, and
/// it fits the stack of any thread that we decode on.
pub const MAX_DEPTH: usize = 500;

impl Struct {
    /// The object.
    pub fn object(&self) -> &Object {
        &self.0
    }

    /// The object.
    pub fn into_object(self) -> Object {
        self.0
    }

    /// The map, to be changed. What is written must follow the rules of [`normalize`].
    pub fn make_mut(&mut self) -> &mut Map<String, Value> {
        self.0.make_mut()
    }
}

impl Deref for Struct {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.0
    }
}

/// Applies the number rules of protobuf; an object that already follows them is shared, not copied.
impl From<Object> for Struct {
    fn from(mut object: Object) -> Self {
        if !object.values().all(is_normal) {
            object.make_mut().values_mut().for_each(normalize);
        }
        Self(object)
    }
}

impl From<Map<String, Value>> for Struct {
    fn from(mut map: Map<String, Value>) -> Self {
        map.values_mut().for_each(normalize);
        Self(map.into())
    }
}

/// The largest magnitude below which every whole double is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A double as JSON holds it: whole and exact ones are integers, negative zero is not.
pub fn number(double: f64) -> Value {
    if double.fract() == 0.0 && double.abs() < EXACT && !(double == 0.0 && double.is_sign_negative())
    {
        return Value::from(double as i64);
    }
    // JSON has no infinities; Go refuses to print them, we keep nothing.
    serde_json::Number::from_f64(double).map_or(Value::Null, Value::Number)
}

fn is_normal(value: &Value) -> bool {
    match value {
        Value::Number(n) => match n.as_i64() {
            Some(i) => (i as f64).abs() < EXACT,
            None => n.as_f64().is_some_and(|f| number(f) == *value),
        },
        Value::Array(items) => items.iter().all(is_normal),
        Value::Object(map) => map.values().all(is_normal),
        _ => true,
    }
}

/// Makes every number what a double can hold.
pub fn normalize(value: &mut Value) {
    match value {
        Value::Number(n) => *value = number(n.as_f64().unwrap_or_default()),
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Object(map) => map.values_mut().for_each(normalize),
        _ => {}
    }
}

impl prost::Message for Struct {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        write_fields(&self.0, buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 {
            return encoding::skip_field(wire_type, tag, buf, ctx);
        }
        encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
        let mut body = delimited(buf)?;
        read_entry(&mut body, self.0.make_mut(), MAX_DEPTH)
    }

    fn encoded_len(&self) -> usize {
        fields_len(&self.0)
    }

    fn clear(&mut self) {
        self.0 = Object::new();
    }
}

fn varint_len(n: usize) -> usize {
    encoding::encoded_len_varint(n as u64)
}

/// Length of a field with a one-byte key and a length prefix.
fn field_len(body: usize) -> usize {
    1 + varint_len(body) + body
}

fn fields_len(map: &Map<String, Value>) -> usize {
    map.iter().map(|(k, v)| field_len(entry_len(k, v))).sum()
}

fn entry_len(key: &str, value: &Value) -> usize {
    field_len(key.len()) + field_len(value_len(value))
}

fn value_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 2,
        Value::Number(_) => 9,
        Value::String(s) => field_len(s.len()),
        Value::Object(map) => field_len(fields_len(map)),
        Value::Array(items) => field_len(list_len(items)),
    }
}

fn list_len(items: &[Value]) -> usize {
    items.iter().map(|v| field_len(value_len(v))).sum()
}

fn write_key(number: u8, wire: WireType, buf: &mut impl BufMut) {
    buf.put_u8((number << 3) | wire as u8);
}

fn write_delimited(number: u8, len: usize, buf: &mut impl BufMut) {
    write_key(number, WireType::LengthDelimited, buf);
    encoding::encode_varint(len as u64, buf);
}

// Go writes key and value of a map entry also when they are empty, and so do we.
fn write_fields(map: &Map<String, Value>, buf: &mut impl BufMut) {
    for (key, value) in map {
        write_delimited(1, entry_len(key, value), buf);
        write_delimited(1, key.len(), buf);
        buf.put_slice(key.as_bytes());
        write_delimited(2, value_len(value), buf);
        write_value(value, buf);
    }
}

fn write_value(value: &Value, buf: &mut impl BufMut) {
    match value {
        Value::Null => {
            write_key(1, WireType::Varint, buf);
            buf.put_u8(0);
        }
        Value::Number(n) => {
            write_key(2, WireType::SixtyFourBit, buf);
            buf.put_f64_le(n.as_f64().unwrap_or_default());
        }
        Value::String(s) => {
            write_delimited(3, s.len(), buf);
            buf.put_slice(s.as_bytes());
        }
        Value::Bool(b) => {
            write_key(4, WireType::Varint, buf);
            buf.put_u8(u8::from(*b));
        }
        Value::Object(map) => {
            write_delimited(5, fields_len(map), buf);
            write_fields(map, buf);
        }
        Value::Array(items) => {
            write_delimited(6, list_len(items), buf);
            for item in items {
                write_delimited(1, value_len(item), buf);
                write_value(item, buf);
            }
        }
    }
}

fn error(text: &'static str) -> DecodeError {
    #[allow(deprecated)]
    DecodeError::new(text)
}

/// The body of a length-delimited field, cut off the front of `buf`.
fn delimited(buf: &mut impl Buf) -> Result<prost::bytes::Bytes, DecodeError> {
    let len = encoding::decode_varint(buf)?;
    if len > buf.remaining() as u64 {
        return Err(error("buffer underflow"));
    }
    Ok(buf.copy_to_bytes(len as usize))
}

/// The same on bytes that are already apart.
fn cut<'a>(buf: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let len = encoding::decode_varint(buf)?;
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

fn read_entry(
    body: &mut impl Buf,
    map: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), DecodeError> {
    let bytes = body.copy_to_bytes(body.remaining());
    entry(&bytes, map, depth)
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    depth.checked_sub(1).ok_or_else(|| error("recursion limit reached"))
}

fn entry(mut buf: &[u8], map: &mut Map<String, Value>, depth: usize) -> Result<(), DecodeError> {
    let (mut key, mut value) = (String::new(), Value::Null);
    while !buf.is_empty() {
        match encoding::decode_key(&mut buf)? {
            (1, WireType::LengthDelimited) => text(cut(&mut buf)?)?.clone_into(&mut key),
            (2, WireType::LengthDelimited) => read_value(cut(&mut buf)?, &mut value, depth)?,
            (1 | 2, _) => return Err(error("invalid wire type")),
            (tag, wire) => encoding::skip_field(wire, tag, &mut buf, DecodeContext::default())?,
        }
    }
    map.insert(key, value);
    Ok(())
}

// A repeated field of a oneof is the last one; repeated messages of the same variant merge.
fn read_value(mut buf: &[u8], value: &mut Value, depth: usize) -> Result<(), DecodeError> {
    let depth = deeper(depth)?;
    while !buf.is_empty() {
        match encoding::decode_key(&mut buf)? {
            (1, WireType::Varint) => {
                encoding::decode_varint(&mut buf)?;
                *value = Value::Null;
            }
            (2, WireType::SixtyFourBit) => {
                let (bytes, rest) =
                    buf.split_first_chunk::<8>().ok_or_else(|| error("buffer underflow"))?;
                buf = rest;
                *value = number(f64::from_le_bytes(*bytes));
            }
            (3, WireType::LengthDelimited) => *value = text(cut(&mut buf)?)?.into(),
            (4, WireType::Varint) => *value = (encoding::decode_varint(&mut buf)? != 0).into(),
            (5, WireType::LengthDelimited) => {
                let mut body = cut(&mut buf)?;
                if !value.is_object() {
                    *value = Value::Object(Map::new());
                }
                let Value::Object(map) = value else { continue };
                while !body.is_empty() {
                    match encoding::decode_key(&mut body)? {
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
                    match encoding::decode_key(&mut body)? {
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
