//! The environment of a rendered reconciler: an in-memory cluster with the objects of the request,
//! and a log of the requirements of functions.

use std::sync::Arc;

use biplane_cluster::memory::RenderClient;
use biplane_model::{Object, ObjectId};
use biplane_proto::Struct;
use biplane_runner::{FunctionRunner, stack};
use biplane_schema::openapi;

use super::Settings;
use super::output::{self, Outcome};
use crate::context::Context;
use crate::requirements::{ClusterRequirements, Recorded};

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
    cluster: Arc<RenderClient>,
    requirements: Arc<Recorded<ClusterRequirements>>,
    /// What the reconciler works with.
    pub(super) context: Context,
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
        settings: &Settings,
    ) -> Self {
        let cluster = Arc::new(RenderClient::new());
        cluster.seed(objects);
        cluster.seed(fixtures.required.into_iter().map(Struct::into_object));
        cluster.seed(fixtures.credentials.into_iter().map(secret));
        cluster.seed([main]);
        serve_documents(&cluster, fixtures.documents);
        let requirements = Arc::new(Recorded::new(ClusterRequirements(cluster.clone())));
        let context = Context {
            cluster: cluster.clone(),
            events: cluster.clone(),
            runner: stack::of_inspected_reconciler(
                runner,
                requirements.clone(),
                settings.inspection.as_ref(),
            ),
            requirements: requirements.clone(),
            clock: settings.clock.clone(),
            ids: settings.ids.clone(),
        };
        Self { cluster, requirements, context }
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
        secret.set_at_or_ignore(&["apiVersion"], "v1");
        secret.set_at_or_ignore(&["kind"], "Secret");
    }
    secret
}

/// Serves each document for every group and version for which it has the schema of a kind.
fn serve_documents(cluster: &RenderClient, documents: Vec<Struct>) {
    for document in documents {
        let document = document.into_object();
        for (group, version) in openapi::served_by(&document) {
            cluster.serve_openapi(&group, &version, &document);
        }
    }
}
