//! Template values as JSON, for helpers that copy values through their JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::{Map, Value as Json};
use biplane_template::types::Type;
use biplane_template::value::{self, Value};

/// Templates can make maps that contain themselves.
const MAX_DEPTH: usize = 500;

/// Encodes a value like `encoding/json`. `None` if Go cannot encode it.
pub(super) fn encode(value: &Value) -> Option<Json> {
    encode_within(value, MAX_DEPTH)
}

fn encode_within(value: &Value, depth: usize) -> Option<Json> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        Value::Nil => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(_, number) => Json::from(*number),
        Value::Uint(_, number) => Json::from(*number),
        Value::Float(number) => Json::Number(serde_json::Number::from_f64(*number)?),
        Value::Str(text) => Json::String(lossy(text)),
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) if *list.element() == Type::UINT8 => {
            Json::String(STANDARD.encode(value.as_byte_slice()?))
        }
        Value::List(list) => {
            let items = list.to_vec();
            Json::Array(items.iter().map(|i| encode_within(i, depth)).collect::<Option<_>>()?)
        }
        Value::Map(map) if map.is_nil() => Json::Null,
        Value::Map(map) => {
            if *map.key() != Type::String {
                return None;
            }
            let mut out = Map::new();
            for (key, value) in map.pairs() {
                let Value::Str(key) = key else { return None };
                out.insert(lossy(&key), encode_within(&value, depth)?);
            }
            Json::Object(out)
        }
        Value::Object(object) => match object.json() {
            value::Json::As(value) => encode_within(&value, depth)?,
            value::Json::Fields(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| Some((name.to_owned(), encode_within(&value, depth)?)));
                Json::Object(fields.collect::<Option<_>>()?)
            }
            value::Json::Failed(_) => return None,
        },
        Value::Complex(..) => return None,
    })
}

/// Each byte that is not valid UTF-8 is replaced.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}
