//! Observed resources, of which each should be there once.

use std::collections::BTreeMap;

use biplane_model::yaml::Place;
use biplane_model::{Object, ObjectId};

use super::super::print::RESOURCE_NAME;
use super::source::{Source, name};

/// The observed resources that were read so far.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Each with the file and the document that it is from.
    by_id: BTreeMap<ObjectId, (Object, String)>,
    by_resource: BTreeMap<String, ObjectId>,
    /// What is odd but can be worked with.
    pub warnings: Vec<String>,
}

impl Observed {
    /// Notes an object. Of two versions of one, the later counts, which may not be what was meant.
    pub(super) fn add(&mut self, object: &Object, source: &Source<'_>) {
        let id = object.id();
        let file = format!("{}, document {}", name(source.file), source.document + 1);
        // One that has yet to be named is no other's twin.
        if !id.name.is_empty()
            && let Some((other, earlier)) =
                self.by_id.insert(id.clone(), (object.clone(), file.clone()))
            && other != *object
        {
            let place = Place::find(source.text, source.document, &["metadata", "name"]);
            let line = place.map(|place| format!(", line {}", place.line)).unwrap_or_default();
            self.warnings.push(format!(
                "observed resource {id} is there twice, in {earlier} and in {file}{line}; the last one counts"
            ));
        }
        let resource = object.annotation(RESOURCE_NAME);
        if resource.is_empty() {
            return;
        }
        if let Some(other) = self.by_resource.insert(resource.to_owned(), id.clone())
            && other != id
        {
            self.warnings.push(format!(
                "observed resources {other} and {id} are both {resource:?} of the Composition; the last one counts"
            ));
        }
    }
}
