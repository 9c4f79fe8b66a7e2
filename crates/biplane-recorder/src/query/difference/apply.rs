//! Makes the second document of a difference from the first.

use serde_json::Value;

use super::super::path::{Segment, item_has_key};
use super::{Change, What};

/// A change with what is left of its path.
type Left<'a> = (&'a [Segment], &'a What);

/// The first document with the changes made.
pub fn apply(before: Value, changes: &[Change]) -> Value {
    let left: Vec<Left<'_>> =
        changes.iter().map(|change| (change.path.0.as_slice(), &change.what)).collect();
    changed(before, &left)
}

fn changed(value: Value, changes: &[Left<'_>]) -> Value {
    for (path, what) in changes {
        if let ([], What::Changed { after, .. }) = (path, what) {
            return (*after).clone();
        }
    }
    match value {
        Value::Object(mut object) => {
            for (name, below) in by_first(changes) {
                let Segment::Field(name) = name else { continue };
                match below.as_slice() {
                    [([], What::Added { value, .. })] => {
                        object.insert(name.clone(), value.clone());
                    }
                    [([], What::Removed { .. })] => {
                        object.remove(name);
                    }
                    _ => {
                        if let Some(value) = object.get_mut(name) {
                            *value = changed(value.take(), &below);
                        }
                    }
                }
            }
            Value::Object(object)
        }
        Value::Array(list) => Value::Array(changed_list(list, changes)),
        other => other,
    }
}

fn changed_list(list: Vec<Value>, changes: &[Left<'_>]) -> Vec<Value> {
    let mut items: Vec<Option<Value>> = list.into_iter().map(Some).collect();
    let is_inside =
        |(path, what): &Left<'_>| !path.is_empty() || matches!(what, What::Changed { .. });
    for (segment, below) in by_first(changes) {
        let inside: Vec<Left<'_>> = below.into_iter().filter(is_inside).collect();
        if inside.is_empty() {
            continue;
        }
        let item = match segment {
            Segment::Index(index) => items.get_mut(*index),
            Segment::Item(key) => {
                items.iter_mut().find(|item| item.as_ref().is_some_and(|i| item_has_key(i, key)))
            }
            Segment::Field(_) => None,
        };
        if let Some(item) = item {
            *item = item.take().map(|item| changed(item, &inside));
        }
    }
    let mut arriving: Vec<(usize, Value)> = Vec::new();
    for (path, what) in changes {
        let ([_], what) = (path, what) else { continue };
        match what {
            What::Removed { from: Some(from), .. } => {
                if let Some(item) = items.get_mut(*from) {
                    *item = None;
                }
            }
            What::Moved { from, to } => {
                arriving.extend(items.get_mut(*from).and_then(Option::take).map(|i| (*to, i)));
            }
            What::Added { value, to: Some(to) } => arriving.push((*to, value.clone())),
            _ => {}
        }
    }
    let mut items: Vec<Value> = items.into_iter().flatten().collect();
    arriving.sort_by_key(|(to, _)| *to);
    for (to, item) in arriving {
        items.insert(to.min(items.len()), item);
    }
    items
}

/// The changes by the first segment of their paths, in their order.
fn by_first<'a>(changes: &[Left<'a>]) -> Vec<(&'a Segment, Vec<Left<'a>>)> {
    let mut groups: Vec<(&Segment, Vec<Left<'_>>)> = Vec::new();
    for (path, what) in changes {
        let Some((first, rest)) = path.split_first() else { continue };
        match groups.last_mut() {
            Some((segment, group)) if *segment == first => group.push((rest, what)),
            _ => groups.push((first, vec![(rest, what)])),
        }
    }
    groups
}
