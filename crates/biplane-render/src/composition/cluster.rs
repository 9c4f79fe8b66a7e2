//! The API server in memory that a render until stable runs on: what it was given, who composes
//! whom, and what of it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Error, Result, bail};
use biplane_cluster::memory::{ApiServer, Sources};
use biplane_engine::controllers::composite_name;
use biplane_engine::render::composite_uid;
use biplane_model::layout::Layout;
use biplane_model::owner::controller_of;
use biplane_model::selection::composes;
use biplane_model::{Gvk, Object, ObjectId, names};

use super::nested::Nested;
use super::{definitions, shown};
use crate::{RENDER_TIME, print};

/// The maximum nesting depth of composite resources. Deeper nesting is treated as an error.
pub(super) const DEEPEST: usize = 10;

/// Objects by their id.
pub(super) type Objects = BTreeMap<ObjectId, Object>;

/// An API server with everything that a render was given.
#[derive(Debug)]
pub(super) struct RenderCluster {
    pub(super) server: Arc<ApiServer>,
    pub(super) root: ObjectId,
    nested: Arc<Nested>,
    /// The composite resource and the observed resources, as they were given.
    given: Objects,
    /// What exists besides, and is not shown: Compositions, required resources and so on.
    besides: Mutex<BTreeSet<ObjectId>>,
    /// The objects that existed once, by UID.
    uids: Mutex<BTreeMap<String, ObjectId>>,
    /// Why the render cannot go on.
    failure: Mutex<Option<Error>>,
}

/// The time of every render, and UIDs that depend on kind, namespace and name alone, so that the names
/// of composed resources are the same every time.
#[derive(Debug, Default)]
struct RenderSources {
    names: std::sync::atomic::AtomicU64,
}

impl Sources for RenderSources {
    fn now(&self) -> String {
        RENDER_TIME.to_owned()
    }

    fn uid(&self) -> String {
        composite_uid(&Object::new())
    }

    fn uid_of(&self, object: &Object) -> String {
        composite_uid(object)
    }

