//! Fetches the requirements of functions from a cluster.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use biplane_cluster::{Cluster, List, Optional, Query, ReadError, Source};
use biplane_model::pipeline::{RequiredResource, RequiredSchema};
use biplane_model::{Gvk, Object, ObjectId};
use biplane_proto::Struct;
use biplane_proto::function::v1::{
    MatchLabels, Resource, ResourceSelector, Resources, Schema, SchemaSelector,
    resource_selector::Match,
};
use biplane_runner::{FetchError, Requirements};
use tokio::time::Instant;

use crate::reconcile::TIMEOUT;

/// Fetches requirements from a cluster.
#[derive(Clone)]
pub struct ClusterRequirements(pub Arc<dyn Cluster>);

impl std::fmt::Debug for ClusterRequirements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterRequirements")
    }
}

#[async_trait]
impl Requirements for ClusterRequirements {
    async fn resources(
        &self,
        selector: &ResourceSelector,
    ) -> Result<Option<Resources>, FetchError> {
        let gvk = Gvk::of_type(&selector.api_version, &selector.kind);
        let namespace = selector.namespace.as_deref().unwrap_or_default();
        let labels = match &selector.r#match {
            Some(Match::MatchName(name)) => {
                let id = ObjectId::new(gvk, namespace, name);
                let found = self.0.get(&id, Source::Cache, deadline()).await.optional();
                let found = found.map_err(|e| FetchError::Get(e.into()))?;
                return Ok(found.map(|object| Resources { items: vec![resource(object)] }));
            }
            Some(Match::MatchLabels(labels)) => labels.labels.clone(),
            None => std::collections::BTreeMap::new(),
        };
        let query = Query { namespace: namespace.to_owned(), ..Query::labels(labels) };
        let found = self.0.list(&gvk, &query, &List::cached(), deadline()).await;
        let mut found = found.map_err(|e| FetchError::List(e.into()))?.objects;
        found.sort_by_cached_key(|object| format!("{}/{}", object.namespace(), object.name()));
        Ok(Some(Resources { items: found.into_iter().map(resource).collect() }))
    }

    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError> {
        let gvk = match selector.api_version.split('/').count() {
            0..=2 => Gvk::new(&selector.api_version, &selector.kind),
            _ => return Err(FetchError::ApiVersion(selector.api_version.clone())),
        };
        let flat = self.0.schema(&gvk, deadline()).await.map_err(|error| match error {
            ReadError::Malformed(_) => FetchError::References(error.into()),
            error => FetchError::OpenApi(error.into()),
        })?;
        Ok(Schema { openapi_v3: flat.map(Struct::from) })
    }
}

/// Fetching takes no longer than a reconcile may.
fn deadline() -> Instant {
    Instant::now() + TIMEOUT
}

fn resource(object: Object) -> Resource {
    Resource { resource: Some(object.into()), ..Resource::default() }
}

/// Logs all requirements that are fetched through it.
pub struct Recorded<R> {
    inner: R,
    log: Mutex<RequirementsLog>,
}

/// The fetched requirements, in order and with repeats.
#[derive(Clone, Debug, Default)]
pub struct RequirementsLog {
    /// Resources.
    pub resources: Vec<ResourceSelector>,
    /// Schemas.
    pub schemas: Vec<SchemaSelector>,
}

impl<R> Recorded<R> {
    /// Wraps `inner`.
    pub fn new(inner: R) -> Self {
        Self { inner, log: Mutex::default() }
    }

    /// Returns the requirements fetched so far.
    pub fn log(&self) -> RequirementsLog {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<R> std::fmt::Debug for Recorded<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recorded").field(&self.log).finish()
    }
}

#[async_trait]
impl<R: Requirements> Requirements for Recorded<R> {
    async fn resources(
        &self,
        selector: &ResourceSelector,
    ) -> Result<Option<Resources>, FetchError> {
        {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.resources.push(selector.clone());
        }
        self.inner.resources(selector).await
    }

    async fn schema(&self, selector: &SchemaSelector) -> Result<Schema, FetchError> {
        {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.schemas.push(selector.clone());
        }
        self.inner.schema(selector).await
    }
}

/// Returns the selector of a resource that a step requires up front. A name takes precedence over
/// labels.
pub fn selector(required: &RequiredResource) -> ResourceSelector {
    let r#match = match (&required.name, &required.match_labels) {
        (Some(name), _) => Some(Match::MatchName(name.clone())),
        (None, Some(labels)) => Some(Match::MatchLabels(MatchLabels { labels: labels.clone() })),
        (None, None) => None,
    };
    ResourceSelector {
        api_version: required.api_version.clone(),
        kind: required.kind.clone(),
        namespace: required.namespace.clone(),
        r#match,
    }
}

/// Returns the selector of a schema that a step requires up front.
pub fn schema_selector(required: &RequiredSchema) -> SchemaSelector {
    SchemaSelector { api_version: required.api_version.clone(), kind: required.kind.clone() }
}
