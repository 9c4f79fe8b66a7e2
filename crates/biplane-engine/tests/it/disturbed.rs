//! A cluster whose reads can be made to fail or to be out of date.

use std::sync::Arc;

use async_trait::async_trait;
use biplane_cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, List, Page, Part, Patch, Query, ReadError,
    Source, Subscribe, Subscription, Write, WriteError,
};
use biplane_model::{Gvk, Object, ObjectId};
use tokio::time::Instant;

/// Decides about reads of a kind from a source: the error that they end with, if any. A list that
/// finds nothing is empty.
pub(crate) type Reads = Box<dyn Fn(&Gvk, Source) -> Option<ReadError> + Send + Sync>;

pub(crate) struct Disturbed {
    pub(crate) inner: Arc<dyn Cluster>,
    pub(crate) reads: Reads,
}

impl Disturbed {
    /// Objects of this kind are not in the cache.
    pub(crate) fn uncached(inner: Arc<dyn Cluster>, kind: &'static str) -> Arc<Self> {
        let reads: Reads = Box::new(move |gvk, source| {
            let missing = gvk.kind == kind && source == Source::Cache;
            missing.then(|| ReadError::NotFound("not in the cache".into()))
        });
        Arc::new(Self { inner, reads })
    }
}

#[async_trait]
impl Cluster for Disturbed {
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError> {
        match (self.reads)(&id.gvk, source) {
            Some(error) => Err(error),
            None => self.inner.get(id, source, by).await,
        }
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        match (self.reads)(gvk, how.source) {
            Some(ReadError::NotFound(_)) => Ok(Page::default()),
            Some(error) => Err(error),
            None => self.inner.list(gvk, query, how, by).await,
        }
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        self.inner.apply(intent, part, known, how, by).await
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError> {
        self.inner.subscribe(gvk, query, how, by).await
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        self.inner.create(object, how, by).await
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.inner.update(object, part, how, by).await
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.inner.patch(id, part, patch, how, by).await
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        self.inner.delete(id, how, by).await
    }

    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        self.inner.is_namespaced(gvk, by).await
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        self.inner.schema(gvk, by).await
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        self.inner.access(gvk, namespace, verb, by).await
    }
}
