//! What every render reads from its request: objects, credentials and OpenAPI documents.

use biplane_cluster::MemoryCluster;
use biplane_model::Object;
use biplane_proto::Struct;

use crate::requirements::served_by;

/// Objects that functions may require, and secrets. A credential that does not say what it is, is a Secret.
pub(super) fn supporting(
    required: Vec<Struct>,
    credentials: Vec<Struct>,
) -> impl Iterator<Item = Object> {
    let credentials = credentials.into_iter().map(|credential| {
        let mut secret = credential.into_object();
        if secret.kind().is_empty() {
            secret.set_at(&["apiVersion"], "v1");
            secret.set_at(&["kind"], "Secret");
        }
        secret
    });
    required.into_iter().map(Struct::into_object).chain(credentials)
}

/// Serves each document for every group and version that it has the schema of a kind of.
pub(super) fn serve_documents(cluster: &MemoryCluster, documents: Vec<Struct>) {
    for document in documents {
        let document = document.into_object();
        for (group, version) in served_by(&document) {
            cluster.serve_openapi(&group, &version, &document);
        }
    }
}
