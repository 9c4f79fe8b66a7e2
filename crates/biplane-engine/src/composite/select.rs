//! Selects the Composition, and the revision of it, that a composite resource uses.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::{Cluster, Event, EventType, ListQuery, Source};
use biplane_model::owner::controller_of;
use biplane_model::pipeline::{CompositionSpec, composition_spec};
use biplane_model::{Gvk, Object, ObjectId};

use super::XR;
use crate::failure::{Attempted, Failure};
use crate::sources::Ids;
use biplane_model::labels;
use biplane_model::layout::Layout;
use biplane_model::selection::{Selection, composes};

const GROUP: &str = "apiextensions.crossplane.io/v1";

/// Selects the Composition, or the selector of revisions, of a composite resource.
#[async_trait]
pub trait Select: Send + Sync {
    /// Updates the references of the composite resource if necessary.
    async fn select(&self, xr: &mut XR) -> Result<(), Failure>;
}

/// Finds the revision that a composite resource uses.
#[async_trait]
pub trait Revisions: Send + Sync {
    /// Returns the revision, and updates the reference of the composite resource if necessary.
    async fn fetch(&self, xr: &mut XR) -> Result<Revision, Failure>;
}

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

/// A selector that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSelection;

#[async_trait]
impl Select for NoSelection {
    async fn select(&self, _xr: &mut XR) -> Result<(), Failure> {
        Ok(())
    }
}

/// The dependencies of selection in a live cluster.
#[derive(Clone)]
pub struct Live {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Where the references are.
    pub layout: Layout,
    /// The name of the definition (XRD).
    pub xrd: String,
    /// Random numbers, to choose among several matches.
    pub ids: Arc<dyn Ids>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("xrd", &self.xrd).finish_non_exhaustive()
    }
}

impl Live {
    async fn definition(&self) -> Result<Object, Failure> {
        let id = ObjectId::new(Gvk::new(GROUP, "CompositeResourceDefinition"), "", &self.xrd);
        let found = self.cluster.get(&id, Source::Cache).await;
        found.attempted("cannot get composite resource definition")
    }

    async fn say(&self, xr: &XR, message: &str) {
        let event = Event {
            regarding: xr.object.id(),
            r#type: EventType::Normal,
            reason: "CompositionSelection".into(),
            message: message.into(),
            annotations: std::collections::BTreeMap::new(),
        };
        self.cluster.record(event).await;
    }
}

/// Selects a Composition: the enforced one, else the one that is set, else the default, else any
/// one that matches the labels.
#[derive(Clone, Debug)]
pub struct CompositionSelector(pub Live);

#[async_trait]
impl Select for CompositionSelector {
    async fn select(&self, xr: &mut XR) -> Result<(), Failure> {
        let Self(live) = self;
        let layout = live.layout;
        let definition = live.definition().await?;
        let labels = match Selection::of(&xr.object, layout, Some(&definition)) {
            Selection::Enforced(name) => {
                if layout.composition(&xr.object).is_none_or(|current| current.name != name) {
                    layout.set_composition(&mut xr.object, &name);
                    live.say(xr, "Enforced composition has been selected").await;
                    xr.changed();
                }
                return Ok(());
            }
            Selection::Named(_) => return Ok(()),
            Selection::Default(name) => {
                layout.set_composition(&mut xr.object, &name);
                live.say(xr, "Default composition has been selected").await;
                xr.changed();
                return Ok(());
            }
            Selection::Labels(labels) => labels,
        };
        let query = ListQuery { labels, ..ListQuery::default() };
        let all = live.cluster.list(&Gvk::new(GROUP, "Composition"), &query).await;
        let mut fitting = all.attempted("cannot list Compositions")?;
        fitting.retain(|composition| composes(composition, &xr.object));
        if fitting.is_empty() {
            return Err(Failure::new("no compatible Compositions found"));
        }
        let chosen = fitting.swap_remove((live.ids.number() % fitting.len() as u64) as usize);
        layout.set_composition(&mut xr.object, chosen.name());
        xr.changed();
        Ok(())
    }
}

/// Sets the default revision selector of the definition on a composite resource.
#[derive(Clone, Debug)]
pub struct DefaultRevisionSelector(pub Live);

#[async_trait]
impl Select for DefaultRevisionSelector {
    async fn select(&self, xr: &mut XR) -> Result<(), Failure> {
        let Self(live) = self;
        let layout = live.layout;
        if layout.revision_selector(&xr.object).is_some() || layout.revision(&xr.object).is_some() {
            return Ok(());
        }
        let definition = live.definition().await?;
        let default = definition.at(&["spec", "defaultCompositionRevisionSelector"]);
        if let Some(selector) = default.filter(|v| v.is_object()) {
            layout.set_revision_selector(&mut xr.object, selector);
            live.say(xr, "Default revision selector has been selected").await;
            xr.changed();
        }
        Ok(())
    }
}

/// Fetches the newest revision of the Composition, or the referenced one if the update policy is
/// manual.
#[derive(Clone, Debug)]
pub struct NewestRevision(pub Live);

#[async_trait]
impl Revisions for NewestRevision {
    async fn fetch(&self, xr: &mut XR) -> Result<Revision, Failure> {
        let Self(live) = self;
        let layout = live.layout;
        let current = layout.revision(&xr.object).map(|r| r.name);
        let policy = layout.update_policy(&xr.object).to_owned();
        if let (Some(name), "Manual") = (&current, policy.as_str()) {
            let id = ObjectId::new(Gvk::new(GROUP, "CompositionRevision"), "", name);
            let found = live.cluster.get(&id, Source::Cache).await;
            return found.attempted("cannot get CompositionRevision")?.try_into();
        }
        let name = layout.composition(&xr.object).unwrap_or_default().name;
        let id = ObjectId::new(Gvk::new(GROUP, "Composition"), "", &name);
        let found = live.cluster.get(&id, Source::Cache).await;
        let composition = found.attempted("cannot get Composition")?;
        let mut labels = [(labels::COMPOSITION_NAME.to_owned(), name)].into();
        // Only an explicit automatic policy uses the selector.
        if policy == "Automatic" {
            let selected = layout.revision_selector(&xr.object).unwrap_or_default();
            std::collections::BTreeMap::extend(&mut labels, selected);
        }
        let query = ListQuery { labels, ..ListQuery::default() };
        let all = live.cluster.list(&Gvk::new(GROUP, "CompositionRevision"), &query).await;
        let newest = all
            .attempted("cannot list CompositionRevisions")
            .attempted("cannot fetch composition revision")?
            .into_iter()
            .filter(|r| controller_of(r).is_some_and(|c| c.uid == composition.uid()))
            .filter(|r| number(r) > 0)
            .max_by_key(number)
            .ok_or_else(|| Failure::new("no compatible CompositionRevisions found"))?;
        if current.as_deref() != Some(newest.name()) {
            layout.set_revision(&mut xr.object, newest.name());
            xr.changed();
        }
        newest.try_into()
    }
}

fn number(revision: &Object) -> i64 {
    let number = revision.at(&["spec", "revision"]);
    number.and_then(biplane_model::object::integer).unwrap_or_default()
}
