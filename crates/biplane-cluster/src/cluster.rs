//! The port: what a reconciler may ask of a cluster, and how a cluster says no.

use std::collections::BTreeMap;

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::sync::mpsc::UnboundedReceiver;

/// Where a read is answered from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From what watches have told us; may be a moment old.
    Cache,
    /// From the API server.
    Live,
}

/// Which objects of a kind to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Empty for all namespaces.
    pub namespace: String,
    /// Labels that must all be present with these values.
    pub labels: BTreeMap<String, String>,
}

/// How to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// The field manager.
    pub manager: String,
    /// Take fields over from other managers instead of failing.
    pub force: bool,
}

impl Apply {
    /// As `manager`, taking fields over from others.
    pub fn forced(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: true }
    }
}

/// A change to an object that is not an apply.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 6902.
    Json(Vec<Value>),
    /// RFC 7386.
    Merge(Value),
}

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They go later.
    #[default]
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// What happens to dependents.
    pub propagation: Propagation,
    /// Delete only the object with this UID; empty for any.
    pub uid: String,
}

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Things go as they should.
    Normal,
    /// Someone should look.
    Warning,
}

impl EventType {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something to tell people about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub regarding: ObjectId,
    /// How much it matters.
    pub r#type: EventType,
    /// For programs.
    pub reason: String,
    /// For people.
    pub message: String,
    /// Extra data on the event.
    pub annotations: BTreeMap<String, String>,
}

/// A change that a watch saw.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// The object is new, or was there when the watch began.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object is gone; this is its last state.
    Deleted(Object),
}

/// Why a read was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// We may not read it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster could not be asked; worth trying again.
    #[error("{0}")]
    Unavailable(String),
}

impl ReadError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// Why a write was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// There is no such object.
    #[error("{0}")]
    NotFound(String),
    /// The object changed since it was read, or another manager owns a field.
    #[error("{0}")]
    Conflict(String),
    /// An object of that name exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// The object breaks its schema or a rule of the API; trying again cannot help.
    #[error("{0}")]
    Invalid(String),
    /// The request makes no sense to the API server.
    #[error("{0}")]
    BadRequest(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// We may not write it.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster could not be asked; worth trying again.
    #[error("{0}")]
    Unavailable(String),
}

impl WriteError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// `Ok(None)` instead of an error for what does not exist.
pub trait Optional<T, E> {
    /// Turns a refusal for absence into `None`.
    fn optional(self) -> Result<Option<T>, E>;
}

impl<T> Optional<T, ReadError> for Result<T, ReadError> {
    fn optional(self) -> Result<Option<T>, ReadError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(ReadError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<T> Optional<T, WriteError> for Result<T, WriteError> {
    fn optional(self) -> Result<Option<T>, WriteError> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(WriteError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What we may do to a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether we may.
    pub allowed: bool,
    /// The kind's place in the API: `plural.group/version`, or `plural/version` for the core group.
    pub resource: String,
    /// Who we are.
    pub user: String,
}

/// The port through which every reconciler sees a cluster.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// The object, or [`ReadError::NotFound`].
    async fn get(&self, id: &ObjectId, source: Source) -> Result<Object, ReadError>;
    /// The objects of a kind that match, ordered by namespace and name.
    async fn list(&self, gvk: &Gvk, query: &ListQuery) -> Result<Vec<Object>, ReadError>;
    /// First an `Added` for each object that matches, then every change, until the receiver is dropped.
    async fn watch(
        &self,
        gvk: &Gvk,
        query: &ListQuery,
    ) -> Result<UnboundedReceiver<WatchEvent>, ReadError>;
    /// Creates an object and returns it as stored.
    async fn create(&self, object: Object) -> Result<Object, WriteError>;
    /// Replaces an object (but not its status) and returns it as stored.
    async fn update(&self, object: &Object) -> Result<Object, WriteError>;
    /// Replaces an object's status and returns the object as stored.
    async fn update_status(&self, object: &Object) -> Result<Object, WriteError>;
    /// Server-side applies a fully specified intent and returns the object as stored.
    async fn apply(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError>;
    /// Server-side applies a fully specified intent to the status and returns the object as stored.
    async fn apply_status(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError>;
    /// Changes an object and returns it as stored.
    async fn patch(&self, id: &ObjectId, patch: &Patch) -> Result<Object, WriteError>;
    /// Deletes an object.
    async fn delete(&self, id: &ObjectId, how: &Delete) -> Result<(), WriteError>;
    /// Tells people something. Never fails: an event is not worth a reconcile.
    async fn record(&self, event: Event);
    /// Whether objects of a kind live in namespaces.
    async fn is_namespaced(&self, gvk: &Gvk) -> Result<bool, ReadError>;
    /// The OpenAPI v3 document of a group and version, if the cluster serves it.
    async fn openapi(&self, group: &str, version: &str) -> Result<Option<Object>, ReadError>;
    /// Whether we may do `verb` to objects of a kind in a namespace.
    async fn access(&self, gvk: &Gvk, namespace: &str, verb: &str) -> Result<Access, ReadError>;
}
