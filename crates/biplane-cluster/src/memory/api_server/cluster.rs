//! The API server as a [`Cluster`].

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId};
use tokio::time::Instant;

use super::{ApiServer, Store, answers, apply, create, delete, is_namespaced, patch, update};
use crate::cluster::{
    Access, Applied, Apply, Cluster, Delete, Deleted, List, Page, Part, Patch, Query, Source,
    Subscribe, Write,
};
use crate::error::{ReadError, WriteError};
use crate::watch::Subscription;

const LATE: &str = "context deadline exceeded";

impl ApiServer {
    fn reads<T>(
        &self,
        by: Instant,
        run: impl FnOnce(&mut Store) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if by <= Instant::now() {
            return Err(ReadError::TimedOut(LATE.into()));
        }
        self.read(run)
    }

    fn writes<T>(
        &self,
        dry_run: bool,
        by: Instant,
        run: impl FnOnce(&mut Store) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        if by <= Instant::now() {
            return Err(WriteError::TimedOut(LATE.into()));
        }
        self.write(|store| if dry_run { store.rehearse(run) } else { run(store) })
    }
}

/// The page of a list that begins after the object at `next`, given as `namespace/name`.
fn page(mut objects: Vec<Object>, how: &List, version: String) -> Page {
    let place = |object: &Object| format!("{}/{}", object.namespace(), object.name());
    if let Some((namespace, name)) = how.next.split_once('/') {
        objects.retain(|o| (o.namespace(), o.name()) > (namespace, name));
    }
    let mut next = String::new();
    if how.limit > 0 && objects.len() > how.limit {
        objects.truncate(how.limit);
        next = objects.last().map(place).unwrap_or_default();
    }
    Page { objects, version, next }
}

#[async_trait]
impl Cluster for ApiServer {
    async fn get(&self, id: &ObjectId, _source: Source, by: Instant) -> Result<Object, ReadError> {
        self.reads(by, |store| {
            store.get(id).ok_or_else(|| {
                let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
                ReadError::NotFound(answers::not_found(&kind, &id.name))
            })
        })
    }

    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError> {
        self.reads(by, |store| {
            let version = store.server.revision.to_string();
            Ok(page(store.list(gvk, query, how.form), how, version))
        })
    }

    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        _by: Instant,
    ) -> Result<Subscription, ReadError> {
        self.0.subscribe(gvk, query, how)
    }

    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError> {
        self.writes(how.dry_run, by, |store| create(store, object, how))
    }

    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.writes(how.dry_run, by, |store| update(store, object, part, how))
    }

    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        changes: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError> {
        self.writes(how.dry_run, by, |store| patch(store, id, part, changes, how))
    }

    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        _known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError> {
        self.writes(how.write.dry_run, by, |store| apply(store, intent, part, how))
    }

    async fn delete(
        &self,
        id: &ObjectId,
        how: &Delete,
        by: Instant,
    ) -> Result<Deleted, WriteError> {
        self.writes(how.dry_run, by, |store| delete(store, id, how))
    }

    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError> {
        self.reads(by, |store| is_namespaced(store, gvk))
    }

    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError> {
        self.reads(by, |store| store.schema(gvk))
    }

    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError> {
        self.reads(by, |store| {
            let kind = store.server.kinds.of_gvk(gvk, !namespace.is_empty());
            let resource = format!("{}/{}", kind.resource(), gvk.version);
            let refused = &store.server.refused;
            let allowed = if verb == "*" { refused.is_empty() } else { !refused.contains(verb) };
            Ok(Access { allowed, resource })
        })
    }
}
