//! One pass of the reconciler over one composite resource: what it works with, and the composite
//! resource with changes that are not written yet.

use std::collections::BTreeMap;

use biplane_cluster::{Cluster, Event, EventType};
use biplane_model::Object;
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::layout::Layout;
use tokio::time::Instant;

use super::index::CompositionIndex;
use super::{Behaviour, Reconciler};
use crate::context::Context;

/// The component that reports events. The controller is an annotation.
pub(super) const COMPONENT: &str =
    "defined/compositeresourcedefinition.apiextensions.crossplane.io";

/// One pass over one composite resource.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) reconciler: &'a Reconciler,
    /// The deadline of everything but the status.
    pub(super) by: Instant,
    /// The deadline of the status.
    pub(super) status_by: Instant,
}

impl<'a> Pass<'a> {
    pub(super) fn context(&self) -> &'a Context {
        &self.reconciler.context
    }

    pub(super) fn behaviour(&self) -> &'a Behaviour {
        &self.reconciler.behaviour
    }

    pub(super) fn cluster(&self) -> &'a dyn Cluster {
        &*self.reconciler.context.cluster
    }

    pub(super) fn layout(&self) -> Layout {
        self.behaviour().layout
    }

    /// The index of Compositions, if there is one.
    pub(super) fn index(&self) -> Option<&'a CompositionIndex> {
        self.reconciler.compositions.as_deref()
    }

    /// The annotations of every event.
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        [("controller".to_owned(), self.behaviour().controller.clone())].into()
    }

    /// Records an event about the composite resource.
    pub(super) fn event(&self, xr: &XR, r#type: EventType, reason: &str, message: &str) {
        self.event_with(xr, r#type, reason, message, self.annotations());
    }

    /// Records an event with these annotations.
    pub(super) fn event_with(
        &self,
        xr: &XR,
        r#type: EventType,
        reason: &str,
        message: &str,
        annotations: BTreeMap<String, String>,
    ) {
        self.context().events.record(Event {
            regarding: (&xr.object).into(),
            r#type,
            reason: reason.into(),
            message: message.into(),
            component: COMPONENT.into(),
            annotations,
            count: 1,
        });
    }

    /// Sets the reconciler's own conditions, with time and generation.
    pub(super) fn mark(&self, xr: &mut XR, new: impl IntoIterator<Item = Condition>) {
        let now = self.context().clock.now();
        // Releases before v2 did not say which generation a condition is about.
        let generation = if self.behaviour().release.is_v1() { 0 } else { xr.object.generation() };
        let new: Vec<_> = new.into_iter().map(|c| c.at(now).observed(generation)).collect();
        set_conditions(&mut xr.object, new);
    }
}

/// A composite resource during a reconcile.
///
/// Changes are collected here. [`super::persist`] writes them.
#[derive(Clone, Debug)]
#[allow(clippy::upper_case_acronyms)] // the usual name in Crossplane
pub(super) struct XR {
    /// The object, with changes that are not written yet.
    pub(super) object: Object,
    /// The object as it was last read or written.
    pub(super) stored: Object,
    /// Whether anything but the status differs from the stored object.
    pub(super) unwritten: bool,
    /// Whether the status is all that the functions desire, not only what the reconciler adds to
    /// the stored one.
    pub(super) whole_status: bool,
}

impl XR {
    /// Wraps an object as it was read.
    pub(super) fn new(object: Object) -> Self {
        Self { stored: object.clone(), object, unwritten: false, whole_status: false }
    }

    /// Marks the object as different from the stored one.
    pub(super) fn changed(&mut self) {
        self.unwritten = true;
    }
}
