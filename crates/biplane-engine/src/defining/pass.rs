//! One pass over one definition: what it works with, its words, and how it writes.

use std::collections::BTreeMap;

use biplane_cluster::{Cluster, Event, EventType, Part, Patch, Precondition, Write, WriteError};
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::{Object, Value};
use biplane_schema::xcrd::Kind;
use serde_json::json;
use tokio::time::Instant;

use super::{DEFINED, Defining, OFFERED};
use crate::controllers::{ControllerError, claim_name, composite_name};
use crate::failure::{Attempted, Failure};

/// The field manager of all writes.
pub(super) const MANAGER: &str = "crossplane";
/// The condition that says whether composite resources are served.
pub(super) const ESTABLISHED: &str = "Established";

/// One pass over one definition.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) defining: &'a Defining,
    /// The deadline of everything but the status.
    pub(super) by: Instant,
    /// The deadline of the status.
    pub(super) status_by: Instant,
}

/// The names and texts in which the two reconcilers differ.
#[derive(Debug)]
pub(super) struct Words {
    /// What is defined.
    pub(super) what: &'static str,
    component: &'static str,
    pub(super) finalizer: &'static str,
    /// The reason of events on the way to a running controller.
    pub(super) establish: &'static str,
    /// The reason of events on the way to the end.
    pub(super) terminate: &'static str,
    /// The type of the condition.
    pub(super) condition: &'static str,
    /// The reason of the condition while the controller runs.
    pub(super) watching: &'static str,
    /// The reason of the condition while the definition is being deleted.
    pub(super) terminating: &'static str,
    /// What is attempted when objects are deleted.
    pub(super) delete: &'static str,
    controller: fn(&str) -> String,
}

const COMPOSITE: Words = Words {
    what: "composite resource",
    component: DEFINED,
    finalizer: "defined.apiextensions.crossplane.io",
    establish: "EstablishComposite",
    terminate: "TerminateComposite",
    condition: ESTABLISHED,
    watching: "WatchingCompositeResource",
    terminating: "TerminatingCompositeResource",
    delete: "cannot delete defined composite resources",
    controller: composite_name,
};

const CLAIM: Words = Words {
    what: "composite resource claim",
    component: OFFERED,
    finalizer: "offered.apiextensions.crossplane.io",
    establish: "OfferClaim",
    terminate: "RedactClaim",
    condition: "Offered",
    watching: "WatchingCompositeResourceClaim",
    terminating: "TerminatingCompositeResourceClaim",
    delete: "cannot delete defined composite resource claim",
    controller: claim_name,
};

impl Words {
    /// The name of the controller of a definition.
    pub(super) fn controller(&self, definition: &str) -> String {
        (self.controller)(definition)
    }
}

/// A failure, and the reason of the event about it, if users are told.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) failure: Failure,
    pub(super) reason: Option<&'static str>,
}

impl Problem {
    pub(super) fn told(reason: &'static str, failure: Failure) -> Self {
        Self { failure, reason: Some(reason) }
    }

    pub(super) fn untold(failure: Failure) -> Self {
        Self { failure, reason: None }
    }
}

/// The failure of a controller that could not be started or stopped.
pub(super) fn failed_controller(words: &Words, error: &ControllerError) -> Failure {
    let what = match error {
        ControllerError::Start(_) => format!("cannot start {} controller", words.what),
        ControllerError::Watch(_) => format!("cannot start {} controller watches", words.what),
        ControllerError::Stop(_) => format!("cannot stop {} controller", words.what),
    };
    Failure::new(error.to_string()).wrap(what)
}

impl<'a> Pass<'a> {
    pub(super) fn words(&self) -> &'static Words {
        match self.defining.kind {
            Kind::Composite => &COMPOSITE,
            Kind::Claim => &CLAIM,
        }
    }

    pub(super) fn cluster(&self) -> &'a dyn Cluster {
        &*self.defining.context.cluster
    }

    /// Records an event about the definition.
    pub(super) fn event(&self, definition: &Object, r#type: EventType, reason: &str, text: &str) {
        self.defining.context.events.record(Event {
            regarding: definition.into(),
            r#type,
            reason: reason.into(),
            message: text.into(),
            component: self.words().component.into(),
            annotations: BTreeMap::new(),
            count: 1,
        });
    }

    /// Sets a condition, with time and generation.
    pub(super) fn mark(&self, definition: &mut Object, condition: Condition) {
        let now = self.defining.context.clock.now();
        let condition = condition.at(now).observed(definition.generation());
        set_conditions(definition, [condition]);
    }

    /// Patches the definition, unless somebody has changed it since it was read.
    pub(super) async fn patch(
        &self,
        definition: &Object,
        patch: &Patch,
    ) -> Result<Object, WriteError> {
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(definition));
        self.cluster().patch(&definition.id(), Part::Main, patch, &how, self.by).await
    }

    /// Writes the status, if it differs from the stored one.
    pub(super) async fn write_status(
        &self,
        definition: &mut Object,
        stored: Option<&Value>,
    ) -> Result<(), Failure> {
        // Crossplane writes both types, known or not.
        for field in ["compositeResourceType", "compositeResourceClaimType"] {
            let path = ["status", "controllers", field];
            if definition.at(&path).is_none() {
                definition.set_at_or_ignore(&path, json!({"apiVersion": "", "kind": ""}));
            }
        }
        if definition.get("status") == stored {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": definition.get("status")}));
        let how = Write::by(MANAGER).only_if(Precondition::unchanged(definition));
        let id = definition.id();
        let written = self.cluster().patch(&id, Part::Status, &patch, &how, self.status_by).await;
        *definition = written.attempted("cannot update status of CompositeResourceDefinition")?;
        Ok(())
    }
}
