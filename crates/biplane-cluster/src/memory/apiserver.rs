//! Writes with the behaviour of a real API server: versions and generations, field managers,
//! schemas, the status subresource, finalizers, and immediate garbage collection.

mod answers;
mod garbage;
mod json_patch;
mod kinds;
mod metadata;
mod sources;

use biplane_go::fmt::quote;
use biplane_model::{Gvk, Object, ObjectId, Value, names};
use biplane_schema::merge::{ApplyError, FieldManager, FieldSet, Path};
use biplane_schema::structural::FieldError;

use super::{Entry, Store, Verb};
use crate::cluster::{Apply, Delete, Patch, Propagation, ReadError, WatchEvent, WriteError};
pub use kinds::RegisterError;
pub(super) use kinds::{Kind, Kinds};
pub use sources::{Counted, Sources};

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Main,
    Status,
}

impl Endpoint {
    fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// The state of the server besides its objects.
#[derive(Debug)]
pub(super) struct Server {
    pub kinds: Kinds,
    sources: Box<dyn Sources>,
    /// The field manager of writes that do not name one.
    manager: String,
    revision: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self::new("biplane", Box::new(Counted::default()))
    }
}

impl Server {
    pub(super) fn new(manager: &str, sources: Box<dyn Sources>) -> Self {
        Self { kinds: Kinds::default(), sources, manager: manager.to_owned(), revision: 0 }
    }

    pub(super) fn write_as(&mut self, manager: &str) {
        manager.clone_into(&mut self.manager);
    }

    fn next_revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }
}

/// Adds an object unchanged, except for the fields that every stored object has.
pub(super) fn seed(store: &mut Store, mut object: Object) {
    if object.uid().is_empty() {
        object.set_meta("uid", &store.server.sources.uid());
    }
    if object.str_at(&["metadata", "creationTimestamp"]).is_empty() {
        object.set_meta("creationTimestamp", &store.server.sources.now());
    }
    if store.server.kinds.of(&object).counts_generations && object.generation() == 0 {
        object.set_at(&["metadata", "generation"], 1);
    }
    object.set_meta("resourceVersion", &store.server.next_revision());
    store.server.kinds.learn(&object);
    store.objects.insert(object.id(), object);
}

pub(super) fn create(store: &mut Store, object: Object) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of(&object);
    if !object.resource_version().is_empty() {
        let text = "resourceVersion should not be set on objects to be created";
        return Err(WriteError::BadRequest(text.into()));
    }
    let mut new = kind.coerced(object);
    kind.default(&mut new);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        new.remove_at(&["metadata", field]);
    }
    let manager = store.server.manager.clone();
    let new = field_manager(store, &kind, Endpoint::Main, |fm| fm.update(None, &new, &manager));
    let stored = insert(store, &kind, new)?;
    Ok(journalled(store, Verb::Create, stored.clone(), stored))
}

/// Stores a new object.
fn insert(store: &mut Store, kind: &Kind, mut new: Object) -> Result<Object, WriteError> {
    new.set_meta("creationTimestamp", &store.server.sources.now());
    new.set_meta("uid", &store.server.sources.uid());
    if new.name().is_empty() && !new.generate_name().is_empty() {
        let name = names::generated(new.generate_name(), store.server.sources.random());
        new.set_meta("name", &name);
    }
    metadata::check_namespace(kind.namespaced, &new)?;
    if kind.has_status(&new.gvk().version) {
        new.make_mut().remove("status");
    }
    if kind.counts_generations {
        new.set_at(&["metadata", "generation"], 1);
    }
    let mut errors = metadata::validate(&new);
    errors.extend(kind.validate(&new, None));
    refuse(&new, &errors)?;
    let mut new = kind.coerced(new);
    let id = new.id();
    if let Some(present) = store.objects.get(&id) {
        return Err(answers::already_exists(kind, present));
    }
    new.set_meta("resourceVersion", &store.server.next_revision());
    keep(store, &id, &new);
    Ok(new)
}

pub(super) fn update(
    store: &mut Store,
    object: &Object,
    endpoint: Endpoint,
) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of(object);
    let live = live(store, &kind, &object.id(), endpoint)?;
    let mut new = kind.coerced(object.clone());
    kind.default(&mut new);
    let manager = store.server.manager.clone();
    let new = field_manager(store, &kind, endpoint, |fm| fm.update(Some(&live), &new, &manager));
    if !new.uid().is_empty() && new.uid() != live.uid() {
        return Err(answers::other_uid(&kind, &live, new.uid()));
    }
    let stored = replace(store, &kind, &live, new, endpoint)?;
    let verb = match endpoint {
        Endpoint::Main => Verb::Update,
        Endpoint::Status => Verb::UpdateStatus,
    };
    Ok(journalled(store, verb, stored.clone(), stored))
}

