//! Revisions of Compositions with their decoded specs, prepared once for all reconciles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use biplane_model::integrity::{self, Rules};
use biplane_model::pipeline::{CompositionSpec, composition_spec};
use biplane_model::{Object, labels};

use super::v1_spec::environment::Configuration;
use super::v1_spec::templates::Plan;
use crate::failure::Failure;

/// The decoded spec of a revision.
#[derive(Debug)]
pub struct Spec {
    pipeline: CompositionSpec,
    /// The templates of mode Resources.
    pub(super) templates: Plan,
    /// The environment, if there is one.
    pub(super) environment: Option<Configuration>,
    /// What the integrity rules find wrong.
    pub(super) findings: Vec<String>,
}

impl std::ops::Deref for Spec {
    type Target = CompositionSpec;

    fn deref(&self) -> &CompositionSpec {
        &self.pipeline
    }
}

impl Spec {
    /// Decodes and prepares the spec of a revision.
    pub(super) fn of(revision: &Object) -> Result<Self, Failure> {
        let pipeline = composition_spec(revision).map_err(|e| Failure::new(e.to_string()))?;
        if pipeline.mode == "Resources" {
            let composition = revision.label(labels::COMPOSITION_NAME);
            tracing::warn!(composition, "mode Resources is deprecated: use mode Pipeline");
        }
        Ok(Self {
            pipeline,
            templates: Plan::of(revision),
            environment: Configuration::of(revision),
            findings: integrity::findings(revision, Rules::WithEnvironment),
        })
    }

    /// Whether the mode is Resources. Without a mode, it is so if there are templates only.
    pub(super) fn has_templates(&self) -> bool {
        match self.mode.as_str() {
            "" => self.pipeline.pipeline.is_empty() && !self.templates.is_empty(),
            mode => mode == "Resources",
        }
    }
}

/// A CompositionRevision and its decoded spec.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The object.
    pub object: Object,
    /// Its spec.
    pub spec: Arc<Spec>,
}

impl TryFrom<Object> for Revision {
    type Error = Failure;

    fn try_from(object: Object) -> Result<Self, Failure> {
        let spec = Spec::of(&object)?;
        Ok(Self { object, spec: Arc::new(spec) })
    }
}

/// The decoded specs of revisions, so that each is decoded once and not in every reconcile.
#[derive(Debug, Default)]
pub(super) struct Specs(Mutex<BTreeMap<String, (String, Arc<Spec>)>>);

/// More revisions than one kind of composite resource uses at a time.
const MOST_SPECS: usize = 64;

impl Specs {
    /// Returns the revision with its spec, which is decoded if the object has changed.
    pub(super) fn revision(&self, object: Object) -> Result<Revision, Failure> {
        let (uid, version) = (object.uid().to_owned(), object.resource_version().to_owned());
        let known = |specs: &BTreeMap<String, (String, Arc<Spec>)>| {
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
