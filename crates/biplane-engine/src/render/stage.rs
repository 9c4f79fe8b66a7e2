//! The stage on which a reconciler is rendered: a cluster in memory with what the request gives,
//! and a record of what functions ask for.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::{MemoryCluster, WritePolicy};
use biplane_model::{Object, ObjectId};
use biplane_proto::Struct;
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_runner::{Call, Fetching, FunctionRunner, RunError};

use super::output::{self, Happened};
use crate::pipeline::Ports;
use crate::requirements::{ClusterRequirements, Recorded, served_by};

/// What a request gives besides the object to reconcile.
#[derive(Debug, Default)]
pub(super) struct Supporting {
    /// Objects that functions may require.
    pub(super) required: Vec<Struct>,
    /// Secrets that steps name.
    pub(super) credentials: Vec<Struct>,
    /// OpenAPI documents that functions may require schemas of.
    pub(super) documents: Vec<Struct>,
}

/// Where a reconciler is rendered.
pub(super) struct Stage {
    cluster: Arc<MemoryCluster>,
    requirements: Arc<Recorded<ClusterRequirements>>,
    /// The reconciler's ports.
    pub(super) ports: Ports,
}

impl Stage {
    /// Later objects replace earlier ones of the same kind, namespace and name, but nothing
    /// replaces the one to reconcile: another's UID, or none, would give its children other names.
    pub(super) fn set(
        main: Object,
        objects: impl IntoIterator<Item = Object>,
        supporting: Supporting,
        runner: Arc<dyn FunctionRunner>,
    ) -> Self {
        let cluster = Arc::new(MemoryCluster::new(WritePolicy::Upstream));
        cluster.seed(objects);
        cluster.seed(supporting.required.into_iter().map(Struct::into_object));
        cluster.seed(supporting.credentials.into_iter().map(secret));
        cluster.seed([main]);
        serve_documents(&cluster, supporting.documents);
        let requirements = Arc::new(Recorded::new(ClusterRequirements(cluster.clone())));
        let ports = Ports {
            cluster: cluster.clone(),
            runner: Arc::new(Fetching::new(Listed(runner), requirements.clone())),
            requirements: requirements.clone(),
        };
        Self { cluster, requirements, ports }
    }

    /// What happened to the main object and around it, and which resources and schemas were asked for.
    pub(super) fn outcome(&self, main: &ObjectId) -> (Happened, Vec<Struct>, Vec<Struct>) {
        let (resources, schemas) = output::asked(&self.requirements.asked());
        (output::happened(self.cluster.journal(), main), resources, schemas)
    }
}

/// Adds a hint to the error about a function that the request does not list.
struct Listed(Arc<dyn FunctionRunner>);

#[async_trait]
impl FunctionRunner for Listed {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        self.0.run(call, request).await.map_err(|error| match &error {
            RunError::Unlisted(_) => {
                RunError::Other(format!("{error} - is it listed in the render input?"))
            }
            _ => error,
        })
    }
}

/// A credential that does not say what it is, is a Secret.
fn secret(credential: Struct) -> Object {
    let mut secret = credential.into_object();
    if secret.kind().is_empty() {
        secret.set_at(&["apiVersion"], "v1");
        secret.set_at(&["kind"], "Secret");
    }
    secret
}

/// Serves each document for every group and version that it has the schema of a kind of.
fn serve_documents(cluster: &MemoryCluster, documents: Vec<Struct>) {
    for document in documents {
        let document = document.into_object();
        for (group, version) in served_by(&document) {
            cluster.serve_openapi(&group, &version, &document);
        }
    }
}
