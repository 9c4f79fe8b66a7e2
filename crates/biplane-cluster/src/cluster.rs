//! The `Cluster` trait: the operations that a reconciler can perform on a cluster, and their
//! options and answers.
//!
//! Every call has a deadline, `by`. A cluster gives up at that time at the latest.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::time::Instant;

use crate::error::{ReadError, WriteError};
pub use crate::form::Form;
use crate::watch::Subscription;

/// Where a read is served from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// From a watch if one is running, else from the API server. The answer is never older than
    /// what this process has read or written before.
    #[default]
    Cache,
    /// From the API server.
    Live,
}

/// Which objects of a kind to list or watch. The default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only this namespace. Empty for all namespaces.
    pub namespace: String,
    /// Only the object with this name. Empty for all names.
    pub name: String,
    /// Labels that must all be present with these values.
    pub labels: BTreeMap<String, String>,
    /// Labels that must all be present, with any value.
    pub labelled: BTreeSet<String>,
}

impl Query {
    /// Objects that have all of these labels.
    pub fn labels(labels: BTreeMap<String, String>) -> Self {
        Self { labels, ..Self::default() }
    }

    /// Whether an object matches.
    pub fn matches(&self, object: &Object) -> bool {
        let has = |label: &String| object.at(&["metadata", "labels", label]).is_some();
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && (self.name.is_empty() || object.name() == self.name)
            && (self.labels.is_empty()
                || object.has_labels(self.labels.iter().map(|(key, value)| (&**key, &**value))))
            && self.labelled.iter().all(has)
    }
}

/// Options of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Where it is served from.
    pub source: Source,
    /// How much of each object is returned.
    pub form: Form,
    /// The largest number of objects to return. Zero for all.
    pub limit: usize,
    /// Where to continue: [`Page::next`] of the page before. Empty to begin.
    pub next: String,
}

impl List {
    /// All objects, as [`Source::Cache`] has them.
    pub fn cached() -> Self {
        Self::default()
    }

    /// All objects, as the API server has them now.
    pub fn live() -> Self {
        Self { source: Source::Live, ..Self::default() }
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The objects, ordered by namespace and name.
    pub objects: Vec<Object>,
    /// The version of the list. Empty if the cluster has no versions.
    pub version: String,
    /// Where the next page continues. Empty if this is the last page.
    pub next: String,
}

/// Options of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// How much of each object is reported.
    pub form: Form,
    /// How many changed objects wait for a slow reader. With more, the reader is told that
    /// something was missed, and then everything anew.
    pub capacity: usize,
}

impl Default for Subscribe {
    fn default() -> Self {
        Self { form: Form::Whole, capacity: 1024 }
    }
}

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Everything but the status, if the kind has a status subresource.
    Main,
    /// The status subresource.
    Status,
}

impl Part {
    /// The name of the subresource. Empty for the object itself.
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// What must be true of the stored object, or the write is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// Its UID. Empty for any.
    pub uid: String,
    /// Its version. Empty for any.
    pub resource_version: String,
}

impl Precondition {
    /// It is the object that was read, and nobody has changed it since.
    pub fn unchanged(object: &Object) -> Self {
        Self {
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        }
    }

    /// It is the object that was read, perhaps changed.
    pub fn same(object: &Object) -> Self {
        Self { uid: object.uid().to_owned(), ..Self::default() }
    }
}

/// Options of every write but a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    /// The field manager.
    pub manager: String,
    /// Check and answer, but store nothing.
    pub dry_run: bool,
    /// What must be true of the stored object.
    pub only_if: Precondition,
}

impl Write {
    /// Writes as `manager`.
    pub fn by(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), ..Self::default() }
    }

    /// Writes only if the precondition holds.
    #[must_use]
    pub fn only_if(self, only_if: Precondition) -> Self {
        Self { only_if, ..self }
    }
}

/// Options of a server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apply {
    /// The options that all writes have.
    pub write: Write,
    /// Take fields over from other managers instead of failing.
    pub force: bool,
}

impl Apply {
    /// Applies as `manager` and takes over fields that other managers own.
    pub fn forced(manager: impl Into<String>) -> Self {
        Self { write: Write::by(manager), force: true }
    }

