//! Removes fields from a value.

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use super::typed::item_element;
use super::types::{Shape, TypeRef};

/// The value without the given fields. A value that becomes empty becomes null.
pub fn remove(type_ref: &TypeRef, value: &Value, fields: &FieldSet) -> Value {
    without(Some(type_ref), value, fields)
}

fn without(type_ref: Option<&TypeRef>, value: &Value, gone: &FieldSet) -> Value {
    let Some(type_ref) = type_ref else { return Value::Null };
    let atom = type_ref.resolve();
    match (atom.shape(atom.fitting(Some(value))), value) {
        (Shape::Scalar(_), _) => value.clone(),
        (Shape::List(list), Value::Array(items)) if list.associative => {
            let mut left = Vec::with_capacity(items.len());
            for item in items {
                let Ok(element) = item_element(list, item) else {
                    left.push(item.clone());
                    continue;
                };
                if gone.has_member(&element) {
                    continue;
                }
                left.push(match below(gone, &element) {
                    Some(inner) => without(Some(&list.element), item, inner),
                    None => item.clone(),
                });
            }
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (Shape::Map(map), Value::Object(fields)) if !map.atomic => {
            let mut left = Map::new();
            for (name, field) in fields {
                let element = PathElement::field(name);
                if gone.has_member(&element) {
                    continue;
                }
                let field = match below(gone, &element) {
                    Some(inner) => without(map.type_of(name), field, inner),
                    None => field.clone(),
                };
                left.insert(name.clone(), field);
            }
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        _ => Value::Null,
    }
}

fn below<'a>(set: &'a FieldSet, element: &PathElement) -> Option<&'a FieldSet> {
    set.child(element).filter(|inner| !inner.is_empty())
}
