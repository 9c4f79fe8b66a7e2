//! How the reconciler behaves for one kind of composite resource, as data. A live control plane and
//! `render` differ in these values only.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use biplane_model::Gvk;
use biplane_model::layout::Layout;
use biplane_schema::structural::Schema;

use super::revision::Revision;
use crate::reconcile::TIMEOUT;

/// How the reconciler behaves for one kind of composite resource.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a decision of its own
pub struct Behaviour {
    /// The kind.
    pub gvk: Gvk,
    /// Where the kind stores Crossplane's fields.
    pub layout: Layout,
    /// The controller name on every event.
    pub controller: String,
    /// How composite resources are written.
    pub writing: Writing,
    /// Which release of Crossplane it behaves like, where releases differ.
    pub release: Release,
    /// Whether Compositions of mode Resources are composed. Otherwise they compose nothing.
    pub resources_mode: bool,
    /// Whether Compositions have environments.
    pub environments: bool,
    /// How Compositions are selected.
    pub selection: Selection,
    /// Whether composite resources get a finalizer.
    pub finalizer: bool,
    /// The keys of connection details to publish, all of them if it is empty. `None` publishes
    /// nothing.
    pub publish: Option<BTreeSet<String>>,
    /// Whether composed resources are moved from client-side to server-side apply.
    pub upgrade: bool,
    /// Whether the status keeps the token of a handled reconcile request. Otherwise composing drops
    /// it, and every reconcile treats the request as new.
    pub remembers_requests: bool,
    /// The schema of the kind. Status fields that it does not declare are left out and reported.
    pub schema: Option<Arc<Schema>>,
    /// Whether dependencies are watched, so that polling is not needed.
    pub realtime: bool,
    /// The interval between reconciles without a trigger. Zero means never.
    pub poll_interval: Duration,
    /// The shortest interval that an annotation can request.
    pub min_poll_interval: Duration,
    /// The time limit of one reconcile.
    pub timeout: Duration,
    /// The time limit of one step of the pipeline. `None` for that of the reconcile.
    pub step_timeout: Option<Duration>,
}

/// A release of Crossplane: its conditions, labels and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// v1.17, the last one with environments in Compositions.
    V1_17,
    /// v1.20, the last one with mode Resources.
    V1_20,
    /// v2.
    V2,
}

impl Release {
    /// Whether it is of the v1 line.
    pub fn is_v1(self) -> bool {
        self != Self::V2
    }
}

/// How a composite resource is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// In the steps of Crossplane, one call after the other. A render shows what they come to.
    Stepwise,
    /// With as few writes as possible: one patch before the first composed resource is applied, and
    /// one write of the status at the end. Composed resources are applied side by side, at most so
    /// many at a time.
    AtOnce {
        /// The number of composed resources that are applied at a time.
        parallel: usize,
    },
}

impl Writing {
    /// The usual way of a live control plane.
    pub const LIVE: Self = Self::AtOnce { parallel: 8 };
}

/// How the Composition of a composite resource is selected.
#[derive(Clone, Debug)]
pub enum Selection {
    /// From the Compositions and revisions in the cluster, as the definition (XRD) with this name
    /// says.
    Live {
        /// The name of the definition. Empty if there is none, which only happens in a render.
        xrd: String,
    },
    /// Always the same.
    Given {
        /// The name of the Composition.
        composition: String,
        /// The revision.
        revision: Box<Revision>,
    },
}

impl Behaviour {
    /// Whether the status can keep the token of a handled reconcile request.
    pub(super) fn keeps_token(&self) -> bool {
        let declared = |schema: &Arc<Schema>| schema.declares_status("lastHandledReconcileAt");
        self.remembers_requests && self.schema.as_ref().is_none_or(declared)
    }

    /// The behaviour of a live control plane with Crossplane's defaults.
    pub fn live(gvk: Gvk, layout: Layout, xrd: &str) -> Self {
        Self {
            gvk,
            layout,
            controller: format!("composite/{xrd}"),
            writing: Writing::LIVE,
            release: Release::V2,
            resources_mode: false,
            environments: false,
            selection: Selection::Live { xrd: xrd.to_owned() },
            finalizer: true,
            publish: Some(BTreeSet::new()),
            upgrade: true,
            remembers_requests: true,
            schema: None,
            realtime: true,
            poll_interval: Duration::ZERO,
            min_poll_interval: Duration::from_secs(1),
            timeout: TIMEOUT,
            step_timeout: None,
        }
    }
}