    /// Applies only if the precondition holds.
    #[must_use]
    pub fn only_if(self, only_if: Precondition) -> Self {
        Self { write: self.write.only_if(only_if), ..self }
    }
}

/// The answer to an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object as it is stored.
    pub object: Object,
    /// What the apply did.
    pub effect: Effect,
}

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The object was created.
    Created,
    /// The object was changed.
    Changed,
    /// The request was sent and changed nothing.
    Unchanged,
    /// The request was not sent, because it would have changed nothing.
    Skipped,
}

impl Effect {
    /// Whether the stored object is another one than before.
    pub fn is_news(self) -> bool {
        matches!(self, Self::Created | Self::Changed)
    }
}

/// A change to an object other than an apply.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// A JSON patch (RFC 6902).
    Json(Vec<Value>),
    /// A JSON merge patch (RFC 7386).
    Merge(Value),
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// Dependents are deleted after the object.
    #[default]
    Background,
    /// Dependents are deleted before the object.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// Options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// What happens to the dependents.
    pub propagation: Propagation,
    /// Check and answer, but delete nothing.
    pub dry_run: bool,
    /// What must be true of the stored object.
    pub only_if: Precondition,
}

impl Delete {
    /// Deletes the object, after or before its dependents or without them.
    pub fn with(propagation: Propagation) -> Self {
        Self { propagation, ..Self::default() }
    }
}

/// The answer to a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object does not exist any more.
    Gone,
    /// The object exists until its last finalizer is removed.
    Terminating,
}

/// The result of an access review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the access is allowed.
    pub allowed: bool,
    /// The resource in the API: `plural.group/version`, or `plural/version` for the core group.
    pub resource: String,
}

/// Access to a cluster. Every reconciler uses the cluster through this trait.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Returns the object, or [`ReadError::NotFound`].
    async fn get(&self, id: &ObjectId, source: Source, by: Instant) -> Result<Object, ReadError>;
    /// Returns the objects of a kind that match the query.
    async fn list(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &List,
        by: Instant,
    ) -> Result<Page, ReadError>;
    /// Reports the objects of a kind that match the query, then every change of them, until the
    /// subscription is dropped. The deadline is that of the first list.
    async fn subscribe(
        &self,
        gvk: &Gvk,
        query: &Query,
        how: &Subscribe,
        by: Instant,
    ) -> Result<Subscription, ReadError>;
    /// Creates an object and returns the stored object.
    async fn create(&self, object: Object, how: &Write, by: Instant) -> Result<Object, WriteError>;
    /// Replaces a part of an object and returns the stored object.
    async fn update(
        &self,
        object: &Object,
        part: Part,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError>;
    /// Patches a part of an object and returns the stored object.
    async fn patch(
        &self,
        id: &ObjectId,
        part: Part,
        patch: &Patch,
        how: &Write,
        by: Instant,
    ) -> Result<Object, WriteError>;
    /// Server-side applies a fully specified intent to a part of an object.
    ///
    /// `known` is the object as the caller has just read it. With it, the cluster may find out that
    /// the apply would change nothing and skip it.
    async fn apply(
        &self,
        intent: &Object,
        part: Part,
        known: Option<&Object>,
        how: &Apply,
        by: Instant,
    ) -> Result<Applied, WriteError>;
    /// Deletes an object.
    async fn delete(&self, id: &ObjectId, how: &Delete, by: Instant)
    -> Result<Deleted, WriteError>;
    /// Whether a kind is namespaced.
    async fn is_namespaced(&self, gvk: &Gvk, by: Instant) -> Result<bool, ReadError>;
    /// Returns the OpenAPI v3 schema of a kind with all references inlined, if the cluster has one.
    async fn schema(&self, gvk: &Gvk, by: Instant) -> Result<Option<Object>, ReadError>;
    /// Whether the current user may perform `verb` on objects of a kind in a namespace.
    async fn access(
        &self,
        gvk: &Gvk,
        namespace: &str,
        verb: &str,
        by: Instant,
    ) -> Result<Access, ReadError>;
}
