//! Template values as JSON, for helpers that copy values through their JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use biplane_model::{Map, Value as Json};
use biplane_template::func::{Call, Failure};
use biplane_template::types::Type;
use biplane_template::value::{self, Value};

/// Templates can make maps that contain themselves.
const MAX_DEPTH: usize = 500;

/// The bytes that a node takes besides its text.
const NODE_BYTES: u64 = 64;

/// The bytes of a node of a map, which has room for several entries.
const MAP_BYTES: u64 = 512;

/// Encodes a value like `encoding/json`. `None` if Go cannot encode it. Parts that a value contains
/// several times are encoded and counted several times.
pub(super) fn encode(call: &mut Call<'_>, value: &Value) -> Result<Option<Json>, Failure> {
    match encode_within(call, value, MAX_DEPTH) {
        Ok(json) => Ok(Some(json)),
        Err(Stop::Unsupported) => Ok(None),
        Err(Stop::Limit(failure)) => Err(failure),
    }
}

enum Stop {
    Unsupported,
    Limit(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Limit(failure)
    }
}

fn encode_within(call: &mut Call<'_>, value: &Value, depth: usize) -> Result<Json, Stop> {
    let depth = depth.checked_sub(1).ok_or(Stop::Unsupported)?;
    call.spend(1)?;
    call.reserve(NODE_BYTES)?;
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(_, number) => Json::from(*number),
        Value::Uint(_, number) => Json::from(*number),
        Value::Float(number) => {
            Json::Number(serde_json::Number::from_f64(*number).ok_or(Stop::Unsupported)?)
        }
        Value::Str(text) => Json::String(copied(call, text)?),
        Value::List(list) if list.is_nil() => Json::Null,
        Value::List(list) if *list.element() == Type::UINT8 => {
            let bytes = value.as_byte_slice().ok_or(Stop::Unsupported)?;
            call.reserve(bytes.len() as u64)?;
            Json::String(STANDARD.encode(bytes))
        }
        Value::List(list) => {
            let items = list.to_vec();
            let items = items.iter().map(|item| encode_within(call, item, depth));
            Json::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Map(map) if map.is_nil() => Json::Null,
        Value::Map(map) => {
            if *map.key() != Type::String {
                return Err(Stop::Unsupported);
            }
            let nodes = if map.is_empty() { 0 } else { 1 + map.len() as u64 / 8 };
            call.reserve(nodes * MAP_BYTES)?;
            let mut out = Map::new();
            for (key, value) in map.pairs() {
                let Value::Str(key) = key else { return Err(Stop::Unsupported) };
                let key = copied(call, &key)?;
                out.insert(key, encode_within(call, &value, depth)?);
            }
            Json::Object(out)
        }
        Value::Object(object) => match object.json() {
            value::Json::As(value) => encode_within(call, &value, depth)?,
            value::Json::Fields(fields) => {
                let fields = fields.into_iter().map(|(name, value)| {
                    Ok::<_, Stop>((name.to_owned(), encode_within(call, &value, depth)?))
                });
                Json::Object(fields.collect::<Result<_, _>>()?)
            }
            value::Json::Failed(_) => return Err(Stop::Unsupported),
        },
        Value::Complex(..) => return Err(Stop::Unsupported),
    })
}

fn copied(call: &mut Call<'_>, bytes: &[u8]) -> Result<String, Failure> {
    call.reserve(bytes.len() as u64)?;
    Ok(lossy(bytes))
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
