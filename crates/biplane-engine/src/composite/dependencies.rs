//! The dependencies of composite resources: which of them to reconcile when an object changes, and
//! what their steps will require again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_cluster::watch::Name;
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

/// An object. Kinds and names are shared, because thousands of objects are remembered in several
/// places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    kind: Arc<Gvk>,
    name: Name,
}

impl Id {
    fn is(&self, id: &ObjectId) -> bool {
        let Self { kind, name } = self;
        **kind == id.gvk && name.namespace() == id.namespace && name.name() == id.name
    }

    fn object_id(&self) -> ObjectId {
        ObjectId::new((*self.kind).clone(), self.name.namespace(), self.name.name())
    }
}

/// Composite resources, in order.
#[derive(Debug, Default)]
struct Dependents(Vec<Id>);

impl Dependents {
    fn insert(&mut self, xr: &Id) {
        if let Err(at) = self.0.binary_search(xr) {
            // Most objects have one dependent.
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, xr.clone());
        }
    }

    fn remove(&mut self, xr: &Id) {
        if let Ok(at) = self.0.binary_search(xr) {
            self.0.remove(at);
        }
    }
}

/// The key and value of a label.
type Label = (String, String);

/// Where objects are selected by a label: in a namespace, or in all of them if it is empty. Without
/// a label, all are selected.
type Selected = (String, Option<Label>);

/// The dependencies in both directions.
#[derive(Debug, Default)]
struct Index {
    tracked: BTreeMap<Id, Listed>,
    /// The composite resources that depend on an object of this kind, namespace and name.
    by_object: BTreeMap<Id, Dependents>,
    /// The composite resources that select objects of a kind by a label. A selector of several
    /// labels is listed under one of them.
    by_label: BTreeMap<Arc<Gvk>, BTreeMap<Selected, Dependents>>,
    /// All kinds, with the number of references to each.
    kinds: BTreeMap<Arc<Gvk>, usize>,
}

/// The dependencies of a composite resource and where they are listed.
#[derive(Debug)]
struct Listed {
    composed: Box<[Id]>,
    requirements: Box<[Requirement]>,
    /// Where the requirements are listed.
    places: Box<[Place]>,
}

impl Listed {
    fn is(&self, tracked: &Tracked) -> bool {
        self.composed.len() == tracked.composed.len()
            && self.composed.iter().zip(&tracked.composed).all(|(mine, other)| mine.is(other))
            && *self.requirements == *tracked.requirements
    }
}

/// Where a requirement is listed in the index.
#[derive(Debug)]
enum Place {
    Object(Id),
    Label(Arc<Gvk>, Selected),
}

impl Index {
    /// An object of which nothing is listed has a kind of which nothing is.
    fn find(&self, id: &ObjectId) -> Option<Id> {
        let (kind, _) = self.kinds.get_key_value(&id.gvk)?;
        Some(Id { kind: Arc::clone(kind), name: Name::new(&id.namespace, &id.name) })
    }

    /// Adds a reference to a kind.
    fn refer(&mut self, gvk: &Gvk) -> Arc<Gvk> {
        let kind = match self.kinds.get_key_value(gvk) {
            Some((kind, _)) => Arc::clone(kind),
            None => Arc::new(gvk.clone()),
        };
        *self.kinds.entry(Arc::clone(&kind)).or_default() += 1;
        kind
    }

    /// Removes a reference to a kind.
    fn release(&mut self, kind: &Gvk) {
        if let Some(count) = self.kinds.get_mut(kind) {
            *count -= 1;
            if *count == 0 {
                self.kinds.remove(kind);
            }
        }
    }

    fn id(&mut self, id: &ObjectId) -> Id {
        Id { kind: self.refer(&id.gvk), name: Name::new(&id.namespace, &id.name) }
    }

