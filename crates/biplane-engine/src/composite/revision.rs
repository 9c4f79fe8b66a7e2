//! Revisions of Compositions with their decoded specs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_model::Object;
use biplane_model::pipeline::{CompositionSpec, composition_spec};

use crate::failure::Failure;

/// A CompositionRevision and its decoded spec.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The object.
    pub object: Object,
    /// Its spec.
    pub spec: Arc<CompositionSpec>,
}

impl TryFrom<Object> for Revision {
    type Error = Failure;

    fn try_from(object: Object) -> Result<Self, Failure> {
        let spec = composition_spec(&object).map_err(|e| Failure::new(e.to_string()))?;
        Ok(Self { object, spec: Arc::new(spec) })
    }
}

/// The decoded specs of revisions, so that each is decoded once and not in every reconcile.
#[derive(Debug, Default)]
pub(super) struct Specs(Mutex<BTreeMap<String, (String, Arc<CompositionSpec>)>>);

/// More revisions than one kind of composite resource uses at a time.
const MOST_SPECS: usize = 64;

impl Specs {
    /// Returns the revision with its spec, which is decoded if the object has changed.
    pub(super) fn revision(&self, object: Object) -> Result<Revision, Failure> {
        let (uid, version) = (object.uid().to_owned(), object.resource_version().to_owned());
        let known = |specs: &BTreeMap<String, (String, Arc<CompositionSpec>)>| {
            let (of, spec) = specs.get(&uid)?;
            (*of == version && !uid.is_empty()).then(|| Arc::clone(spec))
        };
        let found = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(spec) = found {
            return Ok(Revision { object, spec });
        }
        let revision = Revision::try_from(object)?;
        let mut specs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if specs.len() >= MOST_SPECS {
            specs.clear();
        }
        specs.insert(uid, (version, Arc::clone(&revision.spec)));
        Ok(revision)
    }
}
