//! An in-memory cluster with the behaviour of a real API server: versions and generations, field
//! managers, schemas, the status subresource, finalizers, and immediate garbage collection.

mod answers;
mod cluster;
mod definitions;
mod garbage;
mod json_patch;
mod kinds;
mod metadata;
mod sources;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use biplane_go::fmt::quote;
use biplane_model::{Gvk, Object, ObjectId, Value, names};
use biplane_schema::merge::{ApplyError, FieldManager, FieldSet, Path};
use biplane_schema::structural::FieldError;

use super::journal::Verb;
use super::store::{self, Memory, Presentation};
use crate::cluster::{
    Applied, Apply, Delete, Deleted, Effect, Part, Patch, Precondition, Propagation, Write,
};
use crate::error::{ReadError, WriteError};
use crate::events::{Event, Events};
pub use kinds::RegisterError;
use kinds::{Kind, Kinds};
pub use sources::{Counted, Sources};

type Store = store::Store<Server>;

/// A cluster like a real API server.
#[derive(Debug)]
pub struct ApiServer(Memory<Server>);

/// What the server knows besides its objects.
#[derive(Clone, Debug)]
pub struct Server {
    kinds: Kinds,
    sources: Arc<dyn Sources>,
    revision: u64,
    /// Objects that are being deleted.
    terminating: BTreeSet<ObjectId>,
    /// UIDs of removed objects whose dependents have not been processed yet.
    gone: Vec<String>,
    /// Verbs that access reviews refuse.
    refused: BTreeSet<String>,
}

impl Server {
    fn next_revision(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }
}

/// An object is the same in all versions of its kind.
impl Presentation for Server {
    fn kind(gvk: &Gvk) -> Cow<'_, Gvk> {
        let (group, kind) = (gvk.group.clone(), gvk.kind.clone());
        Cow::Owned(Gvk { group, version: String::new(), kind })
    }

    fn is_of(stored: &Gvk, wanted: &Gvk) -> bool {
        stored.kind == wanted.kind && stored.group == wanted.group
    }

    fn convert(&self, object: &Object, gvk: &Gvk) -> Object {
        if gvk.version.is_empty() || object.has_gvk(gvk) {
            return object.clone();
        }
        self.kinds.converted(object, gvk)
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new(Counted::default())
    }
}

impl Deref for ApiServer {
    type Target = Memory<Server>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Events for ApiServer {
    fn record(&self, event: Event) {
        self.0.record(event);
    }
}

impl ApiServer {
    /// Creates an empty cluster. `sources` provides its time and UIDs.
    pub fn new(sources: impl Sources + 'static) -> Self {
        Self(Memory::new(Server {
            kinds: Kinds::default(),
            sources: Arc::new(sources),
            revision: 0,
            terminating: BTreeSet::new(),
            gone: Vec::new(),
            refused: BTreeSet::new(),
        }))
    }

    /// Lets access reviews refuse these verbs. Calls are not checked.
    pub fn refuse<'a>(&self, verbs: impl IntoIterator<Item = &'a str>) {
        self.lock().server.refused.extend(verbs.into_iter().map(str::to_owned));
    }

    /// Serves the kind that a CustomResourceDefinition defines, with its schemas. Storing such a
    /// definition has the same effect.
    pub fn register(&self, definition: &Object) -> Result<(), RegisterError> {
        self.lock().server.kinds.register(definition)
    }

    /// Adds objects unchanged and without a journal entry. A later object replaces an earlier one
    /// of the same kind, namespace and name.
    pub fn seed(&self, objects: impl IntoIterator<Item = Object>) {
        let mut store = self.lock();
        for object in objects {
            seed(&mut store, object);
        }
    }
}

/// Adds an object unchanged, except for the fields that every stored object has.
fn seed(store: &mut Store, mut object: Object) {
    if object.uid().is_empty() {
        let uid = store.server.sources.uid_of(&object);
        object.set_meta("uid", &uid);
    }
    if object.str_at(&["metadata", "creationTimestamp"]).is_empty() {
        object.set_meta("creationTimestamp", &store.server.sources.now());
    }
    if store.server.kinds.of(&object).counts_generations && object.generation() == 0 {
        object.set_at_or_ignore(&["metadata", "generation"], 1);
    }
    object.set_meta("resourceVersion", &store.server.next_revision());
    keep(store, &object);
}

