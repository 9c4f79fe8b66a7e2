//! The `Cluster` trait: the operations that a reconciler can perform on a cluster, their options
//! and their errors.

use std::collections::BTreeMap;

use async_trait::async_trait;
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::sync::mpsc::UnboundedReceiver;

/// Where a read is served from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The watch cache, which may be slightly out of date.
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

/// Options of a server-side apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apply {
    /// The field manager.
    pub manager: String,
    /// Take fields over from other managers instead of failing.
    pub force: bool,
}

impl Apply {
    /// Applies as `manager` and takes over fields that other managers own.
    pub fn forced(manager: impl Into<String>) -> Self {
        Self { manager: manager.into(), force: true }
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
    /// Delete only the object with this UID; empty for any.
    pub uid: String,
}

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Expected behaviour.
    Normal,
    /// A problem that a user should look at.
    Warning,
}

impl EventType {
    /// The spelling of the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A Kubernetes event about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object.
    pub regarding: ObjectId,
    /// The severity.
    pub r#type: EventType,
    /// A machine-readable reason.
    pub reason: String,
    /// A human-readable message.
    pub message: String,
    /// Additional annotations on the event.
    pub annotations: BTreeMap<String, String>,
}

/// A change reported by a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// The object is new, or existed when the watch began.
    Added(Object),
    /// The object changed.
    Modified(Object),
    /// The object was deleted. This is its last state.
    Deleted(Object),
}

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// Reading is not permitted.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster could not be reached. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

impl ReadError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The object changed since it was read, or another manager owns a field.
    #[error("{0}")]
    Conflict(String),
    /// An object of that name already exists.
    #[error("{0}")]
    AlreadyExists(String),
    /// The object violates its schema or an API rule. A retry cannot succeed.
    #[error("{0}")]
    Invalid(String),
    /// The API server does not understand the request.
    #[error("{0}")]
    BadRequest(String),
    /// The cluster does not know the kind.
    #[error("{0}")]
    UnknownKind(String),
    /// Writing is not permitted.
    #[error("{0}")]
    Forbidden(String),
    /// The cluster could not be reached. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

impl WriteError {
    /// Whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// Turns a not-found error into `Ok(None)`.
pub trait Optional<T, E> {
    /// Returns `Ok(None)` when the object does not exist.
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

/// The result of an access review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the access is allowed.
    pub allowed: bool,
    /// The resource in the API: `plural.group/version`, or `plural/version` for the core group.
    pub resource: String,
    /// The name of the current user.
    pub user: String,
}

/// Access to a cluster. Every reconciler uses the cluster through this trait.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Returns the object, or [`ReadError::NotFound`].
    async fn get(&self, id: &ObjectId, source: Source) -> Result<Object, ReadError>;
    /// Returns the objects of a kind that match the query, ordered by namespace and name.
    async fn list(&self, gvk: &Gvk, query: &ListQuery) -> Result<Vec<Object>, ReadError>;
    /// Sends an `Added` for each matching object, then every change, until the receiver is dropped.
    async fn watch(
        &self,
        gvk: &Gvk,
        query: &ListQuery,
    ) -> Result<UnboundedReceiver<WatchEvent>, ReadError>;
    /// Creates an object and returns the stored object.
    async fn create(&self, object: Object) -> Result<Object, WriteError>;
    /// Replaces an object, except its status, and returns the stored object.
    async fn update(&self, object: &Object) -> Result<Object, WriteError>;
    /// Replaces the status of an object and returns the stored object.
    async fn update_status(&self, object: &Object) -> Result<Object, WriteError>;
    /// Server-side applies a fully specified intent and returns the stored object.
    async fn apply(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError>;
    /// Server-side applies a fully specified intent to the status and returns the stored object.
    async fn apply_status(&self, intent: &Object, how: &Apply) -> Result<Object, WriteError>;
    /// Patches an object and returns the stored object.
    async fn patch(&self, id: &ObjectId, patch: &Patch) -> Result<Object, WriteError>;
    /// Deletes an object.
    async fn delete(&self, id: &ObjectId, how: &Delete) -> Result<(), WriteError>;
    /// Records an event. This never fails, because a lost event must not fail a reconcile.
    async fn record(&self, event: Event);
    /// Whether a kind is namespaced.
    async fn is_namespaced(&self, gvk: &Gvk) -> Result<bool, ReadError>;
    /// Returns the OpenAPI v3 document of a group and version, if the cluster serves one.
    async fn openapi(&self, group: &str, version: &str) -> Result<Option<Object>, ReadError>;
    /// Whether the current user may perform `verb` on objects of a kind in a namespace.
    async fn access(&self, gvk: &Gvk, namespace: &str, verb: &str) -> Result<Access, ReadError>;
}
