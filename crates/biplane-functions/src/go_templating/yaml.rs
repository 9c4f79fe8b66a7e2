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
    let mut size = 0;
    let data = data(value, MAX_DEPTH, &mut size)?;
    call.spend(size / 64)?;
    call.reserve(size)?;
    Ok(Value::text(yaml::encode_document(&data)))
}

/// Reads a text.
pub(super) fn from_yaml(call: &mut Call<'_>, args: &[Value]) -> Result<Value, Failure> {
    let [Value::Str(text)] = args else { return Err(Failure::new("no text")) };
    call.spend(text.len() as u64 / 64)?;
    let data = yaml::decode_document(text).map_err(|error| Failure::new(error.to_string()))?;
    Ok(value(data))
}

/// The bytes that a node takes besides its text.
const NODE_BYTES: u64 = 32;

fn data(value: &Value, depth: usize, size: &mut u64) -> Result<Data, Failure> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::new(format!(
            "yaml: lists and objects are nested more than {MAX_DEPTH} deep"
        )));
    };
    *size += NODE_BYTES;
    Ok(match value {
        Value::Nil => Data::Null,
        Value::Bool(flag) => Data::Bool(*flag),
        Value::Int(_, number) => Data::Int(*number),
        Value::Uint(_, number) => Data::Uint(*number),
        Value::Float(number) => Data::Float(*number),
        Value::Str(text) => {
            *size += text.len() as u64;
            text_data(text)
        }
        Value::List(list) => {
            let items = list.to_vec();
            Data::List(items.iter().map(|i| data(i, depth, size)).collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let pairs = map.pairs().into_iter();
            let pairs = pairs.map(|(k, v)| Ok((data(&k, depth, size)?, data(&v, depth, size)?)));
            Data::Map(pairs.collect::<Result<_, Failure>>()?)
        }
        Value::Object(object) => of_object(object.as_ref(), value, depth, size)?,
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
    object: &dyn Object,
    value: &Value,
    depth: usize,
    size: &mut u64,
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
        return data(&underlying, depth, size);
    }
    let fields = object.fields().into_iter();
    let fields = fields.map(|(name, value)| Ok((name.to_lowercase(), data(&value, depth, size)?)));
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
