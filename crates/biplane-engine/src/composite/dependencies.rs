//! The dependencies of composite resources: which of them to reconcile when an object changes, and
//! what their steps will require again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId, Value};
use biplane_proto::function::v1::{ResourceSelector, resource_selector::Match};

use crate::failure::Failure;

/// A resource that a step required.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The step.
    pub step: String,
    /// The function's name for the requirement.
    pub name: String,
    /// The selector.
    pub selector: ResourceSelector,
}

/// All dependencies of one composite resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tracked {
    /// The composed resources.
    pub composed: Vec<ObjectId>,
    /// The requirements of the steps.
    pub requirements: Vec<Requirement>,
}

/// Remembers the dependencies of composite resources, and watches them if it can.
#[async_trait]
pub trait Dependencies: Send + Sync {
    /// Replaces the dependencies of a composite resource, and starts the watches that are missing.
    async fn track(&self, xr: &ObjectId, dependencies: Tracked) -> Result<(), Failure>;
    /// Removes a composite resource.
    fn forget(&self, xr: &ObjectId);
    /// Returns the requirements of a step when the composite resource was last tracked.
    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)>;
}

/// Remembers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untracked;

#[async_trait]
impl Dependencies for Untracked {
    async fn track(&self, _xr: &ObjectId, _dependencies: Tracked) -> Result<(), Failure> {
        Ok(())
    }

    fn forget(&self, _xr: &ObjectId) {}

    fn requirements(&self, _xr: &ObjectId, _step: &str) -> Vec<(String, ResourceSelector)> {
        Vec::new()
    }
}

/// An in-memory index for one kind of composite resource. It finds the dependents of an object
/// without looking at the other composite resources.
#[derive(Debug, Default)]
pub struct DependencyIndex(Mutex<Index>);

/// Composite resources.
type Dependents = BTreeSet<Arc<ObjectId>>;
/// The key and value of a label.
type Label = (String, String);

/// The dependencies in both directions.
#[derive(Debug, Default)]
struct Index {
    tracked: BTreeMap<Arc<ObjectId>, Tracked>,
    /// The composite resources that depend on an object of this kind, namespace and name.
    by_object: BTreeMap<ObjectId, Dependents>,
    /// The composite resources that select objects of a kind by one label, or by none. A selector
    /// of several labels is listed under its first.
    by_label: BTreeMap<Gvk, BTreeMap<Option<Label>, Dependents>>,
    /// The number of references to each kind.
    kinds: BTreeMap<Gvk, usize>,
}

/// Where a dependency is listed in the index.
enum Place {
    Object(ObjectId),
    Label(Gvk, Option<Label>),
}

impl Place {
    fn of(requirement: &Requirement) -> Self {
        let selector = &requirement.selector;
        let gvk = Gvk::new(&selector.api_version, &selector.kind);
        match &selector.r#match {
            Some(Match::MatchName(name)) => {
                let namespace = selector.namespace.as_deref().unwrap_or_default();
                Self::Object(ObjectId::new(gvk, namespace, name))
            }
            Some(Match::MatchLabels(labels)) => {
                let first = labels.labels.iter().next();
                Self::Label(gvk, first.map(|(key, value)| (key.clone(), value.clone())))
            }
            None => Self::Label(gvk, None),
        }
    }

    fn gvk(&self) -> &Gvk {
        match self {
            Self::Object(id) => &id.gvk,
            Self::Label(gvk, _) => gvk,
        }
    }
}

fn places(tracked: &Tracked) -> impl Iterator<Item = Place> {
    let composed = tracked.composed.iter().cloned().map(Place::Object);
    composed.chain(tracked.requirements.iter().map(Place::of))
}

impl Index {
    fn add(&mut self, xr: &ObjectId, tracked: Tracked) {
        let xr = Arc::new(xr.clone());
        for place in places(&tracked) {
            *self.kinds.entry(place.gvk().clone()).or_default() += 1;
            let dependents = match place {
                Place::Object(id) => self.by_object.entry(id).or_default(),
                Place::Label(gvk, label) => {
                    self.by_label.entry(gvk).or_default().entry(label).or_default()
                }
            };
            dependents.insert(Arc::clone(&xr));
        }
        self.tracked.insert(xr, tracked);
    }

    fn remove(&mut self, xr: &ObjectId) {
        let Some(tracked) = self.tracked.remove(xr) else { return };
        for place in places(&tracked) {
            if let Some(count) = self.kinds.get_mut(place.gvk()) {
                *count -= 1;
                if *count == 0 {
                    self.kinds.remove(place.gvk());
                }
            }
            match place {
                Place::Object(id) => {
                    if let Some(dependents) = self.by_object.get_mut(&id) {
                        dependents.remove(xr);
                        if dependents.is_empty() {
                            self.by_object.remove(&id);
                        }
                    }
                }
                Place::Label(gvk, label) => {
                    let Some(labels) = self.by_label.get_mut(&gvk) else { continue };
                    if let Some(dependents) = labels.get_mut(&label) {
                        dependents.remove(xr);
                        if dependents.is_empty() {
                            labels.remove(&label);
                        }
                    }
                    if labels.is_empty() {
                        self.by_label.remove(&gvk);
                    }
                }
            }
        }
    }

