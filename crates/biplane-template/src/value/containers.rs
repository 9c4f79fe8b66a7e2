//! Lists and maps with their element types.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};

use super::{Text, Value};
use crate::types::Type;

/// A Go slice. A clone is the same slice.
#[derive(Clone, Debug)]
pub struct List(Rc<ListData>);

#[derive(Debug)]
struct ListData {
    element: &'static Type,
    nil: bool,
    items: RefCell<Vec<Value>>,
}

impl List {
    /// A list of elements of a type.
    pub fn new(element: &'static Type, items: Vec<Value>) -> Self {
        Self(Rc::new(ListData { element, nil: false, items: RefCell::new(items) }))
    }

    /// A nil slice.
    pub fn nil(element: &'static Type) -> Self {
        Self(Rc::new(ListData { element, nil: true, items: RefCell::default() }))
    }

    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The type of the elements.
    pub fn element(&self) -> &'static Type {
        self.0.element
    }

    pub fn len(&self) -> usize {
        self.0.items.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get(&self, index: usize) -> Option<Value> {
        self.0.items.borrow().get(index).cloned()
    }

    /// The elements. Give the guard back before anything may sort the list.
    pub fn items(&self) -> Ref<'_, Vec<Value>> {
        self.0.items.borrow()
    }

    /// A copy of the elements.
    pub fn to_vec(&self) -> Vec<Value> {
        self.0.items.borrow().clone()
    }

    /// Changes the list in place, as `sortAlpha` does. Does nothing while a guard is out.
    pub fn update(&self, change: impl FnOnce(&mut Vec<Value>)) {
        if let Ok(mut items) = self.0.items.try_borrow_mut() {
            change(&mut items);
        }
    }

    /// Whether both are the same slice.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Drop for ListData {
    fn drop(&mut self) {
        dismantle(std::mem::take(self.items.get_mut()));
    }
}

/// A Go map. A clone is the same map. Keys are strings in all maps but
/// `map[interface {}]interface {}`.
#[derive(Clone, Debug)]
pub struct Map(Rc<MapData>);

#[derive(Debug)]
struct MapData {
    key: &'static Type,
    element: &'static Type,
    nil: bool,
    entries: Entries,
    /// Entries whose keys are not strings, in Go's order of printing. Only
    /// `map[interface {}]interface {}` has them.
    others: RefCell<Vec<(Value, Value)>>,
    /// Whether a list or map was put into it after it was made: it may contain itself.
    changed: Cell<bool>,
}

/// Entries with string keys. They may be made when they are first asked for, because templates look
/// at little of what they get.
#[derive(Default)]
struct Entries {
    made: OnceCell<RefCell<BTreeMap<Text, Value>>>,
    make: Cell<Option<Make>>,
}

type Make = Box<dyn FnOnce() -> BTreeMap<Text, Value>>;

impl Entries {
    fn all(&self) -> &RefCell<BTreeMap<Text, Value>> {
        self.made.get_or_init(|| {
            RefCell::new(self.make.take().map_or_else(BTreeMap::new, |make| make()))
        })
    }

    /// Takes out what was made.
    fn take(&mut self) -> BTreeMap<Text, Value> {
        self.made.get_mut().map(|made| std::mem::take(made.get_mut())).unwrap_or_default()
    }
}

impl From<BTreeMap<Text, Value>> for Entries {
    fn from(entries: BTreeMap<Text, Value>) -> Self {
        Self { made: RefCell::new(entries).into(), make: Cell::default() }
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entries").field(&self.made.get()).finish()
    }
}

impl Map {
    /// A `map[string]interface {}` whose entries are made when they are first asked for.
    pub fn lazy(make: impl FnOnce() -> BTreeMap<Text, Value> + 'static) -> Self {
        let entries = Entries { make: Cell::new(Some(Box::new(make))), ..Entries::default() };
        Self::build(&Type::String, &Type::Any, false, entries, Vec::new())
    }

    /// A `map[string]interface {}`.
    pub fn dict(entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        Self::typed(&Type::Any, entries)
    }

    /// A map from strings to elements of a type.
    pub fn typed(element: &'static Type, entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        let entries: BTreeMap<_, _> = entries.into_iter().collect();
        Self::build(&Type::String, element, false, entries.into(), Vec::new())
    }

