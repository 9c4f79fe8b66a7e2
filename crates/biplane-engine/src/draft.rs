//! An object with changes that are not written yet, and the patches that write them.
//!
//! A patch holds what differs from the object as it was read, and fails if the object has changed
//! since. Nothing is sent if nothing differs.

use biplane_cluster::{Cluster, Part, Patch, Precondition, Write, WriteError};
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::{Map, Object, Value};
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

/// The field manager of plain writes.
pub(crate) const MANAGER: &str = "crossplane";

/// An object with changes that are not written yet.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The object, with changes that are not written yet.
    pub(crate) object: Object,
    /// The object as it was last read or written.
    pub(crate) stored: Object,
}

impl Draft {
    /// Wraps an object as it was read.
    pub(crate) fn new(object: Object) -> Self {
        Self { stored: object.clone(), object }
    }

    /// Sets conditions of the current generation.
    pub(crate) fn mark(&mut self, now: Timestamp, new: impl IntoIterator<Item = Condition>) {
        let generation = self.object.generation();
        let new: Vec<_> = new.into_iter().map(|c| c.at(now).observed(generation)).collect();
        set_conditions(&mut self.object, new);
    }

    /// Writes everything but the status. The pending status stays, because the answer has only the
    /// stored one.
    pub(crate) async fn write(
        &mut self,
        cluster: &dyn Cluster,
        by: Instant,
    ) -> Result<(), WriteError> {
        let Some(changes) = difference_but_status(&self.stored, &self.object) else {
            return Ok(());
        };
        let written = self.patch(cluster, Part::Main, changes, by).await?;
        let pending = self.object.get("status").cloned();
        self.object = written.clone();
        self.stored = written;
        if let Some(status) = pending {
            self.object.make_mut().insert("status".into(), status);
        }
        Ok(())
    }

    /// Writes the status.
    pub(crate) async fn write_status(
        &mut self,
        cluster: &dyn Cluster,
        by: Instant,
    ) -> Result<(), WriteError> {
        let Some(changes) = difference(self.stored.get("status"), self.object.get("status")) else {
            return Ok(());
        };
        self.stored = self.patch(cluster, Part::Status, json!({"status": changes}), by).await?;
        Ok(())
    }

    async fn patch(
        &self,
        cluster: &dyn Cluster,
        part: Part,
        changes: Value,
        by: Instant,
    ) -> Result<Object, WriteError> {
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(&self.stored));
        cluster.patch(&self.stored.id(), part, &Patch::Merge(changes), &how, by).await
    }
}

/// The merge patch between two objects, their status aside. `None` if they are equal.
pub(crate) fn difference_but_status(from: &Object, to: &Object) -> Option<Value> {
    if from.same(to) {
        return None;
    }
    let mut changes = Map::new();
    for key in from.keys().chain(to.keys()).filter(|key| *key != "status") {
        if let Some(change) = difference(from.get(key), to.get(key)) {
            changes.insert(key.clone(), change);
        }
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}

/// The merge patch between two values. `None` if they are equal.
pub(crate) fn difference(from: Option<&Value>, to: Option<&Value>) -> Option<Value> {
    match (from, to) {
        (None, None) => None,
        (Some(from), Some(to)) if from == to => None,
        (Some(_), None) => Some(Value::Null),
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let mut changes = Map::new();
            for key in from.keys().chain(to.keys()) {
                if let Some(change) = difference(from.get(key), to.get(key)) {
                    changes.insert(key.clone(), change);
                }
            }
            Some(Value::Object(changes))
        }
        (_, Some(to)) => Some(to.clone()),
    }
}

/// The part of `wanted` that an object does not have yet. `None` if it has everything.
pub(crate) fn missing(from: &Map<String, Value>, wanted: &Map<String, Value>) -> Option<Value> {
    let mut changes = Map::new();
    for (key, wanted) in wanted {
        let change = match (from.get(key), wanted) {
            (Some(Value::Object(from)), Value::Object(wanted)) => missing(from, wanted),
            (Some(there), wanted) if there == wanted => None,
            _ => Some(wanted.clone()),
        };
        if let Some(change) = change {
            changes.insert(key.clone(), change);
        }
    }
    (!changes.is_empty()).then_some(Value::Object(changes))
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Object) -> Vec<Value> {
    let all = object.at(&["metadata", "finalizers"]).and_then(Value::as_array);
    all.cloned().unwrap_or_default()
}

/// Adds a finalizer if it is missing. Returns whether it was.
pub(crate) fn add_finalizer(object: &mut Object, finalizer: &str) -> bool {
    let mut all = finalizers(object);
    if all.iter().any(|present| present == finalizer) {
        return false;
    }
    all.push(finalizer.into());
    object.set_at_or_ignore(&["metadata", "finalizers"], all);
    true
}

/// Removes a finalizer. Returns whether it was there.
pub(crate) fn remove_finalizer(object: &mut Object, finalizer: &str) -> bool {
    let mut all = finalizers(object);
    let before = all.len();
    all.retain(|present| present != finalizer);
    if all.len() == before {
        return false;
    }
    if all.is_empty() {
        object.remove_at(&["metadata", "finalizers"]);
    } else {
        object.set_at_or_ignore(&["metadata", "finalizers"], all);
    }
    true
}