fn create(store: &mut Store, object: Object, how: &Write) -> Result<Object, WriteError> {
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
    let new = field_manager(store, &kind, Part::Main, |fm| fm.update(None, &new, &how.manager));
    let stored = insert(store, &kind, new)?;
    store.note(Verb::Create, stored.clone());
    Ok(stored)
}

/// Stores a new object.
fn insert(store: &mut Store, kind: &Kind, mut new: Object) -> Result<Object, WriteError> {
    new.set_meta("creationTimestamp", &store.server.sources.now());
    if new.name().is_empty() && !new.generate_name().is_empty() {
        let name = names::generated(new.generate_name(), store.server.sources.random());
        new.set_meta("name", &name);
    }
    new.remove_at(&["metadata", "uid"]);
    let uid = store.server.sources.uid_of(&new);
    new.set_meta("uid", &uid);
    metadata::check_namespace(kind.namespaced, &new)?;
    if kind.has_status(&new.gvk().version) {
        new.make_mut().remove("status");
    }
    if kind.counts_generations {
        new.set_at_or_ignore(&["metadata", "generation"], 1);
    }
    let mut errors = metadata::validate(&new);
    errors.extend(kind.validate(&new, None));
    refuse(&new, &errors)?;
    let mut new = kind.coerced(new);
    let id = new.id();
    if let Some(present) = store.get(&id) {
        return Err(answers::already_exists(kind, &present));
    }
    new.set_meta("resourceVersion", &store.server.next_revision());
    let new = keep(store, &new);
    definitions::accept(store, &new);
    Ok(new)
}

fn update(
    store: &mut Store,
    object: &Object,
    part: Part,
    how: &Write,
) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of(object);
    let live = live(store, &kind, &object.id(), part)?;
    let mut object = object.clone();
    require(&mut object, &how.only_if);
    let mut new = kind.coerced(object);
    kind.default(&mut new);
    let new = field_manager(store, &kind, part, |fm| fm.update(Some(&live), &new, &how.manager));
    if !new.uid().is_empty() && new.uid() != live.uid() {
        return Err(answers::other_uid(&kind, &live, new.uid()));
    }
    let stored = replace(store, &kind, &live, new, part)?;
    let verb = match part {
        Part::Main => Verb::Update,
        Part::Status => Verb::UpdateStatus,
    };
    store.note(verb, stored.clone());
    Ok(stored)
}

/// Puts a precondition into an object, where a server looks for it.
fn require(object: &mut Object, only_if: &Precondition) {
    for (field, value) in [("uid", &only_if.uid), ("resourceVersion", &only_if.resource_version)] {
        if !value.is_empty() {
            object.set_meta(field, value);
        }
    }
}

fn apply(
    store: &mut Store,
    intent: &Object,
    part: Part,
    how: &Apply,
) -> Result<Applied, WriteError> {
    let kind = store.server.kinds.of(intent);
    let id = intent.id();
    let present = store.get(&id);
    if part == Part::Status {
        live(store, &kind, &id, part)?;
    }
    let mut required = intent.clone();
    require(&mut required, &how.write.only_if);
    let applied = field_manager(store, &kind, part, |fm| {
        fm.apply(present.as_ref(), &required, &how.write.manager, how.force)
    })
    .map_err(|error| refused_apply(&error))?;
    let mut new = applied.object;
    if applied.changed {
        // Nulls that a merge leaves behind are kept. The schema refuses them if it does not allow
        // null.
        metadata::tidy(&mut new);
        kind.default(&mut new);
    }
    let (object, effect) = match present {
        Some(live) => {
            if !new.uid().is_empty() && new.uid() != live.uid() {
                return Err(answers::other_uid(&kind, &live, new.uid()));
            }
            let object = replace(store, &kind, &live, new, part)?;
            let same = object.resource_version() == live.resource_version();
            (object, if same { Effect::Unchanged } else { Effect::Changed })
        }
        None if !new.uid().is_empty() => return Err(answers::uid_of_nothing(&kind, &new)),
        None => (insert(store, &kind, new)?, Effect::Created),
    };
    let verb = match part {
        Part::Main => Verb::Apply,
        Part::Status => Verb::ApplyStatus,
    };
    store.note(verb, intent.clone());
    Ok(Applied { object, effect })
}

