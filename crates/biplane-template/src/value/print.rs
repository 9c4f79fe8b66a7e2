//! Prints values as Go's `fmt` does.

use biplane_go::fmt::{self, Arg, Item};

use super::{Object, Value};
use crate::budget::Exceeded;
use crate::types::{Kind, Type};

/// How deep values may nest when they are printed or copied. Go has no limit, and dies of values
/// that contain themselves.
pub const MAX_NESTING: usize = 500;

/// How many values are printed at most where no budget is at hand, which is in messages.
const MAX_ITEMS: usize = 100_000;

/// A value as `%v` prints it, or a remark that it is too large.
pub fn display_in_message(value: &Value) -> Vec<u8> {
    let mut left = MAX_ITEMS;
    match item(value, &mut left, 0) {
        Ok(item) => fmt::display(Arg::Item(&item)),
        Err(exceeded) => exceeded.to_string().into_bytes(),
    }
}

/// `fmt.Sprintf`.
pub fn sprintf(format: &[u8], args: &[Value]) -> Vec<u8> {
    let mut left = MAX_ITEMS;
    match items(args, &mut left) {
        Ok(items) => fmt::sprintf_within(format, &refer(&items), MAX_ITEMS * 10)
            .unwrap_or_else(|| Exceeded::Values.to_string().into_bytes()),
        Err(exceeded) => exceeded.to_string().into_bytes(),
    }
}

/// `fmt.Sprint`.
pub fn sprint(args: &[Value]) -> Vec<u8> {
    let mut left = MAX_ITEMS;
    match items(args, &mut left) {
        Ok(items) => fmt::sprint(&refer(&items)),
        Err(exceeded) => exceeded.to_string().into_bytes(),
    }
}

pub(crate) fn refer(items: &[Item]) -> Vec<Arg<'_>> {
    items.iter().map(Arg::Item).collect()
}

pub(crate) fn items(values: &[Value], left: &mut usize) -> Result<Vec<Item>, Exceeded> {
    values.iter().map(|value| item(value, left, 0)).collect()
}

/// A value in the form that `fmt` takes. `left` is how many values it may consist of.
pub(crate) fn item(value: &Value, left: &mut usize, depth: usize) -> Result<Item, Exceeded> {
    *left = left.checked_sub(1).ok_or(Exceeded::Values)?;
    if depth > MAX_NESTING {
        return Err(Exceeded::Nesting(MAX_NESTING));
    }
    Ok(match value {
        Value::Nil => Item::Nil,
        Value::Bool(flag) => Item::Bool(*flag),
        Value::Int(kind, number) => Item::Int(*number, kind.name()),
        Value::Uint(kind, number) => Item::Uint(*number, kind.name()),
        Value::Float(number) => Item::Float(*number),
        Value::Complex(real, imaginary) => Item::Complex(*real, *imaginary),
        Value::Str(text) => Item::Text(text.shared(), "string"),
        Value::List(list) => {
            if let Some(bytes) = value.as_byte_slice() {
                return Ok(Item::Bytes { nil: list.is_nil(), bytes });
            }
            let elements = list.items();
            let elements: Result<_, _> =
                elements.iter().map(|element| item(element, left, depth + 1)).collect();
            Item::List { name: value.type_name(), nil: list.is_nil(), items: elements? }
        }
        Value::Map(map) => {
            let mut pairs = Vec::with_capacity(map.len());
            for (key, element) in map.others().iter() {
                pairs.push((item(key, left, depth + 1)?, item(element, left, depth + 1)?));
            }
            for (key, element) in map.entries().iter() {
                let key = Item::Text(key.shared(), "string");
                pairs.push((key, item(element, left, depth + 1)?));
            }
            Item::Map { name: value.type_name(), nil: map.is_nil(), pairs }
        }
        Value::Object(object) => object_item(object.as_ref(), left, depth)?,
    })
}

fn object_item(object: &dyn Object, left: &mut usize, depth: usize) -> Result<Item, Exceeded> {
    let Type::Named(named) = object.go_type() else { return Ok(Item::Nil) };
    let inner = match object.underlying() {
        Some(Value::Int(_, number)) => Item::Int(number, named.name),
        Some(Value::Uint(_, number)) => Item::Uint(number, named.name),
        Some(Value::Str(text)) => Item::Text(text.shared(), named.name),
        Some(other) => item(&other, left, depth + 1)?,
        None => {
            let fields = object.fields().into_iter();
            let fields: Result<_, _> =
                fields.map(|(name, field)| Ok((name, item(&field, left, depth + 1)?))).collect();
            let pointer = named.kind == Kind::Ptr;
            Item::Struct { name: named.name, pointer, fields: fields? }
        }
    };
    Ok(match object.string() {
        Some(text) => Item::Stringer { text, inner: Box::new(inner) },
        None => inner,
    })
}
