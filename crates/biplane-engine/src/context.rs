//! What every reconciler works with: the cluster, the events, the functions, and the sources of
//! time and randomness.

use std::collections::BTreeMap;
use std::sync::Arc;

use biplane_cluster::{Cluster, Event, EventType, Events};
use biplane_model::Object;
use biplane_runner::{FunctionRunner, Requirements};

use crate::sources::{Clock, Ids};

/// What every reconciler works with.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Takes events.
    pub events: Arc<dyn Events>,
    /// Runs functions, with all wrappers.
    pub runner: Arc<dyn FunctionRunner>,
    /// Fetches the resources that steps require up front.
    pub requirements: Arc<dyn Requirements>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of unique ids.
    pub ids: Arc<dyn Ids>,
}

/// Who reports an event, and the annotations that it gets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reporter {
    /// The controller that reports it.
    pub(crate) component: String,
    /// Annotations on the event.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl Context {
    /// Records an event about an object.
    pub(crate) fn event(
        &self,
        from: &Reporter,
        about: &Object,
        r#type: EventType,
        reason: &str,
        message: &str,
    ) {
        self.events.record(Event {
            regarding: about.into(),
            r#type,
            reason: reason.into(),
            message: message.into(),
            component: from.component.clone(),
            annotations: from.annotations.clone(),
            count: 1,
        });
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}
