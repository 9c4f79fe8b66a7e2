//! Updates ownership when the schema has changed since it was recorded.

use super::path::PathElement;
use super::set::FieldSet;
use super::types::{MapType, Shape, TypeRef};

/// Converts the set to the current schema.
///
/// A manager that owned parts of a value that is now atomic owns all of it.
pub fn reconcile(type_ref: &TypeRef, set: &FieldSet) -> FieldSet {
    let mut atomic = FieldSet::default();
    find(type_ref, Some(set), false, &mut Vec::new(), &mut atomic);
    if atomic.is_empty() { set.clone() } else { set.recursive_difference(&atomic).union(&atomic) }
}

fn find(
    type_ref: &TypeRef,
    set: Option<&FieldSet>,
    owned_whole: bool,
    path: &mut Vec<PathElement>,
    atomic: &mut FieldSet,
) {
    let atom = type_ref.resolve();
    match atom.shape(atom.fitting(None)) {
        Shape::Map(map) if map.is_deduced() => {}
        Shape::Map(map) if map.atomic && !owned_whole => {
            if set.is_some_and(|set| !set.is_empty()) {
                atomic.insert(path);
            }
        }
        Shape::List(list) if !list.associative && !owned_whole => atomic.insert(path),
        Shape::Map(map) => descend(set, path, atomic, |element| field_type(map, element)),
        Shape::List(list) => descend(set, path, atomic, |_| Some(&list.element)),
        Shape::Scalar(_) | Shape::Nothing => {}
    }
}

fn field_type<'a>(map: &'a MapType, element: &PathElement) -> Option<&'a TypeRef> {
    match element {
        PathElement::Field(name) => map.type_of(name),
        _ => map.element.as_ref(),
    }
}

fn descend<'a>(
    set: Option<&FieldSet>,
    path: &mut Vec<PathElement>,
    atomic: &mut FieldSet,
    type_of: impl Fn(&PathElement) -> Option<&'a TypeRef>,
) {
    let Some(set) = set else { return };
    let only_below = set.children().map(|(element, _)| element).filter(|e| !set.has_member(e));
    for element in only_below.chain(set.members()) {
        // Fields that are not in the schema stay unchanged.
        let Some(type_ref) = type_of(element) else { continue };
        let below = set.child(element);
        let owned_whole = set.has_member(element) && below.is_none();
        path.push(element.clone());
        find(type_ref, below, owned_whole, path, atomic);
        path.pop();
    }
}
