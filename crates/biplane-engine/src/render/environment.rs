//! The environment of a rendered reconciler: an in-memory cluster with the objects of the request,
//! and a log of the requirements of functions.

use std::sync::Arc;

use biplane_cluster::{MemoryCluster, WritePolicy};
use biplane_model::{Object, ObjectId};
use biplane_proto::Struct;
use biplane_runner::{FunctionRunner, stack};

use super::output::{self, Outcome};
use crate::pipeline::Ports;
use crate::requirements::{ClusterRequirements, Recorded, served_by};

/// The objects of a request besides the one to reconcile.
#[derive(Debug, Default)]
pub(super) struct RenderFixtures {
    /// Objects that functions may require.
    pub(super) required: Vec<Struct>,
    /// Secrets that steps name.
    pub(super) credentials: Vec<Struct>,
    /// OpenAPI documents with schemas that functions may require.
    pub(super) documents: Vec<Struct>,
}

/// The environment of a rendered reconciler.
pub(super) struct RenderEnvironment {
    cluster: Arc<MemoryCluster>,
    requirements: Arc<Recorded<ClusterRequirements>>,
    /// The dependencies of the reconciler's pipeline.
    pub(super) ports: Ports,
}

impl RenderEnvironment {
    /// Creates the cluster. A later object replaces an earlier one of the same kind, namespace and
    /// name, but nothing replaces the object to reconcile: with another UID, its children would get
    /// other names.
    pub(super) fn new(
        main: Object,
        objects: impl IntoIterator<Item = Object>,
        fixtures: RenderFixtures,
        runner: Arc<dyn FunctionRunner>,
    ) -> Self {
        let cluster = Arc::new(MemoryCluster::new(WritePolicy::Upstream));
        cluster.seed(objects);
        cluster.seed(fixtures.required.into_iter().map(Struct::into_object));
        cluster.seed(fixtures.credentials.into_iter().map(secret));
        cluster.seed([main]);
        serve_documents(&cluster, fixtures.documents);
        let requirements = Arc::new(Recorded::new(ClusterRequirements(cluster.clone())));
        let ports = Ports {
            cluster: cluster.clone(),
            runner: stack::of_reconciler(runner, requirements.clone()),
            requirements: requirements.clone(),
        };
        Self { cluster, requirements, ports }
    }

    /// Returns the result for the main object, and the resources and schemas that functions
    /// required.
    pub(super) fn outcome(&self, main: &ObjectId) -> (Outcome, Vec<Struct>, Vec<Struct>) {
        let (resources, schemas) = output::selectors(&self.requirements.log());
        (output::outcome(self.cluster.journal(), main), resources, schemas)
    }
}

/// Turns a credential into a Secret. A credential without a kind is treated as a Secret.
fn secret(credential: Struct) -> Object {
    let mut secret = credential.into_object();
    if secret.kind().is_empty() {
        secret.set_at(&["apiVersion"], "v1");
        secret.set_at(&["kind"], "Secret");
    }
    secret
}

/// Serves each document for every group and version for which it has the schema of a kind.
fn serve_documents(cluster: &MemoryCluster, documents: Vec<Struct>) {
    for document in documents {
        let document = document.into_object();
        for (group, version) in served_by(&document) {
            cluster.serve_openapi(&group, &version, &document);
        }
    }
}
