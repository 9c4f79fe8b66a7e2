//! Sets of fields, as `metadata.managedFields` stores them, and operations on them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::{Path, PathElement, PathElementError};
use super::types::{Atom, TypeRef};

/// A set of paths, stored as a tree.
///
/// A path may be a member without its children, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    members: BTreeSet<PathElement>,
    children: BTreeMap<PathElement, FieldSet>,
}

/// The reason why a document is not a field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldSetError {
    /// Every level of a field set is an object.
    #[error("cannot read field set: expected an object")]
    NotAnObject,
    /// A key is not a path element.
    #[error("cannot read field set: parsing key as path element: {0}")]
    Element(#[from] PathElementError),
}

impl FieldSet {
    /// Creates a set from paths.
    pub fn of(paths: impl IntoIterator<Item = Path>) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    /// Adds a path. The empty path, which is the whole object, cannot be owned.
    pub fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Whether there is no member at any depth.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    /// The number of paths in the set.
    pub fn len(&self) -> usize {
        self.members.len() + self.children.values().map(Self::len).sum::<usize>()
    }

    /// Whether a path is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|set| set.has(rest)),
        }
    }

    /// Whether an element is a member at this level.
    pub fn has_member(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// The set below an element, if there is one.
    pub fn child(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element)
    }

    /// The members of this level.
    pub fn members(&self) -> impl Iterator<Item = &PathElement> {
        self.members.iter()
    }

    /// The elements that have a set below them.
    pub fn children(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.children.iter()
    }

    /// Whether every path is also in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.members.is_subset(&other.members)
            && self.children.iter().all(|(element, set)| match other.children.get(element) {
                Some(other) => set.is_subset(other),
                None => set.is_empty(),
            })
    }

    /// All paths that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.extend(other);
        out
    }

    /// Adds all paths of the other set.
    pub fn extend(&mut self, other: &Self) {
        self.members.extend(other.members.iter().cloned());
        for (element, set) in &other.children {
            self.children.entry(element.clone()).or_default().extend(set);
        }
    }

    /// All paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, set)| {
                let both = set.intersection(other.children.get(element)?);
                (!both.is_empty()).then(|| (element.clone(), both))
            })
            .collect();
        Self { members, children }
    }

    /// All paths that are not in the other set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, set)| {
                let left = match other.children.get(element) {
                    Some(gone) => Some(set.difference(gone)).filter(|left| !left.is_empty()),
                    None => Some(set.clone()),
                };
                Some((element.clone(), left?))
            })
            .collect();
        Self { members, children }
    }

    /// All paths that are neither in the other set nor below one of its paths.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter(|(element, _)| !other.members.contains(element))
            .filter_map(|(element, set)| {
                let left = match other.children.get(element) {
                    Some(gone) => {
                        Some(set.recursive_difference(gone)).filter(|left| !left.is_empty())
                    }
                    None => Some(set.clone()),
                };
                Some((element.clone(), left?))
            })
            .collect();
        Self { members, children }
    }

    /// The same set, plus every declared field that has something below it.
    #[must_use]
    pub fn with_named_fields(&self, type_ref: Option<&TypeRef>) -> Self {
        let atom = type_ref.map(TypeRef::resolve);
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (element, set) in &self.children {
            let child = child_type(atom, element);
            if let (PathElement::Field(name), Some(map)) = (element, atom.and_then(Atom::map))
                && map.fields.contains_key(name)
            {
                members.insert(element.clone());
            }
            children.insert(element.clone(), set.with_named_fields(child));
        }
        Self { members, children }
    }

    /// All paths in the set, parents before their children.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for member in &self.members {
            prefix.push(member.clone());
            out.push(Path(prefix.clone()));
            prefix.pop();
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    /// The `fieldsV1` document.
    pub fn to_json(&self) -> Value {
        Value::Object(self.to_map(false))
    }

    fn to_map(&self, with_self: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if with_self && !(self.members.is_empty() && self.children.is_empty()) {
            out.insert(".".into(), Value::Object(Map::new()));
        }
        for member in &self.members {
            out.insert(member.to_key(), Value::Object(Map::new()));
        }
        for (element, set) in &self.children {
            let map = set.to_map(self.members.contains(element));
            out.insert(element.to_key(), Value::Object(map));
        }
        out
    }

    /// Parses a `fieldsV1` document. Elements of an unknown type are left out.
    pub fn from_json(document: &Value) -> Result<Self, FieldSetError> {
        let Value::Object(map) = document else { return Err(FieldSetError::NotAnObject) };
        Ok(Self::read(map)?.0.unwrap_or_default())
    }

    /// The set below, if any, and whether the element itself is a member.
    fn read(map: &Map<String, Value>) -> Result<(Option<Self>, bool), FieldSetError> {
        let mut below: Option<Self> = None;
        let mut is_member = false;
        for (key, value) in map {
            if key == "." {
                is_member = true;
                continue;
            }
            let element = match PathElement::parse(key) {
                Err(PathElementError::UnknownType) => continue,
                other => other?,
            };
            let Value::Object(inner) = value else { return Err(FieldSetError::NotAnObject) };
            let (grandchildren, child_is_member) = Self::read(inner)?;
            let set = below.get_or_insert_default();
            if child_is_member {
                set.members.insert(element.clone());
            }
            if let Some(grandchildren) = grandchildren {
                set.children.insert(element, grandchildren);
            }
        }
        is_member |= below.is_none();
        Ok((below, is_member))
    }
}

/// The type below an element, as far as the schema defines it.
fn child_type<'a>(atom: Option<&'a Atom>, element: &PathElement) -> Option<&'a TypeRef> {
    match element {
        PathElement::Field(name) => atom?.map()?.type_of(name),
        PathElement::Key(_) => Some(&atom?.list()?.element),
        PathElement::Value(_) | PathElement::Index(_) => None,
    }
}
