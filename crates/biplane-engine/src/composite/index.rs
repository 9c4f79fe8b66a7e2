//! An index of Compositions and of their decoded revisions, fed by subscriptions, so that composite
//! resources do not list and decode them in every reconcile.
//!
//! It has to be told of a change before anybody reconciles because of it. So whoever maps changes of
//! revisions to composite resources also feeds the index, and first. Several may feed one index:
//! what it has heard before, and what is older, changes nothing.
//!
//! Of a Composition, it keeps what selects it. Of a revision, it keeps the decoded spec, which all
//! reconciles share, and what selects it; not the object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use biplane_cluster::Change;
use biplane_model::composition::number;
use biplane_model::owner::controller_of;
use biplane_model::pipeline::function_names;
use biplane_model::selection::composes;
use biplane_model::{Map, Object, Value, labels};

use super::revision::{Revision, Spec};
use crate::failure::Failure;

/// Compositions and their revisions.
///
/// Until both subscriptions are in sync, it knows nothing, and whoever asks has to ask the cluster.
#[derive(Debug, Default)]
pub struct CompositionIndex(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    compositions: BTreeMap<String, Composition>,
    revisions: BTreeMap<String, Entry>,
    /// The names of revisions by the name of the Composition on their label.
    by_composition: BTreeMap<String, BTreeSet<String>>,
    /// The names of revisions by the functions that they call.
    by_function: BTreeMap<String, BTreeSet<String>>,
    compositions_synced: bool,
    revisions_synced: bool,
}

/// What is kept of a Composition: identity, labels and the kind that it is for.
#[derive(Debug)]
struct Composition(Object);

/// What is kept of a revision.
#[derive(Debug)]
struct Entry {
    /// Identity, labels, owners, number and status.
    object: Object,
    generation: i64,
    controller: String,
    functions: Vec<String>,
    spec: Result<Arc<Spec>, String>,
}

impl Entry {
    fn revision(&self) -> Result<Revision, Failure> {
        let spec = self.spec.clone().map_err(Failure::new)?;
        Ok(Revision { object: self.object.clone(), spec })
    }
}

impl CompositionIndex {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a change from a subscription to all Compositions.
    pub fn composition_changed(&self, change: &Change) {
        let mut state = self.state();
        match change {
            Change::Changed { object, .. } => {
                let known = state.compositions.get(object.name());
                if known.is_none_or(|known| is_newer(object, &known.0)) {
                    let kept = Composition(kept(object, &["compositeTypeRef"]));
                    state.compositions.insert(object.name().to_owned(), kept);
                }
            }
            Change::Gone { last } => {
                let known = state.compositions.get(last.name());
                if known.is_some_and(|known| known.0.uid() == last.uid()) {
                    state.compositions.remove(last.name());
                }
            }
            Change::Synced => state.compositions_synced = true,
            Change::Missed => state.compositions_synced = false,
        }
    }

    /// Takes a change from a subscription to all CompositionRevisions.
    pub fn revision_changed(&self, change: &Change) {
        match change {
            Change::Changed { object, .. } => self.set_revision(object),
            Change::Gone { last } => {
                let mut state = self.state();
                let known = state.revisions.get(last.name());
                if known.is_some_and(|known| known.object.uid() == last.uid()) {
                    state.remove_revision(last.name());
                }
            }
            Change::Synced => self.state().revisions_synced = true,
            Change::Missed => self.state().revisions_synced = false,
        }
    }

    fn set_revision(&self, object: &Object) {
        let (name, generation) = (object.name(), object.generation());
        let known = {
            let state = self.state();
            let entry = state.revisions.get(name);
            if entry.is_some_and(|entry| !is_newer(object, &entry.object)) {
                return;
            }
            // The generation counts changes of the spec.
            let same = |entry: &&Entry| {
                entry.object.uid() == object.uid() && entry.generation == generation
            };
            let known = entry.filter(same).filter(|_| generation > 0);
            known.map(|entry| (entry.spec.clone(), entry.functions.clone()))
        };
        // Decoding takes long, so it happens without the lock.
        let (spec, functions) = known.unwrap_or_else(|| {
            let spec = Spec::of(object).map(Arc::new).map_err(|e| e.to_string());
            (spec, function_names(object))
        });
        let entry = Entry {
            object: kept(object, &["revision"]),
            generation,
            controller: controller_of(object).map(|owner| owner.uid).unwrap_or_default(),
            functions,
            spec,
        };
        let mut state = self.state();
        // Somebody else may have been faster.
        if state.revisions.get(name).is_none_or(|known| is_newer(&entry.object, &known.object)) {
            state.remove_revision(name);
            state.add_revision(entry);
        }
    }

