//! Compares two values and returns the changes as sets of fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::FieldSet;
use super::typed::{TypeErrors, check_scalar, item_element, no_such_type};
use super::types::{ListType, MapType, Shape, TypeRef};
use crate::value;

/// The fields that differ between an old and a new value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that are only in the old value.
    pub removed: FieldSet,
    /// Fields that are in both, with different values.
    pub modified: FieldSet,
    /// Fields that are only in the new value.
    pub added: FieldSet,
}

impl Comparison {
    /// Removes the given fields and everything below them.
    #[must_use]
    pub fn without(&self, fields: &FieldSet) -> Self {
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

/// Compares an old and a new value of one type.
pub fn compare(type_ref: &TypeRef, old: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
    let mut walk = Walk { path: Vec::new(), out: Comparison::default() };
    walk.compare(Some(type_ref), Some(old), Some(new))?;
    Ok(walk.out)
}

struct Walk {
    path: Vec<PathElement>,
    out: Comparison,
}

impl Walk {
    fn compare(
        &mut self,
        type_ref: Option<&TypeRef>,
        lhs: Option<&Value>,
        rhs: Option<&Value>,
    ) -> Result<(), TypeErrors> {
        let atom = type_ref.ok_or_else(no_such_type)?.resolve();
        let (left, right) = (atom.fitting(lhs), atom.fitting(rhs));
        let was_leaf = match (lhs, rhs) {
            (_, None) => self.shaped(atom.shape(left), lhs, rhs)?,
            (None, Some(_)) => self.shaped(atom.shape(right), lhs, rhs)?,
            _ if left == right => self.shaped(atom.shape(right), lhs, rhs)?,
            _ => {
                self.shaped(atom.shape(left), lhs, rhs)?;
                self.shaped(atom.shape(right), lhs, rhs)?
            }
        };
        if !was_leaf {
            if lhs.is_none() {
                self.out.added.insert(&self.path);
            } else if rhs.is_none() {
                self.out.removed.insert(&self.path);
            }
        }
        Ok(())
    }

    fn leaf(&mut self, lhs: Option<&Value>, rhs: Option<&Value>) {
        match (lhs, rhs) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(l), Some(r)) if !value::equal(l, r) => self.out.modified.insert(&self.path),
            _ => {}
        }
    }

    /// Compares as one shape. Returns whether the value is atomic.
    fn shaped(
        &mut self,
        shape: Shape<'_>,
        lhs: Option<&Value>,
        rhs: Option<&Value>,
    ) -> Result<bool, TypeErrors> {
        match shape {
            Shape::Scalar(scalar) => {
                let left = check_scalar(scalar, lhs, "lhs: ");
                let right = check_scalar(scalar, rhs, "rhs: ");
                if let (Err(mut left), Err(right)) = (left, right) {
                    left.add(right);
                    return Err(left);
                }
            }
            Shape::Map(map) => {
                let (l, r) = (lhs.and_then(Value::as_object), rhs.and_then(Value::as_object));
                let hollow = l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty);
                if !map.atomic && !hollow {
                    return self.fields(map, l, r).map(|()| false);
                }
            }
            Shape::List(list) => {
                let (l, r) = (lhs.and_then(Value::as_array), rhs.and_then(Value::as_array));
                let hollow = l.is_none_or(Vec::is_empty) && r.is_none_or(Vec::is_empty);
                if list.associative && !hollow {
                    let (l, r) = (l.map_or(&[][..], |l| l), r.map_or(&[][..], |r| r));
                    return self.items(list, l, r).map(|()| false);
                }
            }
            Shape::Nothing => return Err(no_such_type()),
        }
        self.leaf(lhs, rhs);
        Ok(true)
    }

    fn fields(
        &mut self,
        map: &MapType,
        lhs: Option<&Map<String, Value>>,
        rhs: Option<&Map<String, Value>>,
    ) -> Result<(), TypeErrors> {
        let names: BTreeSet<&String> =
            lhs.into_iter().chain(rhs).flat_map(|side| side.keys()).collect();
        for name in names {
            let (l, r) = (lhs.and_then(|m| m.get(name)), rhs.and_then(|m| m.get(name)));
            self.below(PathElement::field(name), map.type_of(name), l, r)?;
        }
        Ok(())
    }

    fn below(
        &mut self,
        element: PathElement,
        type_ref: Option<&TypeRef>,
        lhs: Option<&Value>,
        rhs: Option<&Value>,
    ) -> Result<(), TypeErrors> {
        self.path.push(element);
        let result = self.compare(type_ref, lhs, rhs);
        match (self.path.pop(), result) {
            (Some(element), Err(errors)) => Err(errors.below(&element)),
            (_, result) => result,
        }
    }

    fn items(&mut self, list: &ListType, lhs: &[Value], rhs: &[Value]) -> Result<(), TypeErrors> {
        let left = grouped(list, lhs)?;
        let right = grouped(list, rhs)?;
        let elements: BTreeSet<&PathElement> = left.keys().chain(right.keys()).collect();
        for element in elements {
            let l = left.get(element).map_or(&[][..], |items| items);
            let r = right.get(element).map_or(&[][..], |items| items);
            let mut here = self.path.clone();
            here.push(element.clone());
            if l.len() <= 1 && r.len() <= 1 {
                let (l, r) = (l.first().copied(), r.first().copied());
                self.below(element.clone(), Some(&list.element), l, r)?;
            } else if l.len() >= 2 && r.len() >= 2 {
                // Items that occur several times on both sides are compared as one value.
                let same = l.len() == r.len() && l.iter().zip(r).all(|(l, r)| value::equal(l, r));
                if !same {
                    self.out.modified.insert(&here);
                }
            } else if l.len() >= 2 {
                if let Some(only) = r.first() {
                    self.below(element.clone(), Some(&list.element), None, Some(only))?;
                }
                self.out.removed.insert(&here);
            } else {
                if let Some(only) = l.first() {
                    self.below(element.clone(), Some(&list.element), Some(only), None)?;
                }
                self.out.added.insert(&here);
            }
        }
        Ok(())
    }
}

fn grouped<'a>(
    list: &ListType,
    items: &'a [Value],
) -> Result<BTreeMap<PathElement, Vec<&'a Value>>, TypeErrors> {
    let mut errors = TypeErrors::default();
    let mut out: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        match item_element(list, item) {
            Ok(element) => out.entry(element).or_default().push(item),
            Err(problem) => errors.add(TypeErrors::one(format!("element {i}: {problem}"))),
        }
    }
    errors.into_result()?;
    Ok(out)
}
