//! Observed resources, of which each may be there once.

use std::collections::BTreeMap;

use anyhow::Result;
use biplane_model::{Object, ObjectId};

use super::source::{Source, name};

/// The observed resources that were read so far.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Each with the file and the document that it is from.
    by_id: BTreeMap<ObjectId, (Object, String)>,
}

impl Observed {
    /// Notes an object. Which of two versions of one is meant, nobody can tell.
    pub(super) fn add(&mut self, object: &Object, source: &Source<'_>) -> Result<()> {
        let id = object.id();
        let file = format!("{}, document {}", name(source.file), source.document + 1);
        // One that has yet to be named is no other's twin.
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
