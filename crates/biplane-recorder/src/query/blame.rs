//! Which step of a run set each field of what is desired, and which created or removed a resource.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::difference::{self, What};
use super::path::{Path, Segment};
use super::record::{Run, Side, Step};
use super::state;

/// Who set something: a step by its position in [`Run::last_calls`], or nobody of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stamp {
    /// It was there before the first step.
    Given,
    /// Something between two steps: the one after it.
    Between(usize),
    /// A step.
    Step(usize),
}

/// The history of a slot within a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotBlame {
    /// The name of the composed resource; empty for the composite resource.
    pub slot: String,
    /// Who created it in what is desired.
    pub created: Option<Stamp>,
    /// Who removed it from what is desired, if it is gone in the end.
    pub removed: Option<Stamp>,
    /// The body in the end, or the last one before it was removed.
    pub body: Value,
    /// Who last set each plain value of the body, in the order of the document.
    pub fields: Vec<(Path, Value, Stamp)>,
}

/// The blame of every slot that any step desired.
pub fn blame(run: &Run) -> Vec<SlotBlame> {
    of(run, &|_| true)
}

/// The blame of those slots that are wanted.
pub fn of(run: &Run, is_wanted: &dyn Fn(&str) -> bool) -> Vec<SlotBlame> {
    let mut slots: BTreeMap<String, Stamped> = BTreeMap::new();
    let mut before_any = true;
    for (at, step) in run.last_calls().into_iter().enumerate() {
        if let Some(request) = &step.request {
            let stamp = if before_any { Stamp::Given } else { Stamp::Between(at) };
            see(&mut slots, request.get("desired"), stamp, is_wanted);
        }
        before_any = false;
        if answers(step) {
            see(&mut slots, step.desired(Side::After), Stamp::Step(at), is_wanted);
        }
    }
    let slots = slots.into_iter().map(|(slot, stamped)| stamped.blame(slot));
    slots.collect()
}

fn answers(step: &Step) -> bool {
    step.response.is_some()
}

/// A slot as it was last seen, with a stamp for each plain value.
#[derive(Default)]
struct Stamped {
    created: Option<Stamp>,
    removed: Option<Stamp>,
    body: Value,
    stamps: BTreeMap<Path, Stamp>,
}

/// Takes a new state in. What differs from the last one gets the stamp.
fn see(
    slots: &mut BTreeMap<String, Stamped>,
    state: Option<&Value>,
    stamp: Stamp,
    is_wanted: &dyn Fn(&str) -> bool,
) {
    for (name, slot) in slots.iter_mut() {
        if slot.removed.is_none() && state::slot(state, name).is_none() {
            slot.removed = Some(stamp);
        }
    }
    for (name, value) in state::slots(state).into_iter().filter(|(name, _)| is_wanted(name)) {
        let body = state::body(value);
        match slots.get_mut(name) {
            Some(slot) if slot.removed.is_none() => slot.update(body, stamp),
            _ => {
                let mut slot = Stamped { created: Some(stamp), ..Stamped::default() };
                slot.update(body, stamp);
                slots.insert(name.to_owned(), slot);
            }
        }
    }
}

impl Stamped {
    fn update(&mut self, body: &Value, stamp: Stamp) {
        if self.body == *body && !self.stamps.is_empty() {
            return;
        }
        let changed = difference::difference(&self.body, body);
        // A value keeps its stamp unless it, or something around it, was set anew.
        let set: BTreeSet<&[Segment]> = changed
            .changes
            .iter()
            .filter(|change| !matches!(change.what, What::Removed { .. } | What::Moved { .. }))
            .map(|change| change.path.0.as_slice())
            .collect();
        let before = Before::of(&self.body, &self.stamps);
        let mut stamps = BTreeMap::new();
        for (path, value) in leaves(body) {
            let mut around = (0..=path.0.len()).filter_map(|end| path.0.get(..end));
            let was_set = !set.is_empty() && around.any(|part| set.contains(part));
            let kept = if was_set { None } else { before.stamp(&path, value) };
            stamps.insert(path, kept.unwrap_or(stamp));
        }
        self.stamps = stamps;
        self.body = body.clone();
    }

    fn blame(self, slot: String) -> SlotBlame {
        let Self { created, removed, body, stamps } = self;
        let fields = leaves(&body)
            .into_iter()
            .map(|(path, value)| {
                let stamp = stamps.get(&path).copied().unwrap_or(Stamp::Given);
                (path, value.clone(), stamp)
            })
            .collect();
        SlotBlame { slot, created, removed, body, fields }
    }
}

/// The plain values of a body with their stamps.
struct Before<'a> {
    by_path: BTreeMap<Path, (&'a Value, Stamp)>,
    /// The first of the equal plain items of each list, by the list and the text of the value.
    items: BTreeMap<(Vec<Segment>, String), Stamp>,
}

impl<'a> Before<'a> {
    fn of(body: &'a Value, stamps: &BTreeMap<Path, Stamp>) -> Self {
        let (mut by_path, mut items) = (BTreeMap::new(), BTreeMap::new());
        for (path, value) in leaves(body) {
            let Some(stamp) = stamps.get(&path).copied() else { continue };
            if let Some((Segment::Index(_), list)) = path.0.split_last() {
                items.entry((list.to_vec(), value.to_string())).or_insert(stamp);
            }
            by_path.insert(path, (value, stamp));
        }
        Self { by_path, items }
    }

    /// The stamp that a value had. Plain items of a list may have had another position.
    fn stamp(&self, path: &Path, value: &Value) -> Option<Stamp> {
        if let Some((_, stamp)) = self.by_path.get(path).filter(|(before, _)| *before == value) {
            return Some(*stamp);
        }
        let (Segment::Index(_), list) = path.0.split_last()? else { return None };
        self.items.get(&(list.to_vec(), value.to_string())).copied()
    }
}

/// The plain values of a document with their paths. Items of lists are named as differences name
/// them. Empty lists and objects count as values.
pub fn leaves(document: &Value) -> Vec<(Path, &Value)> {
    let mut found = Vec::new();
    each_leaf(document, &mut |path, value| found.push((path.clone(), value)));
    found
}

/// Calls `visit` with each plain value of a document and its path.
pub fn each_leaf<'a>(document: &'a Value, visit: &mut dyn FnMut(&Path, &'a Value)) {
    walk(document, &mut Path(Vec::new()), visit);
}

fn walk<'a>(value: &'a Value, path: &mut Path, visit: &mut dyn FnMut(&Path, &'a Value)) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                path.0.push(Segment::Field(name.clone()));
                walk(value, path, visit);
                path.0.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let keys = difference::keys_of(items);
            for (index, item) in items.iter().enumerate() {
                let key = keys.as_ref().and_then(|keys| keys.get(index));
                path.0.push(match key {
                    Some(key) => Segment::Item(key.clone()),
                    None => Segment::Index(index),
                });
                walk(item, path, visit);
                path.0.pop();
            }
        }
        value => visit(path, value),
    }
}

#[cfg(test)]
mod tests;
