//! Which functions are installed: an index of Functions and their revisions, kept by watches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use async_trait::async_trait;
use biplane_cluster::Change;
use biplane_engine::in_process::Runtime;
use biplane_model::{Gvk, labels};
use biplane_runner::Cause;
use biplane_runner::packaged::{Endpoint, Endpoints};

use crate::controller::Watch;

/// The installed functions.
#[derive(Debug, Default)]
pub(super) struct Index(RwLock<Installed>);

#[derive(Debug, Default)]
struct Installed {
    functions: BTreeMap<String, Package>,
    /// The active revisions, by their names.
    active: BTreeMap<String, Revision>,
}

#[derive(Debug)]
struct Package {
    runtime: Option<Runtime>,
    package: String,
}

#[derive(Debug)]
struct Revision {
    function: String,
    endpoint: Endpoint,
    runtime: Option<Runtime>,
}

impl Index {
    fn installed(&self) -> RwLockReadGuard<'_, Installed> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn watches(self: &Arc<Self>) -> Vec<Watch> {
        let (functions, revisions) = (Arc::clone(self), Arc::clone(self));
        let kind = |kind| Gvk::new("pkg.crossplane.io/v1", kind);
        vec![
            Watch::observed("Function", kind("Function"), move |change| {
                functions.function(change);
            }),
            Watch::observed("FunctionRevision", kind("FunctionRevision"), move |change| {
                revisions.revision(change);
            }),
        ]
    }

    fn function(&self, change: &Change) {
        let mut installed = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Changed { object, .. } => {
                let package = object.str_at(&["spec", "package"]).to_owned();
                let package = Package { runtime: Runtime::of(object), package };
                installed.functions.insert(object.name().to_owned(), package);
            }
            Change::Gone { last } => {
                installed.functions.remove(last.name());
            }
            Change::Synced | Change::Missed => {}
        }
    }

    fn revision(&self, change: &Change) {
        let mut installed = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Changed { object, .. }
                if object.str_at(&["spec", "desiredState"]) == "Active" =>
            {
                let revision = Revision {
                    function: object.label(labels::PACKAGE).to_owned(),
                    endpoint: Endpoint {
                        target: object.str_at(&["status", "endpoint"]).to_owned(),
                        revision: object.name().to_owned(),
                        package: object.str_at(&["spec", "image"]).to_owned(),
                    },
                    runtime: Runtime::of(object),
                };
                installed.active.insert(object.name().to_owned(), revision);
            }
            Change::Changed { object: last, .. } | Change::Gone { last } => {
                installed.active.remove(last.name());
            }
            Change::Synced | Change::Missed => {}
        }
    }

    /// Where a function wants to run, and its package. `None` if it is not installed.
    pub(super) fn runtime(&self, function: &str) -> Option<(Option<Runtime>, String)> {
        let installed = self.installed();
        let revision = installed.active.values().find(|revision| revision.function == function);
        let package = installed.functions.get(function);
        let runtime = package.and_then(|p| p.runtime).or(revision.and_then(|r| r.runtime));
        let image = revision.map(|revision| &revision.endpoint.package);
        let name = image.or(package.map(|package| &package.package))?;
        Some((runtime, name.clone()))
    }
}

/// The endpoints of installed functions.
#[derive(Clone, Debug)]
pub(super) struct Targets(pub(super) Arc<Index>);

#[async_trait]
impl Endpoints for Targets {
    async fn active(&self, function: &str) -> Result<Option<Endpoint>, Cause> {
        let installed = self.0.installed();
        let revision = installed.active.values().find(|revision| revision.function == function);
        Ok(revision.map(|revision| revision.endpoint.clone()))
    }

    /// Functions of which only a revision exists are installed too.
    async fn installed(&self) -> Result<BTreeSet<String>, Cause> {
        let installed = self.0.installed();
        let revisions = installed.active.values().map(|revision| &revision.function);
        Ok(installed.functions.keys().chain(revisions).cloned().collect())
    }
}