fn refused_apply(error: &ApplyError) -> WriteError {
    let text = error.to_string();
    match error {
        ApplyError::Conflicts(_) => WriteError::Conflict(text),
        ApplyError::BadRequest(_) => WriteError::BadRequest(text),
        ApplyError::Types { .. } | ApplyError::ManagedFields(_) => WriteError::Malformed(text),
    }
}

fn patch(
    store: &mut Store,
    id: &ObjectId,
    part: Part,
    patch: &Patch,
    how: &Write,
) -> Result<Object, WriteError> {
    let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
    let live = live(store, &kind, id, part)?;
    let patched = match patch {
        Patch::Json(operations) => json_patch::json(&live.to_value(), operations)?,
        Patch::Merge(changes) => json_patch::merge(&live.to_value(), changes),
    };
    let Some(mut patched) = Object::from_value(patched) else {
        return Err(WriteError::BadRequest("the patched document is not an object".into()));
    };
    if patched.name() != live.name() {
        return Err(answers::other_name(&live, patched.name()));
    }
    require(&mut patched, &how.only_if);
    let mut new = kind.coerced(patched);
    kind.default(&mut new);
    let new = field_manager(store, &kind, part, |fm| fm.update(Some(&live), &new, &how.manager));
    if !new.uid().is_empty() && new.uid() != live.uid() {
        return Err(answers::other_uid(&kind, &live, new.uid()));
    }
    let stored = replace(store, &kind, &live, new, part)?;
    let verb = match part {
        Part::Main => Verb::Patch,
        Part::Status => Verb::PatchStatus,
    };
    store.note(verb, stored.clone());
    Ok(stored)
}

fn delete(store: &mut Store, id: &ObjectId, how: &Delete) -> Result<Deleted, WriteError> {
    let kind = store.server.kinds.of_gvk(&id.gvk, !id.namespace.is_empty());
    let live = live(store, &kind, id, Part::Main)?;
    let Precondition { uid, resource_version } = &how.only_if;
    if !uid.is_empty() && uid != live.uid() {
        return Err(answers::uid_precondition(&live, uid));
    }
    if !resource_version.is_empty() && resource_version != live.resource_version() {
        return Err(answers::version_precondition(&live, resource_version));
    }
    store.note(Verb::Delete, live);
    start_deletion(store, id, how.propagation);
    garbage::collect(store);
    Ok(if store.get(id).is_some() { Deleted::Terminating } else { Deleted::Gone })
}

/// Removes an object, or marks it as being deleted if it has finalizers.
fn start_deletion(store: &mut Store, id: &ObjectId, propagation: Propagation) {
    let Some(live) = store.get(id) else { return };
    let mut finalizers = metadata::finalizers(&live);
    finalizers.retain(|f| f != garbage::ORPHAN && f != garbage::FOREGROUND);
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(garbage::FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(garbage::ORPHAN.into()),
    }
    if kinds::is_definition(&live) && !finalizers.iter().any(|f| f == definitions::CLEANUP) {
        finalizers.push(definitions::CLEANUP.into());
    }
    if finalizers.is_empty() {
        garbage::remove(store, id);
        return;
    }
    let mut doomed = live.clone();
    doomed.set_at_or_ignore(&["metadata", "finalizers"], finalizers);
    if !live.is_being_deleted() {
        doomed.set_meta("deletionTimestamp", &store.server.sources.now());
        if live.generation() > 0 {
            doomed.set_at_or_ignore(&["metadata", "generation"], live.generation() + 1);
        }
    }
    doomed.set_at_or_ignore(&["metadata", "deletionGracePeriodSeconds"], 0);
    if doomed != live {
        doomed.set_meta("resourceVersion", &store.server.next_revision());
        keep(store, &doomed);
    }
}