pub(super) fn apply(
    store: &mut Store,
    intent: &Object,
    how: &Apply,
    endpoint: Endpoint,
) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of(intent);
    let id = intent.id();
    let present = store.objects.get(&id).cloned();
    if endpoint == Endpoint::Status {
        live(store, &kind, &id, endpoint)?;
    }
    let applied = field_manager(store, &kind, endpoint, |fm| {
        fm.apply(present.as_ref(), intent, &how.manager, how.force)
    })
    .map_err(|error| refused_apply(&error))?;
    let mut new = applied.object;
    if applied.changed {
        // Nulls that a merge leaves behind are kept. The schema refuses them if it does not allow
        // null.
        metadata::tidy(&mut new);
        kind.default(&mut new);
    }
    let stored = match present {
        Some(live) => replace(store, &kind, &live, new, endpoint)?,
        None if !new.uid().is_empty() => {
            return Err(answers::uid_of_nothing(&kind, &new));
        }
        None => insert(store, &kind, new)?,
    };
    let verb = match endpoint {
        Endpoint::Main => Verb::Apply,
        Endpoint::Status => Verb::ApplyStatus,
    };
    Ok(journalled(store, verb, intent.clone(), stored))
}

fn refused_apply(error: &ApplyError) -> WriteError {
    let text = error.to_string();
    match error {
        ApplyError::Conflicts(_) => WriteError::Conflict(text),
        ApplyError::BadRequest(_) => WriteError::BadRequest(text),
        // The server reports an internal error here, but only a changed configuration can help.
        ApplyError::Types { .. } | ApplyError::ManagedFields(_) => WriteError::Invalid(text),
    }
}

pub(super) fn patch(store: &mut Store, id: &ObjectId, patch: &Patch) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
    let live = live(store, &kind, id, Endpoint::Main)?;
    let patched = match patch {
        Patch::Json(operations) => json_patch::json(&live.to_value(), operations)?,
        Patch::Merge(changes) => json_patch::merge(&live.to_value(), changes),
    };
    let Some(patched) = Object::from_value(patched) else {
        return Err(WriteError::BadRequest("the patched document is not an object".into()));
    };
    if patched.name() != live.name() {
        return Err(answers::other_name(&live, patched.name()));
    }
    let mut new = kind.coerced(patched);
    kind.default(&mut new);
    let manager = store.server.manager.clone();
    let new =
        field_manager(store, &kind, Endpoint::Main, |fm| fm.update(Some(&live), &new, &manager));
    let stored = replace(store, &kind, &live, new, Endpoint::Main)?;
    Ok(journalled(store, Verb::Patch, stored.clone(), stored))
}

pub(super) fn delete(store: &mut Store, id: &ObjectId, how: &Delete) -> Result<(), WriteError> {
    let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
    let live = live(store, &kind, id, Endpoint::Main)?;
    if !how.uid.is_empty() && how.uid != live.uid() {
        return Err(answers::uid_precondition(&live, &how.uid));
    }
    journalled(store, Verb::Delete, live.clone(), live);
    start_deletion(store, id, how.propagation);
    garbage::collect(store);
    Ok(())
}

/// Removes an object, or marks it as being deleted if it has finalizers.
fn start_deletion(store: &mut Store, id: &ObjectId, propagation: Propagation) {
    let Some(live) = store.objects.get(id).cloned() else { return };
    let mut finalizers = metadata::finalizers(&live);
    finalizers.retain(|f| f != garbage::ORPHAN && f != garbage::FOREGROUND);
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(garbage::FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(garbage::ORPHAN.into()),
    }
    if finalizers.is_empty() {
        garbage::remove(store, id);
        return;
    }
    let mut doomed = live.clone();
    doomed.set_at(&["metadata", "finalizers"], finalizers);
    if !live.is_being_deleted() {
        doomed.set_meta("deletionTimestamp", &store.server.sources.now());
        if live.generation() > 0 {
            doomed.set_at(&["metadata", "generation"], live.generation() + 1);
        }
    }
    doomed.set_at(&["metadata", "deletionGracePeriodSeconds"], 0);
    if doomed != live {
        doomed.set_meta("resourceVersion", &store.server.next_revision());
        keep(store, id, &doomed);
    }
}