    fn dependents(&self, object: &Object) -> Vec<ObjectId> {
        let id = object.id();
        let mut found = BTreeSet::new();
        found.extend(self.by_object.get(&id).into_iter().flatten());
        if let Some(by_label) = self.by_label.get(&id.gvk) {
            let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
            // Null counts as an empty label, as everywhere.
            let labels = labels.into_iter().flatten().map(|(key, value)| {
                Some((key.clone(), value.as_str().unwrap_or_default().to_owned()))
            });
            let candidates = labels.chain([None]).filter_map(|label| by_label.get(&label));
            found.extend(candidates.flatten().filter(|xr| {
                let tracked = self.tracked.get(*xr);
                let requirements = tracked.into_iter().flat_map(|t| &t.requirements);
                requirements.into_iter().any(|r| selects(&r.selector, &id, object))
            }));
        }
        found.into_iter().map(|xr| ObjectId::clone(xr)).collect()
    }
}

impl DependencyIndex {
    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all kinds that composite resources depend on.
    pub fn kinds(&self) -> BTreeSet<Gvk> {
        self.index().kinds.keys().cloned().collect()
    }

    /// Returns the composite resources that depend on an object, in order and without duplicates.
    pub fn dependents(&self, object: &Object) -> Vec<ObjectId> {
        self.index().dependents(object)
    }
}

fn selects(selector: &ResourceSelector, id: &ObjectId, object: &Object) -> bool {
    let namespace = selector.namespace.as_deref().unwrap_or_default();
    if Gvk::new(&selector.api_version, &selector.kind) != id.gvk {
        return false;
    }
    match &selector.r#match {
        // A name without a namespace matches cluster-scoped objects. Labels without one match
        // anywhere.
        Some(Match::MatchName(name)) => *name == id.name && namespace == id.namespace,
        other => {
            let labels = match other {
                Some(Match::MatchLabels(labels)) => labels.labels.iter().collect(),
                _ => Vec::new(),
            };
            (namespace.is_empty() || namespace == id.namespace)
                && object.has_labels(labels.iter().map(|(key, value)| (&***key, &***value)))
        }
    }
}

#[async_trait]
impl Dependencies for DependencyIndex {
    async fn track(&self, xr: &ObjectId, dependencies: Tracked) -> Result<(), Failure> {
        let mut index = self.index();
        if index.tracked.get(xr) != Some(&dependencies) {
            index.remove(xr);
            index.add(xr, dependencies);
        }
        Ok(())
    }

    fn forget(&self, xr: &ObjectId) {
        self.index().remove(xr);
    }

    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)> {
        let index = self.index();
        let tracked = index.tracked.get(xr).into_iter().flat_map(|tracked| &tracked.requirements);
        tracked.filter(|r| r.step == step).map(|r| (r.name.clone(), r.selector.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use biplane_proto::function::v1::MatchLabels;
    use serde_json::json;

    use super::*;

    fn mk_selector(r#match: Option<Match>, namespace: Option<&str>) -> ResourceSelector {
        ResourceSelector {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            r#match,
            namespace: namespace.map(Into::into),
        }
    }

    fn mk_object(namespace: &str) -> Object {
        let mut object = Object::from_value(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"k": "v"}}}),
        )
        .unwrap();
        object.set_meta("namespace", namespace);
        object
    }

    async fn matches(r#match: Option<Match>, namespace: Option<&str>, object: &Object) -> bool {
        let index = DependencyIndex::default();
        let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", "xr");
        let selector = mk_selector(r#match, namespace);
        let requirements = vec![Requirement { step: "s".into(), name: "r".into(), selector }];
        index.track(&xr, Tracked { requirements, ..Tracked::default() }).await.unwrap();
        index.dependents(object) == [xr]
    }

    #[tokio::test]
    async fn names_match_one_namespace_and_labels_match_any() {
        // DEP-4, T-69
        let name = || Some(Match::MatchName("a".into()));
        let labels = |k: &str| {
            let labels = [(k.to_owned(), "v".to_owned())].into();
            Some(Match::MatchLabels(MatchLabels { labels }))
        };
        assert!(matches(name(), Some("ns"), &mk_object("ns")).await);
        assert!(!matches(name(), Some("ns"), &mk_object("other")).await);
        assert!(!matches(name(), None, &mk_object("ns")).await);
        assert!(matches(name(), None, &mk_object("")).await);
        assert!(matches(labels("k"), None, &mk_object("ns")).await);
        assert!(!matches(labels("k"), Some("other"), &mk_object("ns")).await);
        assert!(!matches(labels("z"), None, &mk_object("ns")).await);
        assert!(matches(None, None, &mk_object("ns")).await);
    }

    #[tokio::test]
    async fn a_kind_goes_with_its_last_reference() {
        // DEP-3, T-70
        let index = DependencyIndex::default();
        let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", "xr");
        let composed = vec![mk_object("ns").id()];
        index.track(&xr, Tracked { composed, ..Tracked::default() }).await.unwrap();
        assert_eq!(index.kinds(), [Gvk::new("v1", "ConfigMap")].into());
        index.track(&xr, Tracked::default()).await.unwrap();
        assert!(index.kinds().is_empty());
    }
}