/// Stores the new state of an object, unless nothing changed. Removes the object if it only waited
/// for its last finalizer.
fn replace(
    store: &mut Store,
    kind: &Kind,
    live: &Object,
    mut new: Object,
    part: Part,
) -> Result<Object, WriteError> {
    match new.resource_version() {
        "" => return Err(answers::version_missing(kind, live)),
        version if version != live.resource_version() => {
            return Err(answers::modified(kind, live));
        }
        _ => {}
    }
    metadata::check_namespace(kind.namespaced, &new)?;
    let new = match part {
        Part::Main => {
            if kind.has_status(&new.gvk().version) {
                restore(&mut new, live, "status");
            }
            metadata::keep_system_fields(&mut new, live);
            if kind.counts_generations && metadata::differs_outside(&new, live) {
                new.set_at_or_ignore(&["metadata", "generation"], live.generation() + 1);
            }
            new
        }
        Part::Status => {
            let mut kept = live.clone();
            restore(&mut kept, &new, "status");
            match new.at(&["metadata", "managedFields"]).cloned() {
                Some(managers) => kept.set_at_or_ignore(&["metadata", "managedFields"], managers),
                None => {
                    kept.remove_at(&["metadata", "managedFields"]);
                }
            }
            kept
        }
    };
    let mut errors = metadata::validate_update(&new, live);
    errors.extend(match part {
        Part::Main => kind.validate(&new, Some(live)),
        Part::Status => kind.validate_status(&new, live),
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
    let new = keep(store, &new);
    definitions::accept(store, &new);
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

fn live(store: &Store, kind: &Kind, id: &ObjectId, part: Part) -> Result<Object, WriteError> {
    if part == Part::Status && !kind.has_status(&id.gvk.version) {
        return Err(WriteError::NotFound(answers::not_found(kind, &id.name)));
    }
    store.get(id).ok_or_else(|| WriteError::NotFound(answers::not_found(kind, &id.name)))
}

/// Whether a kind is namespaced, by its definition or by the stored objects.
fn is_namespaced(store: &Store, gvk: &Gvk) -> Result<bool, ReadError> {
    let stored = || {
        let id = store.objects.of(|stored| Server::is_of(stored, gvk)).next()?.0;
        Some(!id.namespace.is_empty())
    };
    store.server.kinds.namespaced(gvk).or_else(stored).ok_or_else(|| {
        let (kind, version) = (quote(&gvk.kind), quote(&gvk.api_version()));
        ReadError::UnknownKind(format!(
            "failed to get restmapping: no matches for kind {kind} in version {version}"
        ))
    })
}

fn refuse(object: &Object, errors: &[FieldError]) -> Result<(), WriteError> {
    if errors.is_empty() { Ok(()) } else { Err(answers::invalid(object, errors)) }
}

/// Stores an object and tells subscribers. Returns it as it is read, in the version in which it was
/// written.
fn keep(store: &mut Store, object: &Object) -> Object {
    store.server.kinds.learn(object);
    let stored = store.server.kinds.stored(object);
    let key = Server::key(object.id());
    if object.is_being_deleted() {
        store.server.terminating.insert(key.clone());
    } else {
        store.server.terminating.remove(&key);
    }
    store.put(key, &stored);
    store.server.convert(&stored, &object.gvk())
}

/// Runs a closure with the field manager of an endpoint.
fn field_manager<T>(
    store: &Store,
    kind: &Kind,
    part: Part,
    run: impl FnOnce(&FieldManager<'_>) -> T,
) -> T {
    let ignored = match part {
        Part::Main if kind.has_status(&kind.gvk.version) => {
            FieldSet::of([Path::fields(&["status"])])
        }
        Part::Main => FieldSet::default(),
        Part::Status => FieldSet::of([Path::fields(&["metadata"]), Path::fields(&["spec"])]),
    };
    let now = store.server.sources.now();
    run(&FieldManager {
        versions: kind,
        gvk: &kind.gvk,
        subresource: part.subresource(),
        ignored: &ignored,
        now: &now,
    })
}

/// Filters out null.
fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