/// Stores the new state of an object, unless nothing changed. Removes the object if it only waited
/// for its last finalizer.
fn replace(
    store: &mut Store,
    kind: &Kind,
    live: &Object,
    mut new: Object,
    endpoint: Endpoint,
) -> Result<Object, WriteError> {
    match new.resource_version() {
        "" => return Err(answers::version_missing(kind, live)),
        version if version != live.resource_version() => {
            return Err(answers::modified(kind, live));
        }
        _ => {}
    }
    metadata::check_namespace(kind.namespaced, &new)?;
    let new = match endpoint {
        Endpoint::Main => {
            if kind.has_status(&new.gvk().version) {
                restore(&mut new, live, "status");
            }
            metadata::keep_system_fields(&mut new, live);
            if kind.counts_generations && metadata::differs_outside(&new, live) {
                new.set_at(&["metadata", "generation"], live.generation() + 1);
            }
            new
        }
        Endpoint::Status => {
            let mut kept = live.clone();
            restore(&mut kept, &new, "status");
            match new.at(&["metadata", "managedFields"]).cloned() {
                Some(managers) => kept.set_at(&["metadata", "managedFields"], managers),
                None => {
                    kept.remove_at(&["metadata", "managedFields"]);
                }
            }
            kept
        }
    };
    let mut errors = metadata::validate_update(&new, live);
    errors.extend(match endpoint {
        Endpoint::Main => kind.validate(&new, Some(live)),
        Endpoint::Status => kind.validate_status(&new, live),
    });
    refuse(&new, &errors)?;
    let mut new = kind.coerced(new);
    metadata::keep_times_if_nothing_else_changed(&mut new, live);
    let id = live.id();
    if live.is_being_deleted() && metadata::finalizers(&new).is_empty() {
        garbage::remove(store, &id);
        garbage::collect(store);
        return Ok(new);
    }
    if new == *live {
        return Ok(new);
    }
    new.set_meta("resourceVersion", &store.server.next_revision());
    keep(store, &id, &new);
    garbage::collect(store);
    Ok(new)
}

/// Copies one top-level field from another object.
fn restore(object: &mut Object, from: &Object, field: &str) {
    match from.get(field) {
        Some(value) => object.make_mut().insert(field.to_owned(), value.clone()),
        None if object.contains_key(field) => object.make_mut().remove(field),
        None => None,
    };
}

fn live(
    store: &Store,
    kind: &Kind,
    id: &ObjectId,
    endpoint: Endpoint,
) -> Result<Object, WriteError> {
    if endpoint == Endpoint::Status && !kind.has_status(&id.gvk.version) {
        return Err(WriteError::NotFound(answers::not_found(kind, &id.name)));
    }
    let object = store.objects.get(id).cloned();
    object.ok_or_else(|| WriteError::NotFound(answers::not_found(kind, &id.name)))
}

/// The not-found message for an object.
pub(super) fn not_found(store: &Store, id: &ObjectId) -> String {
    let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
    answers::not_found(&kind, &id.name)
}

/// Whether a kind is namespaced, by its definition or by the stored objects.
pub(super) fn is_namespaced(store: &Store, gvk: &Gvk) -> Result<bool, ReadError> {
    let stored = || {
        let id = store.objects.keys().find(|id| id.gvk == *gvk)?;
        Some(!id.namespace.is_empty())
    };
    store.server.kinds.namespaced(gvk).or_else(stored).ok_or_else(|| {
        let (kind, version) = (quote(&gvk.kind), quote(&gvk.api_version()));
        ReadError::UnknownKind(format!("no matches for kind {kind} in version {version}"))
    })
}

fn refuse(object: &Object, errors: &[FieldError]) -> Result<(), WriteError> {
    if errors.is_empty() { Ok(()) } else { Err(answers::invalid(object, errors)) }
}

/// Stores an object and notifies watchers.
fn keep(store: &mut Store, id: &ObjectId, object: &Object) {
    store.server.kinds.learn(object);
    let before = store.objects.insert(id.clone(), object.clone());
    let event = if before.is_some() { WatchEvent::Modified } else { WatchEvent::Added };
    store.notify(&id.gvk, object, event);
}

/// Writes the journal and returns the response.
fn journalled(store: &mut Store, verb: Verb, entry: Object, answer: Object) -> Object {
    store.journal.push(Entry::Write { verb, object: entry });
    answer
}

/// Runs a closure with the field manager of an endpoint.
fn field_manager<T>(
    store: &Store,
    kind: &Kind,
    endpoint: Endpoint,
    run: impl FnOnce(&FieldManager<'_>) -> T,
) -> T {
    let ignored = match endpoint {
        Endpoint::Main if kind.has_status(&kind.gvk.version) => {
            FieldSet::of([Path::fields(&["status"])])
        }
        Endpoint::Main => FieldSet::default(),
        Endpoint::Status => FieldSet::of([Path::fields(&["metadata"]), Path::fields(&["spec"])]),
    };
    let now = store.server.sources.now();
    run(&FieldManager {
        versions: kind,
        gvk: &kind.gvk,
        subresource: endpoint.subresource(),
        ignored: &ignored,
        now: &now,
    })
}

/// Filters out null.
fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
