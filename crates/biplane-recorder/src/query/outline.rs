//! Reads the bodies that a question needs into outlines of runs.
//!
//! An outline has keys in the place of bodies. Equal keys mean equal bodies, so most of what two
//! states have in common is never read.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::archive::{Archive, Error};
use super::compare::aligned;
use super::record::{Run, Step};
use super::state;

/// How many bodies are kept for when they are needed again.
const KEPT: usize = 256;
/// Larger bodies are not read where a summary is enough.
const LARGE: usize = 128 * 1024;

/// Bodies of an archive. Those that were read are kept for a while.
pub struct Bodies<'a> {
    archive: &'a dyn Archive,
    read: RefCell<BTreeMap<i64, Value>>,
}

impl std::fmt::Debug for Bodies<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bodies").finish_non_exhaustive()
    }
}

/// The key that stands for a body.
fn key(body: &Value) -> Option<i64> {
    body.as_i64()
}

fn slot_key(slot: Option<&Value>) -> Option<i64> {
    slot.and_then(|slot| slot.get("resource")).and_then(key)
}

/// A slot of a state, to be changed.
fn slot_mut<'a>(state: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    if name == state::COMPOSITE && state.get("composite").is_some() {
        return state.get_mut("composite");
    }
    state.get_mut("resources")?.as_object_mut()?.get_mut(name)
}

/// The states of a call: what was observed and desired before, and what was desired afterwards.
fn states(step: &mut Step) -> impl Iterator<Item = &mut Value> {
    let given = step.request.as_mut().and_then(Value::as_object_mut).into_iter().flatten();
    let answered = step.response.as_mut().and_then(Value::as_object_mut).into_iter().flatten();
    let is_state = |name: &str| matches!(name, "observed" | "desired");
    given.chain(answered).filter(move |(name, _)| is_state(name)).map(|(_, state)| state)
}

fn names(state: &Value) -> Vec<String> {
    state::slots(Some(state)).into_iter().map(|(name, _)| name.to_owned()).collect()
}

impl<'a> Bodies<'a> {
    /// The bodies of an archive.
    pub fn new(archive: &'a dyn Archive) -> Self {
        Self { archive, read: RefCell::default() }
    }

    /// The document that a body of an outline is, or stands for.
    pub fn document(&self, body: Value) -> Result<Value, Error> {
        let Some(key) = key(&body) else { return Ok(body) };
        if let Some(read) = self.read.borrow().get(&key) {
            return Ok(read.clone());
        }
        let read = self.archive.body(key)?;
        let mut kept = self.read.borrow_mut();
        if kept.len() < KEPT {
            kept.insert(key, read.clone());
        }
        Ok(read)
    }

    /// Reads one resource of a state.
    pub fn slot(&self, state: Option<&mut Value>, name: &str) -> Result<(), Error> {
        let slot = state.and_then(|state| slot_mut(state, name));
        if let Some(body) = slot.and_then(|slot| slot.get_mut("resource"))
            && key(body).is_some()
        {
            *body = self.document(body.take())?;
        }
        Ok(())
    }

    /// Reads all resources of the states of a call.
    pub fn step(&self, step: &mut Step) -> Result<(), Error> {
        for state in states(step) {
            for name in names(state) {
                self.slot(Some(state), &name)?;
            }
        }
        Ok(())
    }

    /// Reads the resources of a message's states in the order in which it is printed, until so many
    /// bytes of them are read.
    pub fn message(&self, message: &mut Value, most: usize) -> Result<(), Error> {
        let Value::Object(parts) = message else { return Ok(()) };
        let mut left = most;
        for part in ["desired", "observed"] {
            let Some(state) = parts.get_mut(part) else { continue };
            for name in names(state) {
                if left == 0 {
                    return Ok(());
                }
                self.slot(Some(state), &name)?;
                if most < usize::MAX {
                    let body = state::slot(Some(state), &name).map(state::body);
                    left = left.saturating_sub(body.map_or(0, |body| body.to_string().len()));
                }
            }
        }
        Ok(())
    }

    /// Reads one resource of all states of a run.
    pub fn everywhere(&self, run: &mut Run, name: &str) -> Result<(), Error> {
        for state in run.steps.iter_mut().flat_map(states) {
            self.slot(Some(state), name)?;
        }
        Ok(())
    }

