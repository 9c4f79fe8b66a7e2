//! Converts the journal of a reconcile into the parts of a render response: objects, events and
//! requirements.

use biplane_cluster::memory::{Entry, Verb};
use biplane_model::{Object, ObjectId};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::Event;
use serde::Serialize;

use crate::requirements::RequirementsLog;

/// The writes and events of a reconcile, by meaning.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// The main object as last updated, or else as last applied.
    pub(super) main: Option<Struct>,
    /// All other applied objects, in order.
    pub(super) applied: Vec<Struct>,
    /// The deleted objects, in order.
    pub(super) deleted: Vec<Struct>,
    /// The recorded events, in order.
    pub(super) events: Vec<Event>,
}

/// Sorts the entries of a journal.
pub(super) fn outcome(journal: Vec<Entry>, main: &ObjectId) -> Outcome {
    let mut all = Outcome::default();
    let (mut updated, mut applied) = (None, None);
    for entry in journal {
        match entry {
            Entry::Event(event) => all.events.push(Event {
                r#type: event.r#type.as_str().into(),
                reason: event.reason,
                message: event.message,
            }),
            Entry::Write { verb, object } => {
                let is_main = object.has_id(main);
                match verb {
                    Verb::Update | Verb::UpdateStatus if is_main => updated = Some(object),
                    Verb::Apply | Verb::ApplyStatus if is_main => applied = Some(object),
                    Verb::Apply | Verb::ApplyStatus => all.applied.push(object.into()),
                    Verb::Delete => all.deleted.push(object.into()),
                    _ => {}
                }
            }
        }
    }
    all.main = updated.or(applied).map(Object::into);
    all
}

/// Converts selectors to JSON.
pub(super) fn selectors(log: &RequirementsLog) -> (Vec<Struct>, Vec<Struct>) {
    (log.resources.iter().map(json).collect(), log.schemas.iter().map(json).collect())
}

fn json(selector: &impl Serialize) -> Struct {
    let value = serde_json::to_value(selector).unwrap_or_default();
    Object::from_value(value).unwrap_or_default().into()
}