    /// Where a requirement is to be listed.
    fn place(&mut self, requirement: &Requirement) -> Place {
        let selector = &requirement.selector;
        let gvk = Gvk::new(&selector.api_version, &selector.kind);
        let namespace = selector.namespace.clone().unwrap_or_default();
        let labels = match &selector.r#match {
            Some(Match::MatchName(name)) => {
                return Place::Object(self.id(&ObjectId::new(gvk, &namespace, name)));
            }
            Some(Match::MatchLabels(labels)) => Some(labels),
            None => None,
        };
        let labels = labels.into_iter().flat_map(|labels| &labels.labels);
        let by_label = self.by_label.get(&gvk);
        // The label that fewest select by: all have some labels in common, and a change of any
        // object that has one of those would have to look at all of them.
        let least = labels
            .map(|(key, value)| (namespace.clone(), Some((key.clone(), value.clone()))))
            .min_by_key(|selected| {
                let dependents = by_label.and_then(|by_label| by_label.get(selected));
                dependents.map_or(0, |dependents| dependents.0.len())
            });
        Place::Label(self.refer(&gvk), least.unwrap_or((namespace, None)))
    }

    fn add(&mut self, xr: &ObjectId, tracked: Tracked) {
        let xr = self.id(xr);
        let composed: Box<[Id]> = tracked.composed.iter().map(|id| self.id(id)).collect();
        let requirements: Box<[Requirement]> = tracked.requirements.into();
        let places: Box<[Place]> = requirements.iter().map(|r| self.place(r)).collect();
        for id in &composed {
            self.by_object.entry(id.clone()).or_default().insert(&xr);
        }
        for place in &places {
            let dependents = match place {
                Place::Object(id) => self.by_object.entry(id.clone()).or_default(),
                Place::Label(kind, selected) => {
                    let by_label = self.by_label.entry(Arc::clone(kind)).or_default();
                    by_label.entry(selected.clone()).or_default()
                }
            };
            dependents.insert(&xr);
        }
        self.tracked.insert(xr, Listed { composed, requirements, places });
    }

    fn remove(&mut self, xr: &ObjectId) {
        let Some((xr, Listed { composed, places, .. })) =
            self.find(xr).and_then(|xr| self.tracked.remove_entry(&xr))
        else {
            return;
        };
        for id in &composed {
            self.remove_object(id, &xr);
        }
        for place in &places {
            match place {
                Place::Object(id) => self.remove_object(id, &xr),
                Place::Label(kind, selected) => self.remove_label(kind, selected, &xr),
            }
        }
        self.release(&xr.kind);
    }

    fn remove_object(&mut self, id: &Id, xr: &Id) {
        if let Some(dependents) = self.by_object.get_mut(id) {
            dependents.remove(xr);
            if dependents.0.is_empty() {
                self.by_object.remove(id);
            }
        }
        self.release(&id.kind);
    }

    fn remove_label(&mut self, kind: &Gvk, selected: &Selected, xr: &Id) {
        if let Some(labels) = self.by_label.get_mut(kind) {
            if let Some(dependents) = labels.get_mut(selected) {
                dependents.remove(xr);
                if dependents.0.is_empty() {
                    labels.remove(selected);
                }
            }
            if labels.is_empty() {
                self.by_label.remove(kind);
            }
        }
        self.release(kind);
    }

    fn dependents(&self, object: &Object) -> Vec<ObjectId> {
        let id = object.id();
        let mut found = BTreeSet::new();
        let listed = self.find(&id).and_then(|id| self.by_object.get(&id));
        found.extend(listed.into_iter().flat_map(|dependents| &dependents.0));
        if let Some(by_label) = self.by_label.get(&id.gvk) {
            let labels = object.at(&["metadata", "labels"]).and_then(Value::as_object);
            // Null counts as an empty label, as everywhere.
            let labels = labels.into_iter().flatten().map(|(key, value)| {
                Some((key.clone(), value.as_str().unwrap_or_default().to_owned()))
            });
            let selected = labels
                .chain([None])
                .flat_map(|label| [(id.namespace.clone(), label.clone()), (String::new(), label)]);
            let candidates = selected.filter_map(|selected| by_label.get(&selected));
            found.extend(candidates.flat_map(|dependents| &dependents.0).filter(|xr| {
                let requirements = self.tracked.get(*xr).map(|listed| &listed.requirements);
                let mut requirements = requirements.into_iter().flatten();
                requirements.any(|r| selects(&r.selector, &id, object))
            }));
        }
        found.into_iter().map(Id::object_id).collect()
    }
}