    /// A `map[interface {}]interface {}`: entries with string keys and others.
    pub fn any(strings: BTreeMap<Text, Value>, mut others: Vec<(Value, Value)>) -> Self {
        others.sort_by(|(a, _), (b, _)| super::order::compare(a, b));
        Self::build(&Type::Any, &Type::Any, false, strings.into(), others)
    }

    /// A nil map.
    pub fn nil(key: &'static Type, element: &'static Type) -> Self {
        Self::build(key, element, true, Entries::default(), Vec::new())
    }

    /// A nil `map[string]interface {}`.
    pub fn nil_dict() -> Self {
        Self::nil(&Type::String, &Type::Any)
    }

    fn build(
        key: &'static Type,
        element: &'static Type,
        nil: bool,
        entries: Entries,
        others: Vec<(Value, Value)>,
    ) -> Self {
        let others = RefCell::new(others);
        let changed = Cell::new(false);
        Self(Rc::new(MapData { key, element, nil, entries, others, changed }))
    }

    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// The type of the keys: `string` or `interface {}`.
    pub fn key(&self) -> &'static Type {
        self.0.key
    }

    /// The type of the elements.
    pub fn element(&self) -> &'static Type {
        self.0.element
    }

    pub fn len(&self) -> usize {
        self.0.entries.all().borrow().len() + self.0.others.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element of a string key.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.0.entries.all().borrow().get(key).cloned()
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.0.entries.all().borrow().contains_key(key)
    }

    /// Sets the element of a string key. Returns false for a nil map: Go panics with
    /// `assignment to entry in nil map`.
    pub fn insert(&self, key: impl Into<Text>, value: Value) -> bool {
        if self.0.nil {
            return false;
        }
        if is_container(&value) && !self.0.changed.replace(true) {
            CHANGED.with_borrow_mut(|changed| changed.push(Rc::downgrade(&self.0)));
        }
        let Ok(mut entries) = self.0.entries.all().try_borrow_mut() else { return false };
        let old = entries.insert(key.into(), value);
        // The old value may own much. It is dropped when the map is free again.
        drop(entries);
        drop(old);
        true
    }

    /// An empty map of the same type.
    #[must_use]
    pub fn like(&self) -> Self {
        Self::build(self.key(), self.element(), false, Entries::default(), Vec::new())
    }

    /// The element of any key.
    pub fn get_any(&self, key: &Value) -> Option<Value> {
        if let Value::Str(text) = key {
            return self.get(text);
        }
        let others = self.0.others.borrow();
        let found = others.iter().find(|(other, _)| super::order::compare(other, key).is_eq());
        found.map(|(_, value)| value.clone())
    }

    /// Sets the element of any key. Returns false for a nil map.
    pub fn insert_any(&self, key: Value, value: Value) -> bool {
        if let Value::Str(text) = key {
            return self.insert(text, value);
        }
        let Ok(mut others) = self.0.others.try_borrow_mut() else { return false };
        if self.0.nil {
            return false;
        }
        match others.binary_search_by(|(other, _)| super::order::compare(other, &key)) {
            Ok(at) => {
                if let Some((_, slot)) = others.get_mut(at) {
                    *slot = value;
                }
            }
            Err(at) => others.insert(at, (key, value)),
        }
        true
    }

    pub fn remove(&self, key: &[u8]) -> Option<Value> {
        self.0.entries.all().try_borrow_mut().ok()?.remove(key)
    }

    /// The entries with string keys, in the order of keys. Give the guard back before anything may
    /// change the map.
    pub fn entries(&self) -> Ref<'_, BTreeMap<Text, Value>> {
        self.0.entries.all().borrow()
    }

    /// The entries with other keys.
    pub fn others(&self) -> Ref<'_, Vec<(Value, Value)>> {
        self.0.others.borrow()
    }

    /// A copy of all entries in Go's order of printing: other keys first, nil, numbers and booleans
    /// before strings.
    pub fn pairs(&self) -> Vec<(Value, Value)> {
        let mut pairs: Vec<(Value, Value)> = self.0.others.borrow().clone();
        let strings = self.0.entries.all().borrow();
        pairs.extend(strings.iter().map(|(key, value)| (Value::Str(key.clone()), value.clone())));
        pairs
    }

    /// Whether both are the same map.
    pub fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

/// A `map[string]interface {}`.
impl From<BTreeMap<Text, Value>> for Map {
    fn from(entries: BTreeMap<Text, Value>) -> Self {
        Self::build(&Type::String, &Type::Any, false, entries.into(), Vec::new())
    }
}

