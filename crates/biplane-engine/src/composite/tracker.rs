//! Tracks the dependencies of composite resources: which of them to reconcile when an object
//! changes, and what their steps will require again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use biplane_model::{Gvk, Object, ObjectId};
use biplane_proto::function::v1::{ResourceSelector, resource_selector::Match};

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

/// Remembers the dependencies of composite resources.
pub trait Tracker: Send + Sync {
    /// Replaces the dependencies of a composite resource.
    fn track(&self, xr: &ObjectId, dependencies: Tracked);
    /// Removes a composite resource.
    fn forget(&self, xr: &ObjectId);
    /// Returns the requirements of a step when the composite resource was last tracked.
    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)>;
}

/// A tracker that remembers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTracker;

impl Tracker for NoTracker {
    fn track(&self, _xr: &ObjectId, _dependencies: Tracked) {}
    fn forget(&self, _xr: &ObjectId) {}
    fn requirements(&self, _xr: &ObjectId, _step: &str) -> Vec<(String, ResourceSelector)> {
        Vec::new()
    }
}

/// An in-memory tracker for one kind of composite resource.
#[derive(Debug, Default)]
pub struct DependencyTracker(Mutex<BTreeMap<ObjectId, Tracked>>);

impl DependencyTracker {
    fn all(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectId, Tracked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all kinds that composite resources depend on.
    pub fn kinds(&self) -> BTreeSet<Gvk> {
        let all = self.all();
        let composed = all.values().flat_map(|t| t.composed.iter().map(|id| id.gvk.clone()));
        let required = all.values().flat_map(|t| {
            t.requirements.iter().map(|r| Gvk::new(&r.selector.api_version, &r.selector.kind))
        });
        composed.chain(required).collect()
    }

    /// Returns the composite resources that depend on an object, without duplicates.
    pub fn dependents(&self, object: &Object) -> Vec<ObjectId> {
        let id = object.id();
        self.all()
            .iter()
            .filter(|(_, tracked)| {
                tracked.composed.contains(&id)
                    || tracked.requirements.iter().any(|r| selects(&r.selector, &id, object))
            })
            .map(|(xr, _)| xr.clone())
            .collect()
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

impl Tracker for DependencyTracker {
    fn track(&self, xr: &ObjectId, dependencies: Tracked) {
        self.all().insert(xr.clone(), dependencies);
    }

    fn forget(&self, xr: &ObjectId) {
        self.all().remove(xr);
    }

    fn requirements(&self, xr: &ObjectId, step: &str) -> Vec<(String, ResourceSelector)> {
        self.all()
            .get(xr)
            .into_iter()
            .flat_map(|tracked| &tracked.requirements)
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

    fn matches(r#match: Option<Match>, namespace: Option<&str>, object: &Object) -> bool {
        let tracker = DependencyTracker::default();
        let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", "xr");
        let selector = mk_selector(r#match, namespace);
        let requirements = vec![Requirement { step: "s".into(), name: "r".into(), selector }];
        tracker.track(&xr, Tracked { requirements, ..Tracked::default() });
        tracker.dependents(object) == [xr]
    }

    #[test]
    fn names_match_one_namespace_and_labels_match_any() {
        // DEP-4, T-69
        let name = || Some(Match::MatchName("a".into()));
        let labels = |k: &str| {
            let labels = [(k.to_owned(), "v".to_owned())].into();
            Some(Match::MatchLabels(MatchLabels { labels }))
        };
        assert!(matches(name(), Some("ns"), &mk_object("ns")));
        assert!(!matches(name(), Some("ns"), &mk_object("other")));
        assert!(!matches(name(), None, &mk_object("ns")));
        assert!(matches(name(), None, &mk_object("")));
        assert!(matches(labels("k"), None, &mk_object("ns")));
        assert!(!matches(labels("k"), Some("other"), &mk_object("ns")));
        assert!(!matches(labels("z"), None, &mk_object("ns")));
        assert!(matches(None, None, &mk_object("ns")));
    }

    #[test]
    fn a_kind_goes_with_its_last_reference() {
        // DEP-3, T-70
        let tracker = DependencyTracker::default();
        let xr = ObjectId::new(Gvk::new("example.org/v1", "XR"), "", "xr");
        let composed = vec![mk_object("ns").id()];
        tracker.track(&xr, Tracked { composed, ..Tracked::default() });
        assert_eq!(tracker.kinds(), [Gvk::new("v1", "ConfigMap")].into());
        tracker.track(&xr, Tracked::default());
        assert!(tracker.kinds().is_empty());
    }
}