impl DependencyIndex {
    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the dependencies of a composite resource.
    pub fn replace(&self, xr: &ObjectId, dependencies: Tracked) {
        let mut index = self.index();
        let listed = index.find(xr).and_then(|xr| index.tracked.get(&xr));
        if !listed.is_some_and(|listed| listed.is(&dependencies)) {
            index.remove(xr);
            index.add(xr, dependencies);
        }
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
        self.replace(xr, dependencies);
        Ok(())
    }

    fn forget(&self, xr: &ObjectId) {
        self.index().remove(xr);
    }

    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)> {
        let index = self.index();
        let listed = index.find(xr).and_then(|xr| index.tracked.get(&xr));
        let requirements = listed.into_iter().flat_map(|listed| &listed.requirements);
        requirements
            .filter(|r| r.step == step)
            .map(|r| (r.name.clone(), r.selector.clone()))
            .collect()
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
    async fn a_change_looks_at_those_that_may_select_the_object() {
        let index = DependencyIndex::default();
        let labels = |own: &str| {
            let labels = [("all", "same"), ("own", own)].map(|(k, v)| (k.to_owned(), v.to_owned()));
            Some(Match::MatchLabels(MatchLabels { labels: labels.into() }))
        };
        for number in 0..100 {
            let text = number.to_string();
            // Half select by a label of their own, half in a namespace of their own.
            let (own, namespace) =
                if number < 50 { (text.as_str(), None) } else { ("shared", Some(text.as_str())) };
            let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", &text);
            let selector = mk_selector(labels(own), namespace);
            let requirements = vec![Requirement { step: "s".into(), name: "r".into(), selector }];
            index.track(&xr, Tracked { requirements, ..Tracked::default() }).await.unwrap();
        }
        let largest = |index: &Index| {
            let by_label = index.by_label.values().flat_map(BTreeMap::values);
            by_label.map(|dependents| dependents.0.len()).max()
        };
        assert_eq!(largest(&index.index()), Some(1));
        let mut object = mk_object("70");
        object.set_at(&["metadata", "labels"], json!({"all": "same", "own": "shared"})).unwrap();
        let found = index.dependents(&object);
        assert_eq!(found.iter().map(|xr| &*xr.name).collect::<Vec<_>>(), ["70"]);
        object.set_at(&["metadata", "labels"], json!({"all": "same", "own": "7"})).unwrap();
        let found = index.dependents(&object);
        assert_eq!(found.iter().map(|xr| &*xr.name).collect::<Vec<_>>(), ["7"]);
        for number in 0..100 {
            index.forget(&ObjectId::new(Gvk::new("example.org/v1", "XR"), "", &number.to_string()));
        }
        assert_eq!(largest(&index.index()), None);
    }

    #[tokio::test]
    async fn a_kind_goes_with_its_last_reference() {
        // DEP-3, T-70
        let index = DependencyIndex::default();
        let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", "xr");
        let composed = vec![mk_object("ns").id()];
        index.track(&xr, Tracked { composed, ..Tracked::default() }).await.unwrap();
        let kinds = || index.index().kinds.keys().map(|kind| kind.kind.clone()).collect::<Vec<_>>();
        assert_eq!(kinds(), ["ConfigMap", "XR"]);
        index.track(&xr, Tracked::default()).await.unwrap();
        assert_eq!(kinds(), ["XR"]);
        index.forget(&xr);
        assert!(kinds().is_empty());
    }
}
