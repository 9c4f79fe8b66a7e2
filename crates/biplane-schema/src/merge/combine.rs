//! Merges an applied configuration into the live object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::path::PathElement;
use super::typed::{TypeErrors, check_scalar, item_element, no_such_type};
use super::types::{ListType, MapType, Shape, TypeRef};

/// Merges the applied value over the live one.
///
/// Parts that are owned separately are merged separately. Everything else is replaced by the
/// applied value, if there is one.
pub fn combine(type_ref: &TypeRef, live: &Value, applied: &Value) -> Result<Value, TypeErrors> {
    Ok(merge(Some(type_ref), Some(live), Some(applied))?.unwrap_or(Value::Null))
}

type Merged = Result<Option<Value>, TypeErrors>;

fn merge(type_ref: Option<&TypeRef>, lhs: Option<&Value>, rhs: Option<&Value>) -> Merged {
    let atom = type_ref.ok_or_else(no_such_type)?.resolve();
    let (left, right) = (atom.fitting(lhs), atom.fitting(rhs));
    match (lhs, rhs) {
        (_, None) => shaped(atom.shape(left), lhs, rhs),
        (None, Some(_)) => shaped(atom.shape(right), lhs, rhs),
        _ if left == right => shaped(atom.shape(right), lhs, rhs),
        _ => {
            // The value changes its shape. Both must be valid, and the new one is used.
            let before = shaped(atom.shape(left), lhs, rhs);
            let after = shaped(atom.shape(right), lhs, rhs);
            before.and(after)
        }
    }
}

fn leaf(lhs: Option<&Value>, rhs: Option<&Value>) -> Option<Value> {
    rhs.or(lhs).cloned()
}

fn shaped(shape: Shape<'_>, lhs: Option<&Value>, rhs: Option<&Value>) -> Merged {
    match shape {
        Shape::Scalar(scalar) => {
            let left = check_scalar(scalar, lhs, "lhs: ");
            let right = check_scalar(scalar, rhs, "rhs: ");
            if let (Err(mut left), Err(right)) = (left, right) {
                left.add(right);
                return Err(left);
            }
            Ok(leaf(lhs, rhs))
        }
        Shape::Map(map) => {
            let (l, r) = (lhs.and_then(Value::as_object), rhs.and_then(Value::as_object));
            let hollow = l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty);
            // If both sides are empty, keep the difference between empty and null.
            if map.atomic || hollow {
                return Ok(leaf(lhs, rhs));
            }
            merge_fields(map, l, r)
        }
        Shape::List(list) => {
            let (l, r) = (lhs.and_then(Value::as_array), rhs.and_then(Value::as_array));
            let hollow = l.is_none_or(Vec::is_empty) && r.is_none_or(Vec::is_empty);
            if !list.associative || hollow {
                return Ok(leaf(lhs, rhs));
            }
            merge_items(list, l.map_or(&[], Vec::as_slice), r.map_or(&[], Vec::as_slice))
        }
        Shape::Nothing => Err(no_such_type()),
    }
}

fn merge_fields(
    map: &MapType,
    lhs: Option<&Map<String, Value>>,
    rhs: Option<&Map<String, Value>>,
) -> Merged {
    let names: BTreeSet<&String> =
        lhs.into_iter().chain(rhs).flat_map(|side| side.keys()).collect();
    let mut errors = TypeErrors::default();
    let mut out = Map::new();
    for name in names {
        let (l, r) = (lhs.and_then(|m| m.get(name)), rhs.and_then(|m| m.get(name)));
        match merge(map.type_of(name), l, r) {
            Ok(Some(value)) => {
                out.insert(name.clone(), value);
            }
            Ok(None) => {}
            Err(inner) => errors.add(inner.below(&PathElement::field(name))),
        }
    }
    errors.into_result()?;
    Ok((!out.is_empty()).then_some(Value::Object(out)))
}

/// Items by their key, and their order. An item that is given twice has no value to merge with.
struct Indexed<'a> {
    order: Vec<(PathElement, &'a Value)>,
    by_key: BTreeMap<PathElement, &'a Value>,
}

static NULL: Value = Value::Null;

fn index<'a>(
    list: &ListType,
    items: &'a [Value],
    duplicates: bool,
) -> Result<Indexed<'a>, TypeErrors> {
    let mut errors = TypeErrors::default();
    let mut out = Indexed { order: Vec::with_capacity(items.len()), by_key: BTreeMap::new() };
    for (i, item) in items.iter().enumerate() {
        let element = match item_element(list, item) {
            Ok(element) => element,
            Err(problem) => {
                errors.add(TypeErrors::one(format!("element {i}: {problem}")));
                continue;
            }
        };
        let repeated = out.by_key.contains_key(&element);
        if repeated && !duplicates {
            errors.add(TypeErrors::one(format!("duplicate entries for key {element}")));
            continue;
        }
        out.by_key.insert(element.clone(), if repeated { &NULL } else { item });
        out.order.push((element, item));
    }
    errors.into_result()?;
    Ok(out)
}

/// Merges two lists. The order of each side is kept as far as possible. For items on both sides,
/// the applied order wins.
fn merge_items(list: &ListType, lhs: &[Value], rhs: &[Value]) -> Merged {
    let right = index(list, rhs, false)?;
    let left = index(list, lhs, true)?;
    let mut shared: VecDeque<&PathElement> = right
        .order
        .iter()
        .map(|(element, _)| element)
        .filter(|element| left.by_key.contains_key(*element))
        .collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut out = Vec::with_capacity(lhs.len().max(rhs.len()));
    let mut put = |element: &PathElement, l: Option<&Value>, r: Option<&Value>| {
        let merged = merge(Some(&list.element), l, r).map_err(|e| e.below(element))?;
        out.extend(merged);
        Ok::<(), TypeErrors>(())
    };
    let (mut li, mut ri) = (0, 0);
    while li < left.order.len() || ri < right.order.len() {
        if let (Some((l, _)), Some((r, _))) = (left.order.get(li), right.order.get(ri)) {
            if l == r {
                done.insert(l);
                put(l, left.by_key.get(l).copied(), right.by_key.get(l).copied())?;
                li += 1;
                ri += 1;
                next_shared = shared.pop_front();
                continue;
            }
            if right.by_key.contains_key(l) && next_shared.is_some_and(|next| next != l) {
                // Both sides have the item, but in the applied order another one comes first.
                li += 1;
                continue;
            }
        }
        if let Some((l, item)) = left.order.get(li) {
            if !right.by_key.contains_key(l) {
                put(l, Some(item), None)?;
                li += 1;
                continue;
            } else if done.contains(l) {
                li += 1;
            }
        }
        if let Some((r, _)) = right.order.get(ri) {
            done.insert(r);
            put(r, left.by_key.get(r).copied(), right.by_key.get(r).copied())?;
            ri += 1;
            if next_shared == Some(r) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok((!out.is_empty()).then_some(Value::Array(out)))
}
