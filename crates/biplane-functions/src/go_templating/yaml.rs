//! `toYaml` and `fromYaml`: template values as the newer version of go-yaml prints and reads them.

use std::collections::BTreeMap;

use biplane_go::time::{self, GoTime};
use biplane_model::yaml::{self, Data};
use biplane_template::func::{Call, Failure};
use biplane_template::sprig::time::Time;
use biplane_template::types::UintKind;
use biplane_template::value::{Map, Object, Text, Value};

use super::condition::{MetaTime, time_of};

/// Templates can make maps that contain themselves.
const MAX_DEPTH: usize = 500;

/// Prints a value.
pub(super) fn to_yaml(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [value] = args else { return Err(Failure::new("no value")) };
    let data = data(call, value, MAX_DEPTH)?;
    Ok(Value::text(yaml::encode_document(&data)))
}

/// Reads a text.
pub(super) fn from_yaml(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [Value::Str(text)] = args else { return Err(Failure::new("no text")) };
    call.spend(text.len() as u64 / 8)?;
    let reserved = text.len() as u64 * READ_BYTES;
    call.reserve(reserved)?;
    let data = yaml::decode_document(text).map_err(|error| Failure::new(error.to_string()))?;
    // Aliases make more than the text shows.
    call.reserve(size(&data).saturating_sub(reserved))?;
    Ok(value(data))
}

/// The bytes that a node takes besides its text, while it is printed and afterwards.
const NODE_BYTES: u64 = 64;

/// The bytes that a byte of text can become: a node can be as short as `1,`.
const READ_BYTES: u64 = 64;

/// The bytes of a map besides its entries.
const MAP_BYTES: u64 = 512;

/// The columns of one level.
const INDENT: usize = 4;

/// About how many bytes a value takes.
fn size(data: &Data) -> u64 {
    NODE_BYTES
        + match data {
            Data::Text(text) | Data::Time(text) => text.len() as u64,
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::List(items) => items.iter().map(size).sum(),
            Data::Map(entries) => {
                MAP_BYTES + entries.iter().map(|(key, one)| size(key) + size(one)).sum::<u64>()
            }
            Data::Struct(fields) => {
                let sizes = fields.iter().map(|(key, one)| key.len() as u64 + size(one));
                MAP_BYTES + sizes.sum::<u64>()
            }
            _ => 0,
        }
}

fn data(call: &mut Call<'_>, value: &Value, depth: usize) -> Result<Data, Failure> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::new(format!(
            "yaml: lists and objects are nested more than {MAX_DEPTH} deep"
        )));
    };
    call.spend(1)?;
    // Every line is indented.
    let indent = (INDENT * (MAX_DEPTH - depth)) as u64;
    call.reserve(NODE_BYTES + indent)?;
    Ok(match value {
        Value::Nil => Data::Null,
        Value::Bool(flag) => Data::Bool(*flag),
        Value::Int(_, number) => Data::Int(*number),
        Value::Uint(_, number) => Data::Uint(*number),
        Value::Float(number) => Data::Float(*number),
        Value::Str(text) => {
            let lines = text.split(|byte| *byte == b'\n').count() as u64;
            call.spend(text.len() as u64 / 64)?;
            // Once as it is, and once as it is printed.
            call.reserve(2 * text.len() as u64 + lines * indent)?;
            text_data(text)
        }
        Value::List(list) => {
            let items = list.to_vec();
            Data::List(items.iter().map(|i| data(call, i, depth)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let pairs = map.pairs().into_iter();
            let pairs = pairs.map(|(k, v)| Ok((data(call, &k, depth)?, data(call, &v, depth)?)));
            Data::Map(pairs.collect::<Result<_, Failure>>()?)
        }
        Value::Object(object) => of_object(call, object.as_ref(), value, depth)?,
        Value::Complex(..) => {
            return Err(Failure::new(format!("cannot marshal type: {}", value.type_name())));
        }
    })
}

fn text_data(text: &[u8]) -> Data {
    match str::from_utf8(text) {
        Ok(text) => Data::Text(text.to_owned()),
        Err(_) => Data::Bytes(text.to_vec()),
    }
}

fn of_object(
    call: &mut Call<'_>,
    object: &dyn Object,
    value: &Value,
    depth: usize,
) -> Result<Data, Failure> {
    if let Some(time) = time_of(object) {
        return Ok(Data::Time(time.rfc3339()));
    }
    if let Some(MetaTime(time)) = object.as_any().downcast_ref() {
        return Ok(Data::Text(time.rfc3339()));
    }
    // These print as the text of their `String` method.
    if matches!(value.type_name().as_str(), "time.Duration" | "*semver.Version") {
        return Ok(Data::Text(object.string().unwrap_or_default()));
    }
    if let Some(underlying) = object.underlying() {
        return data(call, &underlying, depth);
    }
    let fields = object.fields().into_iter();
    let fields = fields.map(|(name, value)| Ok((name.to_lowercase(), data(call, &value, depth)?)));
    fields.collect::<Result<_, Failure>>().map(Data::Struct)
}

fn value(data: Data) -> Value {
    match data {
        Data::Null => Value::Nil,
        Data::Bool(flag) => Value::Bool(flag),
        Data::Int(number) => Value::int(number),
        Data::Uint(number) => Value::Uint(UintKind::Uint64, number),
        Data::Float(number) => Value::Float(number),
        Data::Text(text) => Value::text(text),
        Data::Bytes(bytes) => Value::text(bytes),
        Data::Time(text) => match timestamp(&text) {
            Some(time) => Value::object(Time(time)),
            None => Value::text(text),
        },
        Data::List(items) => Value::list(items.into_iter().map(value).collect()),
        Data::Map(entries) if Data::has_text_keys(&entries) => {
            Value::dict(entries.into_iter().map(|(key, one)| (text(key), value(one))))
        }
        Data::Map(entries) => {
            let (mut texts, mut others) = (BTreeMap::new(), Vec::new());
            for (key, one) in entries {
                match key {
                    key @ (Data::Text(_) | Data::Bytes(_)) => {
                        texts.insert(text(key), value(one));
                    }
                    key => others.push((value(key), value(one))),
                }
            }
            Value::Map(Map::any(texts, others))
        }
        Data::Struct(fields) => {
            Value::dict(fields.into_iter().map(|(key, one)| (Text::from(key), value(one))))
        }
    }
}

fn text(key: Data) -> Text {
    match key {
        Data::Text(text) => text.into(),
        Data::Bytes(bytes) => bytes.into(),
        _ => Text::from(""),
    }
}

fn timestamp(text: &str) -> Option<GoTime> {
    const LAYOUTS: [&str; 4] = [
        "2006-1-2T15:4:5.999999999Z07:00",
        "2006-1-2t15:4:5.999999999Z07:00",
        "2006-1-2 15:4:5.999999999",
        "2006-1-2",
    ];
    LAYOUTS.iter().find_map(|layout| time::parse(layout.as_bytes(), text.as_bytes()).ok())
}
