//! The field manager: apply and update as an API server endpoint performs them.

use biplane_model::{Gvk, Object};
use serde_json::{Map, Value};

use super::conflict::Conflicts;
use super::managed::{ManagedFields, ManagedFieldsError, Manager, Operation, Owned};
use super::set::FieldSet;
use super::typed::{TypeErrors, validate};
use super::types::TypeRef;
use super::updater::{MergeError, Updater, manager, strip};
use super::versions::Versions;

/// The manager of fields that were written before the first apply.
pub const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The number of updaters that an object keeps by name.
const MOST_UPDATERS: usize = 10;

/// The reason why an apply was refused.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that would change, and `force` is not set.
    #[error(transparent)]
    Conflicts(#[from] Conflicts),
    /// The request is invalid, whatever the live object is.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the live object does not fit its schema.
    #[error("{attempted}{errors}")]
    Types {
        /// The action that failed.
        attempted: String,
        /// The problem.
        errors: TypeErrors,
    },
    /// The managed fields of the live object are invalid.
    #[error("failed to decode managed fields: {0}")]
    ManagedFields(#[from] ManagedFieldsError),
}

impl From<MergeError> for ApplyError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Conflicts(conflicts) => Self::Conflicts(conflicts),
            MergeError::Types { attempted, errors } => Self::Types { attempted, errors },
        }
    }
}

/// Maintains `metadata.managedFields` of the objects that one endpoint writes.
#[derive(Clone, Copy)]
pub struct FieldManager<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// The kind, in the version of the endpoint.
    pub gvk: &'a Gvk,
    /// A subresource such as `status`. Empty for the object itself.
    pub subresource: &'a str,
    /// Fields that cannot be changed through the endpoint.
    pub ignored: &'a FieldSet,
    /// The time of the request, in the format `2006-01-02T15:04:05Z`.
    pub now: &'a str,
}

impl std::fmt::Debug for FieldManager<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gvk, subresource, .. } = self;
        f.debug_struct("FieldManager").field("gvk", gvk).field("subresource", subresource).finish()
    }
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object with its managed fields.
    pub object: Object,
    /// Whether anything except the managed fields may have changed. If so, apply defaults next.
    pub changed: bool,
}

