//! Explains refused writes: whether the control plane may control objects of a kind.

use biplane_cluster::{Cluster, ReadError};
use biplane_go::fmt::quote;
use biplane_model::Gvk;
use tokio::time::Instant;

/// The verbs that a control plane needs.
const VERBS: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Asks the cluster whether the control plane may control objects of a kind.
#[derive(Clone, Debug)]
pub struct Authorizer {
    /// The user name of the control plane, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
}

impl Authorizer {
    /// Returns why the control plane may not control objects of a kind in a namespace, if it may
    /// not. A question that cannot be answered counts as a refusal.
    pub(super) async fn refusal(
        &self,
        cluster: &dyn Cluster,
        gvk: &Gvk,
        namespace: &str,
        by: Instant,
    ) -> Option<String> {
        let ask = |verb| cluster.access(gvk, namespace, verb, by);
        let all = match ask("*").await {
            Ok(access) if access.allowed => return None,
            Ok(access) => access,
            Err(error) => return Some(unanswered(gvk, &error)),
        };
        let mut refused = Vec::new();
        for verb in VERBS {
            match ask(verb).await {
                Ok(access) if access.allowed => {}
                Ok(_) => refused.push(verb),
                Err(error) => return Some(unanswered(gvk, &error)),
            }
        }
        if refused.is_empty() {
            return None;
        }
        let place = match namespace {
            "" => String::new(),
            namespace => format!(" in namespace {namespace}"),
        };
        let (user, verbs, resource) = (&self.user, refused.join(", "), &all.resource);
        Some(format!("{user} is not allowed to [{verbs}] resource {resource}{place}"))
    }
}

fn unanswered(gvk: &Gvk, error: &ReadError) -> String {
    match error {
        ReadError::UnknownKind(_) => {
            let kind = format!("{}, Kind={}", gvk.api_version(), gvk.kind);
            format!("no resource found for {}", quote(&kind))
        }
        error => format!("cannot create self access review: {error}"),
    }
}
