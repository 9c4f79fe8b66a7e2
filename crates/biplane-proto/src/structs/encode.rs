//! Encodes JSON as a Struct.

use biplane_model::{Map, Value};
use prost::encoding::{WireType, encoded_len_varint};

use crate::backwards::Backwards;

fn varint_len(n: usize) -> usize {
    encoded_len_varint(n as u64)
}

/// The length of a field with a one-byte key and a length prefix.
fn field_len(body: usize) -> usize {
    1 + varint_len(body) + body
}

pub(super) fn fields_len(map: &Map<String, Value>) -> usize {
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

// Like Go, write key and value of a map entry even if they are empty.
pub(super) fn write_fields(out: &mut Backwards, map: &Map<String, Value>) {
    for (key, value) in map.iter().rev() {
        let before = out.len();
        write_value(out, 2, value);
        out.delimited(1, key.as_bytes());
        out.close(1, before);
    }
}

/// Writes a value as a field of its parent.
fn write_value(out: &mut Backwards, field: u8, value: &Value) {
    let before = out.len();
    match value {
        Value::Null => {
            out.varint(0);
            out.key(1, WireType::Varint);
        }
        Value::Number(n) => {
            out.bytes(&n.as_f64().unwrap_or_default().to_le_bytes());
            out.key(2, WireType::SixtyFourBit);
        }
        Value::String(s) => out.delimited(3, s.as_bytes()),
        Value::Bool(b) => {
            out.varint(u64::from(*b));
            out.key(4, WireType::Varint);
        }
        Value::Object(map) => {
            write_fields(out, map);
            out.close(5, before);
        }
        Value::Array(items) => {
            for item in items.iter().rev() {
                write_value(out, 1, item);
            }
            out.close(6, before);
        }
    }
    out.close(field, before);
}