impl Drop for MapData {
    fn drop(&mut self) {
        let entries = self.entries.take();
        let others = std::mem::take(self.others.get_mut());
        if others.is_empty() && !entries.values().any(is_container) {
            return;
        }
        let mut values: Vec<Value> = entries.into_values().collect();
        values.extend(others.into_iter().flat_map(|(key, value)| [key, value]));
        dismantle(values);
    }
}

thread_local! {
    /// The maps into which the current run put lists and maps.
    static CHANGED: RefCell<Vec<Weak<MapData>>> = const { RefCell::new(Vec::new()) };
}

/// Begins to note which maps are changed.
pub(crate) fn watch_changes() {
    CHANGED.take();
}

/// Empties the maps that contain themselves, which would keep themselves alive forever.
pub(crate) fn break_cycles() {
    for map in CHANGED.take() {
        if let Some(map) = map.upgrade() {
            map.changed.set(false);
            break_cycles_below(Map(map));
        }
    }
}

/// The address of a list or map, and what is in it.
fn open(value: &Value) -> Option<(usize, Vec<Value>)> {
    match value {
        Value::List(list) => Some((Rc::as_ptr(&list.0).addr(), list.to_vec())),
        Value::Map(map) => {
            // What was not looked at contains nothing that was changed.
            let looked_at = map.0.entries.made.get().is_some() || !map.0.others.borrow().is_empty();
            let pairs = looked_at.then(|| map.pairs()).into_iter().flatten();
            Some((Rc::as_ptr(&map.0).addr(), pairs.map(|(_, value)| value).collect()))
        }
        _ => None,
    }
}

fn break_cycles_below(map: Map) {
    // Whether all below an address has been seen.
    let mut seen: BTreeMap<usize, bool> = BTreeMap::new();
    let mut path: Vec<(Value, usize, Vec<Value>)> = Vec::new();
    let mut next = Some(Value::Map(map));
    loop {
        if let Some(value) = next.take()
            && let Some((address, inside)) = open(&value)
        {
            match seen.get(&address) {
                Some(true) => {}
                None => {
                    seen.insert(address, false);
                    path.push((value, address, inside));
                }
                Some(false) => {
                    // The nearest map above is part of the circle.
                    let above = path.iter_mut().rev().find_map(|(value, _, inside)| match value {
                        Value::Map(map) => Some((map, inside)),
                        _ => None,
                    });
                    if let Some((map, inside)) = above {
                        inside.clear();
                        map.0.entries.all().take();
                        map.0.others.take();
                    }
                }
            }
        }
        let Some((_, address, inside)) = path.last_mut() else { return };
        next = inside.pop();
        if next.is_none() {
            seen.insert(*address, true);
            path.pop();
        }
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

/// Drops values without recursion: a template can nest lists as deep as its budget lets it.
fn dismantle(mut values: Vec<Value>) {
    if !values.iter().any(is_container) {
        return;
    }
    while let Some(value) = values.pop() {
        match value {
            Value::List(List(mut data)) => {
                if let Some(data) = Rc::get_mut(&mut data) {
                    values.append(data.items.get_mut());
                }
            }
            Value::Map(Map(mut data)) => {
                if let Some(data) = Rc::get_mut(&mut data) {
                    values.extend(data.entries.take().into_values());
                    let others = std::mem::take(data.others.get_mut());
                    values.extend(others.into_iter().flat_map(|(key, value)| [key, value]));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_made_once_when_they_are_first_asked_for() {
        let made = Rc::new(Cell::new(0));
        let count = Rc::clone(&made);
        let map = Map::lazy(move || {
            count.set(count.get() + 1);
            BTreeMap::from([(Text::from("a"), Value::int(1))])
        });
        let same = map.clone();
        assert_eq!(made.get(), 0);
        assert!(same.contains(b"a") && same.insert("b", Value::int(2)));
        assert_eq!((map.len(), made.get()), (2, 1));
    }

    #[test]
    fn a_map_that_contains_itself_is_freed_and_nothing_is_made_for_that() {
        watch_changes();
        let map = Map::dict([]);
        assert!(map.insert("other", Value::Map(Map::lazy(|| unreachable!()))));
        assert!(map.insert("self", Value::Map(map.clone())));
        let alive = Rc::downgrade(&map.0);
        drop(map);
        assert!(alive.upgrade().is_some());
        break_cycles();
        assert!(alive.upgrade().is_none());
    }
}