impl FieldManager<'_> {
    /// Applies a configuration to the live object, or creates the object.
    pub fn apply(
        &self,
        live: Option<&Object>,
        config: &Object,
        name: &str,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let empty = self.empty();
        let live = live.unwrap_or(&empty);
        let mut managers = ManagedFields::decode(live)?;
        if !config.has_gvk(self.gvk) {
            return Err(ApplyError::BadRequest(format!("invalid object type: {}", config.gvk())));
        }
        let live_value = live.to_value();
        let api_version = self.gvk.api_version();
        if managers.0.is_empty() {
            let type_ref = self.type_of(&live_value, &api_version)?;
            let change = (&type_ref, &empty.to_value(), &live_value);
            self.track(change, &mut managers, BEFORE_FIRST_APPLY)?;
        }
        if config.at(&["metadata", "managedFields"]).is_some_and(|fields| !fields.is_null()) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
        }
        let config_value = config.to_value();
        let type_ref = self.type_of(&live_value, &api_version)?;
        let name_of = |what: &str, object: &Object| {
            format!("failed to create typed {what} object ({}): ", described(object))
        };
        validate(&type_ref, &config_value, false)
            .map_err(|errors| ApplyError::Types { attempted: name_of("patch", config), errors })?;
        validate(&type_ref, &live_value, true)
            .map_err(|errors| ApplyError::Types { attempted: name_of("live", live), errors })?;
        let applier = manager(name, Operation::Apply, &api_version, self.subresource);
        let merged = self.updater(&api_version).apply(
            &type_ref,
            &live_value,
            &config_value,
            &mut managers,
            &applier,
            force,
        )?;
        strip_entry(&mut managers, &applier);
        let changed = merged.is_some();
        if changed && let Some(owned) = managers.0.get_mut(&applier) {
            owned.time = Some(self.now.to_owned());
        }
        let mut object = match merged {
            Some(Value::Object(map)) => Object::from(map),
            Some(_) | None => live.clone(),
        };
        managers.write(&mut object);
        Ok(Applied { object, changed })
    }

    /// Returns the new object with its managed fields after any write except an apply.
    ///
    /// The client may have changed the managed fields in the new object.
    pub fn update(&self, live: Option<&Object>, new: &Object, name: &str) -> Object {
        let empty = self.empty();
        let creating = live.is_none();
        let live = live.unwrap_or(&empty);
        let mut managers = self.managers_of(live, new);
        let mut object = new.clone();
        object.remove_at(&["metadata", "managedFields"]);
        if managers.0.is_empty() && !creating {
            // The object has not been applied yet, and was not tracked from the start.
            return object;
        }
        let (live_value, new_value) = (live.to_value(), object.to_value());
        let tracked = self.type_of(&new_value, &self.gvk.api_version()).and_then(|type_ref| {
            let unfit = |errors| ApplyError::Types { attempted: String::new(), errors };
            validate(&type_ref, &new_value, true).map_err(unfit)?;
            validate(&type_ref, &live_value, true).map_err(unfit)?;
            self.track((&type_ref, &live_value, &new_value), &mut managers, name)
        });
        // Ignore invalid managed fields.
        if tracked.is_ok() {
            managers.write(&mut object);
        }
        object
    }

    fn managers_of(&self, live: &Object, new: &Object) -> ManagedFields {
        let of_live = || ManagedFields::decode(live).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        let entries = new.at(&["metadata", "managedFields"]).and_then(Value::as_array);
        let is_reset = entries.is_some_and(|entries| match entries.as_slice() {
            [] => true,
            [only] => only.as_object().is_some_and(Map::is_empty),
            _ => false,
        });
        if is_reset {
            return ManagedFields::default();
        }
        match ManagedFields::decode(new) {
            Ok(managers) if !managers.0.is_empty() => managers,
            _ => of_live(),
        }
    }

    /// Records the changes of a write as owned by an updater.
    fn track(
        &self,
        (type_ref, old, new): (&TypeRef, &Value, &Value),
        managers: &mut ManagedFields,
        name: &str,
    ) -> Result<(), ApplyError> {
        let api_version = self.gvk.api_version();
        let fields = self.updater(&api_version).update(type_ref, old, new, managers)?;
        let fields = strip(&fields);
        if !fields.is_empty() {
            let updater = manager(name, Operation::Update, &api_version, self.subresource);
            let time = Some(self.now.to_owned());
            let entry = managers.0.entry(updater).or_insert_with(|| Owned {
                fields: FieldSet::default(),
                api_version: String::new(),
                time: None,
            });
            entry.fields.extend(&fields);
            entry.api_version = api_version;
            entry.time = time;
        }
        managers.cap(MOST_UPDATERS);
        Ok(())
    }

    fn updater<'b>(&'b self, api_version: &'b str) -> Updater<'b> {
        Updater { versions: self.versions, api_version, ignored: self.ignored }
    }

    fn type_of(&self, object: &Value, api_version: &str) -> Result<TypeRef, ApplyError> {
        let at = self.versions.at(object, api_version);
        at.map(|at| at.type_ref).ok_or_else(|| {
            ApplyError::BadRequest(format!("no corresponding type for {}", self.gvk))
        })
    }

    fn empty(&self) -> Object {
        let mut map = Map::new();
        map.insert("apiVersion".into(), self.gvk.api_version().into());
        map.insert("kind".into(), self.gvk.kind.clone().into());
        map.into()
    }
}

fn described(object: &Object) -> String {
    format!("{}/{}; {}", object.namespace(), object.name(), object.gvk())
}

fn strip_entry(managers: &mut ManagedFields, applier: &Manager) {
    let Some(owned) = managers.0.get_mut(applier) else { return };
    owned.fields = strip(&owned.fields);
    if owned.fields.is_empty() {
        managers.0.remove(applier);
    }
}