    fn random(&self) -> [u8; names::SUFFIX] {
        names::spread(self.names.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

/// The objects that are shown, as they are shown, and who composes each of them.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) objects: Objects,
    composers: BTreeMap<ObjectId, ObjectId>,
}

impl RenderCluster {
    /// An empty server for a composite resource and its observed resources.
    pub(super) fn new(root: &Object, observed: &[Object], nested: Arc<Nested>) -> Self {
        let mut given = Objects::from([(root.id(), root.clone())]);
        for object in observed.iter().filter(|object| object.id() != root.id()) {
            let mut object = object.clone();
            print::fix_times(&mut object);
            given.insert(object.id(), object);
        }
        Self {
            server: Arc::new(ApiServer::new(RenderSources::default())),
            root: root.id(),
            nested,
            given,
            besides: Mutex::default(),
            uids: Mutex::default(),
            failure: Mutex::default(),
        }
    }

    /// The composite resource and the observed resources, as they were given.
    pub(super) fn given(&self) -> &Objects {
        &self.given
    }

    /// Everything that exists now and was not given is not shown, unless it is composed later.
    pub(super) fn hide_the_rest(&self) {
        let ids = self.server.objects().iter().map(Object::id).collect::<BTreeSet<_>>();
        let rest = ids.into_iter().filter(|id| !self.given.contains_key(id));
        *self.besides.lock().unwrap_or_else(PoisonError::into_inner) = rest.collect();
    }

    /// Notes why the render cannot go on. The first reason counts.
    pub(super) fn fail(&self, error: Error) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Why the render cannot go on, if it cannot.
    pub(super) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The layout of a kind of composite resource.
    pub(super) fn layout(&self, gvk: &Gvk) -> Layout {
        self.nested.definition(gvk).map_or(Layout::Modern, Layout::of_definition)
    }

    /// The name of the controller of a kind of composite resource.
    pub(super) fn controller(&self, gvk: &Gvk) -> String {
        match self.nested.definition(gvk) {
            Some(definition) => composite_name(&definitions::name(definition)),
            None => composite_name(&gvk.to_string()),
        }
    }

    /// Who composes an object: its controller. An observed resource without a controller belongs to
    /// the composite resource, and the composite resource of a claim to the claim. `by_uid` finds
    /// what exists by its UID, and `exists` says whether something does.
    fn composer(
        &self,
        object: &Object,
        by_uid: impl FnOnce(&str) -> Option<ObjectId>,
        exists: impl FnOnce(&ObjectId) -> bool,
    ) -> Option<ObjectId> {
        let id = object.id();
        if let Some(owner) = controller_of(object) {
            return by_uid(&owner.uid);
        }
        if id == self.root {
            return None;
        }
        if self.given.contains_key(&id) {
            return Some(self.root.clone());
        }
        let claim = Layout::Legacy.claim(object)?;
        let gvk = Gvk::new(&claim.api_version, &claim.kind);
        let claim = ObjectId::new(gvk, &claim.namespace, &claim.name);
        exists(&claim).then_some(claim)
    }

    /// Who composes each of these objects.
    fn composers(&self, all: &[Object]) -> BTreeMap<ObjectId, ObjectId> {
        let ids: BTreeSet<_> = all.iter().map(Object::id).collect();
        let by_uid: BTreeMap<_, _> = all.iter().map(|object| (object.uid(), object.id())).collect();
        let composer = |object: &Object| {
            self.composer(object, |uid| by_uid.get(uid).cloned(), |id| ids.contains(id))
        };
        all.iter().filter_map(|object| Some((object.id(), composer(object)?))).collect()
    }

    /// Who composes an object that exists now.
    fn composer_of(&self, id: &ObjectId) -> Option<ObjectId> {
        let object = self.server.object(id)?;
        let exists = |id: &ObjectId| self.server.object(id).is_some();
        self.composer(&object, |uid| self.by_uid(uid), exists)
    }

    /// Finds an object that exists now. All are looked at only for a UID that was not met before.
    fn by_uid(&self, uid: &str) -> Option<ObjectId> {
        let mut known = self.uids.lock().unwrap_or_else(PoisonError::into_inner);
        let is = |id: &&ObjectId| self.server.object(id).is_some_and(|now| now.uid() == uid);
        if let Some(id) = known.get(uid).filter(is) {
            return Some(id.clone());
        }
        let all = self.server.objects();
        *known = all.iter().map(|object| (object.uid().to_owned(), object.id())).collect();
        known.get(uid).cloned()
    }

    /// The objects that are shown now.
    pub(super) fn state(&self) -> State {
        let all = self.server.objects();
        let all_composers = self.composers(&all);
        // Revisions have a controller too, but it is nobody who is rendered.
        let is_below = |id: &ObjectId| {
            let above = std::iter::successors(Some(id), |below| all_composers.get(*below));
            above.take(2 * DEEPEST).any(|id| *id == self.root)
        };
        let mut composers = all_composers.clone();
        composers.retain(|id, _| is_below(id));
        let besides = self.besides.lock().unwrap_or_else(PoisonError::into_inner);
        let objects: Objects = all
            .into_iter()
            .map(|object| (object.id(), object))
            .filter(|(id, _)| {
                self.given.contains_key(id)
                    || composers.contains_key(id)
                    || !(besides.contains(id) || is_bookkeeping(&id.gvk))
            })
            .map(|(id, object)| {
                let shown = self.shown(object);
                (id, shown)
            })
            .collect();
        drop(besides);
        composers.retain(|id, _| objects.contains_key(id));
        State { objects, composers }
    }

    /// An object as it is shown.
    pub(super) fn shown(&self, object: Object) -> Object {
        let (id, gvk) = (object.id(), object.gvk());
        let is_composite = self.nested.compositions.iter().any(|c| composes(c, &object));
        let layout = if self.nested.is_claim(&object) {
            Some(Layout::Legacy)
        } else {
            is_composite.then(|| self.layout(&gvk))
        };
        let machinery = layout.map(Layout::machinery);
        shown::shown(object, self.given.get(&id), machinery)
    }

    /// Fails if a composite resource may not compose an object.
    pub(super) fn check_composer(&self, uid: &str, composed: &ObjectId) -> Result<()> {
        let Some(composer) = self.by_uid(uid) else { return Ok(()) };
        let mut chain = vec![composed.clone(), composer.clone()];
        while chain.len() <= DEEPEST + 1
            && let Some(above) = chain.last().and_then(|last| self.composer_of(last))
        {
            chain.push(above);
        }
        let described = || {
            let names: Vec<_> = chain.iter().rev().map(ToString::to_string).collect();
            names.join(" composes ")
        };
        if chain.iter().skip(1).any(|above| above == composed) {
            bail!("a composite resource composes itself: {}", described());
        }
        if chain.len() > DEEPEST + 1 {
            bail!("composite resources nest more than {DEEPEST} deep: {}", described());
        }
        match self.composer_of(composed) {
            Some(other) if other != composer => {
                bail!("{composed} is composed by both {other} and {composer}")
            }
            _ => Ok(()),
        }
    }

    /// Only the fields of a composite resource that a render changes, as printed.
    pub(super) fn changed(&self, composite: &Object) -> Object {
        let mut changed = Object::new();
        changed.set_at_or_ignore(&["apiVersion"], composite.api_version());
        changed.set_at_or_ignore(&["kind"], composite.kind());
        changed.set_meta("name", composite.name());
        changed.set_meta("namespace", composite.namespace());
        let references = [self.layout(&composite.gvk()).machinery(), &["resourceRefs"]].concat();
        for path in [references.as_slice(), &["status"]] {
            if let Some(value) = composite.at(path) {
                changed.set_at_or_ignore(path, value.clone());
            }
        }
        changed
    }

    /// The composite resources that exist and have a Composition, parents first.
    pub(super) fn composites(&self, state: &State) -> Result<Vec<ObjectId>> {
        let mut all = self.composing(state)?;
        all.retain(|id| !state.objects.get(id).is_some_and(|object| self.nested.is_claim(object)));
        Ok(all)
    }

    /// The composite resources that exist and have a Composition, and the claims that they compose,
    /// parents first.
    pub(super) fn composing(&self, state: &State) -> Result<Vec<ObjectId>> {
        let mut all = vec![self.root.clone()];
        // Each is listed once, even if owner references form a cycle.
        let mut known = BTreeSet::from([self.root.clone()]);
        let mut at = 0;
        while let Some(composer) = all.get(at).cloned() {
            for composed in state.composed(&composer) {
                let id = composed.id();
                let composes = self.nested.is_claim(&composed)
                    || self.nested.composition(&composed)?.is_some();
                if composes && known.insert(id.clone()) {
                    all.push(id);
                }
            }
            at += 1;
        }
        Ok(all)
    }
}

/// Whether objects of a kind are made by the control plane for itself.
fn is_bookkeeping(gvk: &Gvk) -> bool {
    matches!(
        (gvk.group.as_str(), gvk.kind.as_str()),
        ("apiextensions.crossplane.io", "CompositionRevision")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

impl State {
    /// The composed resources of a composite resource, in the order in which they are printed.
    pub(super) fn composed(&self, composer: &ObjectId) -> Vec<Object> {
        let is_its = |(id, _): &(&ObjectId, &Object)| self.composers.get(*id) == Some(composer);
        let mut composed: Vec<_> =
            self.objects.iter().filter(is_its).map(|(_, object)| object.clone()).collect();
        print::sort(&mut composed);
        composed
    }

    /// All objects except one.
    pub(super) fn others(&self, id: &ObjectId) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |(other, _)| *other != id).map(|(_, object)| object)
    }
}

#[cfg(test)]
mod tests;
