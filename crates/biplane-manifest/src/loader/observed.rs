//! Collects observed resources and rejects duplicates.

use std::collections::BTreeMap;

use anyhow::Result;
use biplane_model::{Object, ObjectId};

use super::source::{Source, name};

/// The observed resources that have been read so far.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Each with its file and document.
    by_id: BTreeMap<ObjectId, (Object, String)>,
}

impl Observed {
    /// Adds an object. Two different versions of the same object are ambiguous.
    pub(super) fn add(&mut self, object: &Object, source: &Source<'_>) -> Result<()> {
        let id = object.id();
        let file = format!("{}, document {}", name(source.file), source.document + 1);
        // Objects without a name yet are never duplicates.
        if !id.name.is_empty()
            && let Some((other, earlier)) = self.by_id.insert(id.clone(), (object.clone(), file))
            && other != *object
        {
            let problem = format!(
                "observed resource {id} is there twice, with other content in {earlier}: keep one of them"
            );
            return Err(source.complain(&["metadata", "name"], problem));
        }
        Ok(())
    }
}
