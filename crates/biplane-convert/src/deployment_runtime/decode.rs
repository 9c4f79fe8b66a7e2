//! Decodes a ControllerConfig like Go, and encodes it again: unknown fields and empty ones are left
//! out, and quantities get their canonical form.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use biplane_go::{json, quantity, time};
use biplane_model::{Map, Value};

use crate::document::kind_of;

const TABLE: &str = include_str!("types.txt");

/// The type of a field.
#[derive(Clone, Debug)]
enum Type {
    /// A string, and Go's name of its type.
    Text(&'static str),
    Bool,
    Int(&'static str),
    Any,
    Time,
    Quantity,
    Pointer(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Struct(&'static str),
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    of: Type,
    /// Whether it is written even if it is empty.
    always: bool,
}

static STRUCTS: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let structs = lines.map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let fields = words.filter_map(|word| word.split_once(':')).map(|(name, text)| {
            let bare = text.strip_suffix('!');
            Field { name, of: Type::read(bare.unwrap_or(text)), always: bare.is_some() }
        });
        (name, fields.collect())
    });
    structs.collect()
});

impl Type {
    fn read(text: &'static str) -> Self {
        let boxed = |text| Box::new(Self::read(text));
        if let Some(rest) = text.strip_prefix('*') {
            return Self::Pointer(boxed(rest));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Self::List(boxed(rest));
        }
        if let Some(rest) = text.strip_prefix("{}") {
            return Self::Map(boxed(rest));
        }
        if let Some(name) = text.strip_prefix("string=") {
            return Self::Text(name);
        }
        match text {
            "string" => Self::Text(text),
            "bool" => Self::Bool,
            "int32" | "int64" => Self::Int(text),
            "any" => Self::Any,
            "time" => Self::Time,
            "quantity" => Self::Quantity,
            name => Self::Struct(name),
        }
    }

    /// The type as Go prints it.
    fn name(&self) -> String {
        match self {
            Self::Text(name) | Self::Int(name) | Self::Struct(name) => (*name).to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Any => "v1.FieldsV1".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::Pointer(to) => to.name(),
            Self::List(item) => format!("[]{}", item.name()),
            Self::Map(item) if matches!(**item, Self::Quantity) => "v1.ResourceList".to_owned(),
            Self::Map(item) => format!("map[string]{}", item.name()),
        }
    }
}

/// Decodes and encodes a ControllerConfig. The error is Go's.
pub(super) fn controller_config(object: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let mut decoder = Decoder::default();
    let encoded = decoder.members(object, "v1alpha1.ControllerConfig")?;
    match decoder.mismatch {
        Some(mismatch) => Err(mismatch),
        None => Ok(encoded),
    }
}

#[derive(Debug, Default)]
struct Decoder {
    path: Vec<&'static str>,
    /// The innermost struct.
    within: &'static str,
    /// The first value of the wrong type. Decoding goes on, because what else is wrong may be worse.
    mismatch: Option<String>,
}

impl Decoder {
    fn members(
        &mut self,
        object: &Map<String, Value>,
        name: &'static str,
    ) -> Result<Map<String, Value>, String> {
        let outer = std::mem::replace(&mut self.within, name);
        let mut encoded = Map::new();
        let fields = STRUCTS.get(name).map(Vec::as_slice).unwrap_or_default();
        // Values are decoded in the order of the object, which is that of the keys.
        for (key, value) in object {
            let Some(field) = fields.iter().find(|field| field.name == key) else { continue };
            self.path.push(field.name);
            let value = self.value(value, &field.of)?;
            self.path.pop();
            encoded.insert(key.clone(), value);
        }
        self.within = outer;
        for field in fields {
            let value = encoded.remove(field.name);
            let value = value.unwrap_or_else(|| zero(&field.of));
            if field.always || !is_empty(&value, &field.of) {
                encoded.insert(field.name.to_owned(), value);
            }
        }
        Ok(encoded)
    }

    fn value(&mut self, value: &Value, of: &Type) -> Result<Value, String> {
        Ok(match (of, value) {
            (_, Value::Null) => zero(of),
            (Type::Pointer(to), value) => self.value(value, to)?,
            (Type::Any, value) => value.clone(),
            (Type::Text(_), Value::String(_)) | (Type::Bool, Value::Bool(_)) => value.clone(),
            (Type::Int(name), Value::Number(number)) => {
                let fits =
                    number.as_i64().filter(|n| *name == "int64" || i32::try_from(*n).is_ok());
                if fits.is_none() {
                    self.mismatch(&format!("number {}", json::to_string(value)), of);
                }
                fits.map_or_else(|| zero(of), Value::from)
            }
            (Type::Time, Value::String(text)) => {
                if time::instant(text).is_none() {
                    return Err(format!(
                        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse \
                         {text:?} as \"2006\""
                    ));
                }
                value.clone()
            }
            (Type::Quantity, value) => {
                let text = json::to_string(value);
                let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                let bare = bare.unwrap_or(&text).trim();
                quantity::canonical(bare.as_bytes()).map_err(|error| error.to_string())?.into()
            }
            (Type::List(item), Value::Array(items)) => {
                let items = items.iter().map(|value| self.value(value, item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            (Type::Map(item), Value::Object(map)) => {
                let entries =
                    map.iter().map(|(key, value)| Ok((key.clone(), self.value(value, item)?)));
                Value::Object(entries.collect::<Result<_, String>>()?)
            }
            (Type::Struct(name), Value::Object(map)) => Value::Object(self.members(map, name)?),
            _ => {
                self.mismatch(kind_of(value), of);
                zero(of)
            }
        })
    }

    fn mismatch(&mut self, found: &str, wanted: &Type) {
        let within = self.within.rsplit('.').next().unwrap_or_default();
        let (path, wanted) = (self.path.join("."), wanted.name());
        self.mismatch.get_or_insert_with(|| {
            format!(
                "json: cannot unmarshal {found} into Go struct field {within}.{path} of type {wanted}"
            )
        });
    }
}

/// The encoding of the zero value of a type.
fn zero(of: &Type) -> Value {
    match of {
        Type::Text(_) => "".into(),
        Type::Bool => false.into(),
        Type::Int(_) => 0.into(),
        Type::Quantity => "0".into(),
        Type::Any | Type::Time | Type::Pointer(_) | Type::List(_) | Type::Map(_) => Value::Null,
        Type::Struct(name) => {
            let fields = STRUCTS.get(name).map(Vec::as_slice).unwrap_or_default();
            let kept = fields.iter().filter_map(|field| {
                let value = zero(&field.of);
                let kept = field.always || !is_empty(&value, &field.of);
                kept.then(|| (field.name.to_owned(), value))
            });
            Value::Object(kept.collect())
        }
    }
}

/// Whether a field with this value is left out. Structs never are.
fn is_empty(value: &Value, of: &Type) -> bool {
    match (of, value) {
        (Type::Pointer(_), value) => value.is_null(),
        (Type::Struct(_) | Type::Time | Type::Quantity, _) => false,
        (_, Value::Null) => true,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(flag)) => !flag,
        (_, Value::Number(number)) => number.as_i64() == Some(0),
        (_, Value::Array(items)) => items.is_empty(),
        (_, Value::Object(map)) => map.is_empty(),
    }
}