    /// Reads what differs between two states, and names it. If there is a limit, only so many
    /// resources are read, and no large ones.
    pub fn differing(
        &self,
        before: Option<&mut Value>,
        after: Option<&mut Value>,
        most: usize,
    ) -> Result<Vec<String>, Error> {
        let pairs = state::pairs(before.as_deref(), after.as_deref()).into_iter();
        let differ = pairs.filter(|(_, (before, after))| before != after);
        let mut names = Vec::new();
        for (name, (before, after)) in differ.take(most) {
            let keys = [slot_key(before), slot_key(after)];
            let mut is_large = false;
            for key in keys.into_iter().flatten().filter(|_| most < usize::MAX) {
                is_large |= self.archive.body_bytes(key)? > LARGE;
            }
            if !is_large {
                names.push(name.to_owned());
            }
        }
        self.both(before, after, &names)?;
        Ok(names)
    }

    /// Reads what both states have in common: what is redacted, if anything is, and the first
    /// resources by name.
    pub fn common(
        &self,
        before: Option<&mut Value>,
        after: Option<&mut Value>,
        first: usize,
        is_redacted: bool,
    ) -> Result<(), Error> {
        let mut names = Vec::new();
        let pairs = state::pairs(before.as_deref(), after.as_deref());
        let same = pairs.into_iter().filter_map(|(name, (before, after))| {
            let key = slot_key(before)?;
            (slot_key(after) == Some(key)).then_some((name, key))
        });
        for (at, (name, key)) in same.enumerate() {
            if at < first || (is_redacted && self.archive.is_body_redacted(key)?) {
                names.push(name.to_owned());
            }
        }
        self.both(before, after, &names)
    }

    fn both(
        &self,
        mut before: Option<&mut Value>,
        mut after: Option<&mut Value>,
        names: &[String],
    ) -> Result<(), Error> {
        for name in names {
            self.slot(before.as_deref_mut(), name)?;
            self.slot(after.as_deref_mut(), name)?;
        }
        Ok(())
    }

    /// Reads what differs between the last calls of two runs, step by step.
    pub fn runs(&self, before: &mut Run, after: &mut Run) -> Result<(), Error> {
        let pairs: Vec<_> = aligned(&before.last_calls(), &after.last_calls())
            .into_iter()
            .filter_map(|(was, is)| Some((place(was?), place(is?))))
            .collect();
        for (was, is) in pairs {
            let find = |run: &'_ mut Run, at| run.steps.iter().position(|step| place(step) == at);
            let (Some(was), Some(is)) = (find(before, was), find(after, is)) else { continue };
            if let (Some(was), Some(is)) = (before.steps.get_mut(was), after.steps.get_mut(is)) {
                self.calls(was, is)?;
            }
        }
        Ok(())
    }

    /// Reads what differs between two calls.
    fn calls(&self, was: &mut Step, is: &mut Step) -> Result<(), Error> {
        let part = |message: &'_ mut Option<Value>, name: &str| -> Option<Value> {
            message.as_mut()?.as_object_mut()?.remove(name)
        };
        let put = |message: &mut Option<Value>, name: &str, state: Option<Value>| {
            if let (Some(Value::Object(fields)), Some(state)) = (message.as_mut(), state) {
                fields.insert(name.to_owned(), state);
            }
        };
        for name in ["observed", "desired"] {
            let mut states = (part(&mut was.request, name), part(&mut is.request, name));
            let read = self.differing(states.0.as_mut(), states.1.as_mut(), usize::MAX);
            put(&mut was.request, name, states.0);
            put(&mut is.request, name, states.1);
            read?;
        }
        let name = "desired";
        let mut states = (part(&mut was.response, name), part(&mut is.response, name));
        let read = self.differing(states.0.as_mut(), states.1.as_mut(), usize::MAX);
        put(&mut was.response, name, states.0);
        put(&mut is.response, name, states.1);
        read.map(drop)
    }

    /// Reads one resource of each request that has redacted values, so that it shows.
    pub fn redacted(&self, run: &mut Run) -> Result<(), Error> {
        let mut known: BTreeMap<i64, bool> = BTreeMap::new();
        for step in &mut run.steps {
            let Some(Value::Object(request)) = step.request.as_mut() else { continue };
            for part in ["observed", "desired"] {
                let Some(state) = request.get_mut(part) else { continue };
                let mut found = None;
                for (name, slot) in state::slots(Some(state)) {
                    let Some(key) = slot_key(Some(slot)) else { continue };
                    let is_redacted = match known.get(&key) {
                        Some(known) => *known,
                        None => self.archive.is_body_redacted(key)?,
                    };
                    known.insert(key, is_redacted);
                    if is_redacted {
                        found = Some(name.to_owned());
                        break;
                    }
                }
                if let Some(name) = found {
                    self.slot(Some(state), &name)?;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Where a call is in its run.
fn place(step: &Step) -> (i32, i32) {
    (step.index, step.iteration)
}
