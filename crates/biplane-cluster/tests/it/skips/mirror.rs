//! An API server and a memory cluster that get the same writes. The memory cluster must come to the
//! same answers.

use std::cell::{Cell, RefCell};

use biplane_model::{Object, Value};

use super::{found, timeless};
use crate::sequences::memory::Memory;
use crate::sequences::server::Server;
use crate::sequences::{Answer, Step, World};

/// The metadata that is never the same in two clusters.
const DIFFERENT: [&str; 4] = ["creationTimestamp", "deletionTimestamp", "resourceVersion", "uid"];

/// Answers as the server does, and keeps the answers of the memory cluster that differ.
pub(super) struct Mirror<'a> {
    server: &'a Server,
    memory: Memory,
    /// Leaves out widgets. The memory cluster does not check the resources that are embedded in odd
    /// ones.
    pub without_widgets: Cell<bool>,
    pub different: RefCell<Vec<String>>,
}

impl<'a> Mirror<'a> {
    pub(super) fn new(server: &'a Server, definitions: &[Object]) -> Self {
        let memory = Memory::new(definitions);
        Self { server, memory, without_widgets: Cell::new(false), different: RefCell::default() }
    }

    /// The same object for the memory cluster, which has other UIDs, versions and times.
    fn reflected(&self, object: &Object) -> Object {
        let mut object = object.clone();
        if object.uid().is_empty() && object.resource_version().is_empty() {
            return object;
        }
        let (live, image) = (found(self.server, &object), found(&self.memory, &object));
        if let (Some(live), Some(image)) = (live, image) {
            for field in DIFFERENT {
                let path = ["metadata", field];
                let given = object.at(&path).filter(|given| live.at(&path) == Some(*given));
                if let (Some(_), Some(value)) = (given, image.at(&path)) {
                    object.set_at_or_ignore(&path, value.clone());
                }
            }
        }
        object
    }
}

/// The part of an answer that does not depend on the time and the UIDs.
fn essence(answer: &Answer) -> Value {
    match answer {
        Answer::Gone => Value::Null,
        Answer::Refused { reason, .. } => (*reason).into(),
        Answer::Object(object) => {
            let mut object = timeless(object, true);
            let metadata = object["metadata"].as_object_mut().unwrap();
            for field in DIFFERENT {
                metadata.remove(field);
            }
            plain(&mut object);
            object
        }
    }
}

/// Numbers by their values: the server writes `1.0` as `1`.
fn plain(value: &mut Value) {
    match value {
        Value::Number(number) => *value = number.as_f64().into(),
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(fields) => fields.values_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Object(object) => object.to_value().to_string(),
        Answer::Gone | Answer::Refused { .. } => format!("{answer:?}"),
    }
}

impl World for Mirror<'_> {
    fn get(&self, object: &Object) -> Answer {
        self.server.get(object)
    }

    fn run(&self, step: &Step<'_>) -> Answer {
        if self.without_widgets.get() && step.object.kind() == "Widget" {
            return self.server.run(step);
        }
        let before = self.memory.get(&step.object);
        let image = self.memory.run(&Step { object: self.reflected(&step.object), ..*step });
        let answer = self.server.run(step);
        if essence(&answer) != essence(&image) {
            let Step { verb, manager, force, object, patch } = step;
            self.different.borrow_mut().push(format!(
                "{verb} by {manager}, force={force}: {} {patch}\nbefore {}\nserver {}\nmemory {}",
                object.to_value(),
                shown(&before),
                shown(&answer),
                shown(&image),
            ));
        }
        answer
    }
}