    /// Whether both subscriptions have reported everything that exists.
    pub fn is_synced(&self) -> bool {
        let state = self.state();
        state.compositions_synced && state.revisions_synced
    }

    /// The names of the revisions that call a function, to check them again when the function has
    /// changed.
    pub fn calling(&self, function: &str) -> Vec<String> {
        let state = self.state();
        state.by_function.get(function).into_iter().flatten().cloned().collect()
    }

    /// The names of the Compositions with these labels for composite resources of this kind.
    /// `None` if the index is not in sync.
    pub(crate) fn compositions(
        &self,
        wanted: &BTreeMap<String, String>,
        xr: &Object,
    ) -> Option<Vec<String>> {
        let state = self.state();
        let matches = |composition: &&Composition| {
            let wanted = wanted.iter().map(|(key, value)| (&**key, &**value));
            composes(&composition.0, xr) && (wanted.len() == 0 || composition.0.has_labels(wanted))
        };
        let names = || state.compositions.values().filter(matches).map(|c| c.0.name().to_owned());
        (state.compositions_synced).then(|| names().collect())
    }

    /// The UID of a Composition, if it is known.
    pub(crate) fn composition_uid(&self, name: &str) -> Option<String> {
        let state = self.state();
        let known = state.compositions.get(name).filter(|_| state.compositions_synced)?;
        Some(known.0.uid().to_owned())
    }

    /// A revision by its name, if it is known.
    pub(crate) fn revision(&self, name: &str) -> Option<Result<Revision, Failure>> {
        let state = self.state();
        state.revisions.get(name).filter(|_| state.revisions_synced).map(Entry::revision)
    }

    /// The revision with the highest number that has these labels and belongs to the Composition
    /// with this UID. `None` if there is none or the index is not in sync.
    pub(crate) fn newest(
        &self,
        composition: &str,
        uid: &str,
        wanted: &BTreeMap<String, String>,
    ) -> Option<Result<Revision, Failure>> {
        let state = self.state();
        let names = state.by_composition.get(composition).filter(|_| state.revisions_synced)?;
        names
            .iter()
            .filter_map(|name| state.revisions.get(name))
            .filter(|entry| entry.controller == uid && number(&entry.object) > 0)
            .filter(|entry| {
                entry.object.has_labels(wanted.iter().map(|(key, value)| (&**key, &**value)))
            })
            .max_by_key(|entry| number(&entry.object))
            .map(Entry::revision)
    }
}

impl State {
    fn add_revision(&mut self, entry: Entry) {
        let name = entry.object.name().to_owned();
        let composition = entry.object.label(labels::COMPOSITION_NAME).to_owned();
        self.by_composition.entry(composition).or_default().insert(name.clone());
        for function in &entry.functions {
            self.by_function.entry(function.clone()).or_default().insert(name.clone());
        }
        self.revisions.insert(name, entry);
    }

    fn remove_revision(&mut self, name: &str) {
        let Some(entry) = self.revisions.remove(name) else { return };
        remove(&mut self.by_composition, entry.object.label(labels::COMPOSITION_NAME), name);
        for function in &entry.functions {
            remove(&mut self.by_function, function, name);
        }
    }
}

fn remove(index: &mut BTreeMap<String, BTreeSet<String>>, key: &str, name: &str) {
    if let Some(names) = index.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            index.remove(key);
        }
    }
}

/// Whether an object is another one or a later state of the same. Versions that are no numbers cannot
/// be compared.
fn is_newer(object: &Object, known: &Object) -> bool {
    let version = |object: &Object| object.resource_version().parse::<u64>().ok();
    match (version(object), version(known)) {
        (Some(new), Some(old)) if object.uid() == known.uid() => new > old,
        _ => true,
    }
}

