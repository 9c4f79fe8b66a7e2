//! Decodes objects and lists from JSON strings. Every number is a double.

use biplane_function::Budget;
use biplane_go::json::decode;
use biplane_model::Value;

use crate::value::Val;

/// Decodes an object. Null becomes a nil object.
pub(super) fn object(text: &[u8], budget: &Budget) -> Result<Val, String> {
    make(text, budget)?;
    match decode(text)? {
        (Value::Null, error) => error.map_or(Ok(Val::NilObject), Err),
        (Value::Object(map), error) => error.map_or(Ok(Val::Object(map)), Err),
        (other, _) => Err(mismatch(&other, "map[string]interface {}")),
    }
}

/// Decodes a list. Null becomes a nil list.
pub(super) fn array(text: &[u8], budget: &Budget) -> Result<Val, String> {
    make(text, budget)?;
    match decode(text)? {
        (Value::Null, error) => error.map_or(Ok(Val::NilArray), Err),
        (Value::Array(items), error) => error.map_or(Ok(Val::Array(items)), Err),
        (other, _) => Err(mismatch(&other, "[]interface {}")),
    }
}

/// Makes room for the value of a JSON string: a few bytes of text can be hundreds in memory.
fn make(text: &[u8], budget: &Budget) -> Result<(), String> {
    const OBJECT: usize = 640;
    let size = |byte: &u8| match byte {
        b'{' => OBJECT,
        b'[' | b',' | b':' => size_of::<Value>(),
        _ => 1,
    };
    budget.make(text.iter().map(size).sum()).map_err(|exceeded| exceeded.to_string())
}

fn mismatch(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        _ => "object",
    };
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}