/// An object without its annotations, its managers and all of its spec but these fields.
fn kept(object: &Object, fields: &[&str]) -> Object {
    let pick = |from: Option<&Value>, keys: &[&str]| -> Map<String, Value> {
        let all = from.and_then(Value::as_object);
        let is_kept = |(key, _): &(&String, &Value)| keys.contains(&key.as_str());
        let kept = all.into_iter().flatten().filter(is_kept);
        kept.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let mut small = Map::new();
    for key in ["apiVersion", "kind", "status"] {
        if let Some(value) = object.get(key) {
            small.insert(key.to_owned(), value.clone());
        }
    }
    let metadata = ["name", "uid", "resourceVersion", "labels", "ownerReferences"];
    small.insert("metadata".to_owned(), pick(object.get("metadata"), &metadata).into());
    small.insert("spec".to_owned(), pick(object.get("spec"), fields).into());
    small.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(generation: i64, number: i64) -> Object {
        let revision = json!({
            "metadata": {"name": "c-1", "uid": "u", "generation": generation,
                "annotations": {"big": "text"},
                "labels": {labels::COMPOSITION_NAME: "c"},
                "ownerReferences": [{"uid": "c-uid", "controller": true}]},
            "spec": {"revision": number, "pipeline": [{"step": "s", "functionRef": {"name": "f"}}]},
        });
        Object::from_value(revision).unwrap()
    }

    fn changed(object: Object) -> Change {
        Change::Changed { object, before: None }
    }

    #[test]
    fn a_spec_is_decoded_once_per_generation_and_shared() {
        let index = CompositionIndex::default();
        index.revision_changed(&changed(revision(1, 1)));
        assert!(index.revision("c-1").is_none(), "not in sync");
        index.revision_changed(&Change::Synced);
        let first = index.revision("c-1").unwrap().unwrap();
        let mut checked = revision(1, 1);
        checked.set_at_or_ignore(&["status", "checked"], true);
        index.revision_changed(&changed(checked));
        let second = index.revision("c-1").unwrap().unwrap();
        assert!(Arc::ptr_eq(&first.spec, &second.spec));
        assert_eq!(second.object.at(&["status", "checked"]), Some(&json!(true)));
        assert_eq!(second.object.at(&["metadata", "annotations"]), None);

        index.revision_changed(&changed(revision(2, 3)));
        let third = index.newest("c", "c-uid", &BTreeMap::new()).unwrap().unwrap();
        assert_eq!(number(&third.object), 3);
        assert!(!Arc::ptr_eq(&second.spec, &third.spec));
        assert!(index.newest("c", "other", &BTreeMap::new()).is_none());

        index.revision_changed(&Change::Missed);
        assert!(index.revision("c-1").is_none(), "something was missed");
    }

    #[test]
    fn an_older_state_changes_nothing() {
        let index = CompositionIndex::default();
        let at = |version: &str, number| {
            let mut revision = revision(number, number);
            revision.set_meta("resourceVersion", version);
            changed(revision)
        };
        index.revision_changed(&Change::Synced);
        for (version, number, want) in [("9", 2, 2), ("10", 3, 3), ("9", 2, 3), ("x", 4, 4)] {
            index.revision_changed(&at(version, number));
            let known = index.revision("c-1").unwrap().unwrap();
            assert_eq!(super::number(&known.object), want, "{version}");
        }
        // Another object of the same name is another object, whatever its version.
        let mut other = revision(1, 1);
        other.set_meta("uid", "v");
        other.set_meta("resourceVersion", "2");
        index.revision_changed(&changed(other.clone()));
        index.revision_changed(&Change::Gone { last: revision(4, 4) });
        assert_eq!(index.revision("c-1").unwrap().unwrap().object.uid(), "v");
        index.revision_changed(&Change::Gone { last: other });
        assert!(index.revision("c-1").is_none());
    }

    #[test]
    fn a_spec_that_cannot_be_decoded_is_an_error_when_it_is_used() {
        let index = CompositionIndex::default();
        let mut broken = revision(1, 1);
        broken.set_at_or_ignore(&["spec", "pipeline"], "text");
        index.revision_changed(&changed(broken));
        index.revision_changed(&Change::Synced);
        let error = index.revision("c-1").unwrap().unwrap_err().to_string();
        assert!(error.starts_with("cannot unmarshal JSON to object: "), "{error}");
    }
}
