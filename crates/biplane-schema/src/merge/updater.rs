//! The core of server-side apply: how a write changes an object and the ownership of its fields.

use std::collections::{BTreeMap, btree_map};

use serde_json::Value;

use super::combine::combine;
use super::compare::{Comparison, compare};
use super::conflict::{Conflict, Conflicts};
use super::managed::{ManagedFields, Manager, Operation, Owned};
use super::reconcile::reconcile;
use super::remove::remove;
use super::set::FieldSet;
use super::typed::{TypeErrors, field_set, validate};
use super::types::TypeRef;
use super::versions::{At, Versions};

/// The reason why a merge was refused.
#[derive(Debug)]
pub(super) enum MergeError {
    Conflicts(Conflicts),
    Types { attempted: String, errors: TypeErrors },
}

fn types(attempted: &str) -> impl Fn(TypeErrors) -> MergeError {
    move |errors| MergeError::Types { attempted: attempted.to_owned(), errors }
}

fn failed_to(what: &str) -> String {
    format!("failed to convert {what}: ")
}

/// Merges objects of one kind, written in one version.
pub(super) struct Updater<'a> {
    pub versions: &'a dyn Versions,
    pub api_version: &'a str,
    /// Fields that writes to this endpoint cannot change, and therefore cannot own.
    pub ignored: &'a FieldSet,
}

impl Updater<'_> {
    /// Updates ownership after an update. Returns the fields that the writer now owns. All others
    /// have lost them.
    pub(super) fn update(
        &self,
        type_ref: &TypeRef,
        live: &Value,
        new: &Value,
        managers: &mut ManagedFields,
    ) -> Result<FieldSet, MergeError> {
        self.reconcile(live, managers);
        let change = self.take_over(type_ref, live, new, managers, None, true)?;
        Ok(change.modified.union(&change.added).recursive_difference(self.ignored))
    }

    /// Applies a configuration. Returns the merged object, or `None` if the live object does not
    /// change.
    pub(super) fn apply(
        &self,
        type_ref: &TypeRef,
        live: &Value,
        config: &Value,
        managers: &mut ManagedFields,
        manager: &Manager,
        force: bool,
    ) -> Result<Option<Value>, MergeError> {
        self.reconcile(live, managers);
        let merged = combine(type_ref, live, config).map_err(types("failed to merge config: "))?;
        let fields = field_set(type_ref, config)
            .map_err(types("failed to get field set: "))?
            .recursive_difference(self.ignored);
        let last = managers.0.get(manager).cloned();
        let time = last.as_ref().and_then(|last| last.time.clone());
        let owned = Owned { fields, api_version: self.api_version.to_owned(), time };
        managers.0.insert(manager.clone(), owned);
        let needs_pruning = |last: &Owned| {
            self.gave_something_up(last, managers, manager) || has_empty_item(config)
        };
        let merged = match last.filter(needs_pruning) {
            Some(last) => self.prune(merged, managers, &last)?,
            None => merged,
        };
        self.take_over(type_ref, live, &merged, managers, Some(manager), force)?;
        Ok((!crate::value::equal(live, &merged)).then_some(merged))
    }

    /// Whether an applier no longer sets a field that it owned. Usually it still sets all of them.
    /// Then there is nothing to prune, which saves most of the work.
    fn gave_something_up(&self, last: &Owned, managers: &ManagedFields, manager: &Manager) -> bool {
        let now = managers.0.get(manager).map(|owned| &owned.fields);
        last.api_version != self.api_version || !now.is_some_and(|now| last.fields.is_subset(now))
    }

    /// Converts ownership to the current schemas. Versions that no longer exist lose theirs later.
    fn reconcile(&self, live: &Value, managers: &mut ManagedFields) {
        managers.0.retain(|_, owned| {
            let Some(at) = self.versions.at(live, &owned.api_version) else { return false };
            owned.fields = reconcile(&at.type_ref, &owned.fields);
            true
        });
    }

    /// Converts an object. Duplicates are forgiven in the version of a request only. Returns `None`
    /// if the kind has no such version.
    fn convert<'v>(
        &self,
        object: &'v Value,
        version: &str,
        attempted: &str,
    ) -> Result<Option<At<'v>>, MergeError> {
        let Some(at) = self.versions.at(object, version) else { return Ok(None) };
        if object.get("apiVersion").and_then(Value::as_str) != Some(version) {
            validate(&at.type_ref, &at.object, false).map_err(types(attempted))?;
        }
        Ok(Some(at))
    }

    /// Takes the fields that differ between two objects from all other managers.
    fn take_over(
        &self,
        type_ref: &TypeRef,
        old: &Value,
        new: &Value,
        managers: &mut ManagedFields,
        writer: Option<&Manager>,
        force: bool,
    ) -> Result<Comparison, MergeError> {
        let failed = types("failed to compare objects: ");
        let own = compare(type_ref, old, new).map_err(&failed)?;
        let filtered = own.without(self.ignored);
        let mut by_version: BTreeMap<String, Comparison> =
            BTreeMap::from([(self.api_version.to_owned(), filtered)]);
        let mut conflicts = Vec::new();
        let mut lost: BTreeMap<Manager, FieldSet> = BTreeMap::new();
        for (manager, owned) in &managers.0 {
            if Some(manager) == writer {
                continue;
            }
            let change = match by_version.entry(owned.api_version.clone()) {
                btree_map::Entry::Occupied(entry) => entry.into_mut(),
                btree_map::Entry::Vacant(entry) => {
                    let version = &owned.api_version;
                    let (Some(old), Some(new)) = (
                        self.convert(old, version, &failed_to("old object"))?,
                        self.convert(new, version, &failed_to("new object"))?,
                    ) else {
                        continue;
                    };
                    let change =
                        compare(&old.type_ref, &old.object, &new.object).map_err(&failed)?;
                    entry.insert(change)
                }
            };
            let taken = owned.fields.intersection(&change.modified.union(&change.added));
            if !force {
                let paths = taken.paths().into_iter();
                conflicts.extend(paths.map(|path| Conflict { manager: manager.clone(), path }));
            }
            lost.insert(manager.clone(), taken.union(&change.removed));
        }
        if !conflicts.is_empty() {
            return Err(MergeError::Conflicts(Conflicts::new(conflicts)));
        }
        for (manager, lost) in lost {
            if let Some(owned) = managers.0.get_mut(&manager) {
                owned.fields = owned.fields.difference(&lost);
            }
        }
        managers.0.retain(|_, owned| !owned.fields.is_empty());
        Ok(own)
    }

    /// Removes fields that the manager applied last time but not this time, and that no other
    /// manager owns.
    fn prune(
        &self,
        merged: Value,
        managers: &ManagedFields,
        last: &Owned,
    ) -> Result<Value, MergeError> {
        let to_last = "failed to prune fields: failed to convert merged object to last applied \
                       version: ";
        let Some(at_last) = self.convert(&merged, &last.api_version, to_last)? else {
            return Ok(merged);
        };
        let At { object, type_ref } = at_last;
        let last_fields = last.fields.with_named_fields(Some(&type_ref));
        let pruned = remove(&type_ref, &object, &last_fields);
        let pruned = self.add_back_owned(&object, pruned, &last.api_version, managers)?;
        let Some(pruned) = self.versions.at(&pruned, &last.api_version) else {
            return Ok(object.into_owned());
        };
        let sets = types("failed to create field set from pruned object: ");
        let pruned_set = field_set(&type_ref, &pruned.object).map_err(&sets)?;
        let merged_set = field_set(&type_ref, &object).map_err(&sets)?;
        let gone = merged_set
            .with_named_fields(Some(&type_ref))
            .difference(&pruned_set.with_named_fields(Some(&type_ref)))
            .intersection(&last_fields);
        let pruned = remove(&type_ref, &object, &gone);
        Ok(match self.versions.at(&pruned, self.api_version) {
            Some(at) => at.object.into_owned(),
            None => pruned,
        })
    }

    /// Restores fields that others, or the new configuration, own.
    fn add_back_owned(
        &self,
        merged: &Value,
        pruned: Value,
        pruned_version: &str,
        managers: &ManagedFields,
    ) -> Result<Value, MergeError> {
        let mut managed: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for owned in managers.0.values() {
            managed.entry(&owned.api_version).or_default().extend(&owned.fields);
        }
        // Start with the version in which fields were removed: others may need what it restores.
        let mut order: Vec<&str> = managed.keys().copied().collect();
        order.sort_by_key(|version| *version != pruned_version);
        let mut merged = merged.clone();
        let mut pruned = pruned;
        for version in order {
            let failed = |what: &str| {
                let what = failed_to(&format!("{what} object at version {version}"));
                format!("failed to prune fields: failed add back owned items: {what}")
            };
            let (Some(at_merged), Some(at_pruned)) = (
                self.convert(&merged, version, &failed("merged"))?,
                self.convert(&pruned, version, &failed("pruned"))?,
            ) else {
                continue;
            };
            let type_ref = Some(&at_merged.type_ref);
            let sets = types("failed to create field set from merged object: ");
            let merged_set = field_set(&at_merged.type_ref, &at_merged.object).map_err(&sets)?;
            let pruned_set = field_set(&at_pruned.type_ref, &at_pruned.object).map_err(&sets)?;
            let mut kept = pruned_set.with_named_fields(type_ref);
            if let Some(managed) = managed.get(version) {
                kept.extend(&managed.with_named_fields(type_ref));
            }
            let gone = merged_set.with_named_fields(type_ref).difference(&kept);
            let next = remove(&at_merged.type_ref, &at_merged.object, &gone);
            merged = at_merged.object.into_owned();
            pruned = next;
        }
        Ok(pruned)
    }
}

/// Whether a list has an empty item. If its key has a default, then nothing below the item is owned,
/// so pruning removes the key and with it the item, although the applier still sets it.
pub(super) fn has_empty_item(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| {
            item.as_object().is_some_and(serde_json::Map::is_empty) || has_empty_item(item)
        }),
        Value::Object(fields) => fields.values().any(has_empty_item),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Removes fields that cannot be owned, because clients do not control them.
pub(super) fn strip(fields: &FieldSet) -> FieldSet {
    use super::path::Path;
    static NEVER: std::sync::LazyLock<FieldSet> = std::sync::LazyLock::new(|| {
        let names = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let top = ["apiVersion", "kind", "metadata"].map(|name| Path::fields(&[name]));
        FieldSet::of(top.into_iter().chain(names.map(|name| Path::fields(&["metadata", name]))))
    });
    fields.difference(&NEVER)
}

/// The manager for an operation of a client.
pub(super) fn manager(
    name: &str,
    operation: Operation,
    api_version: &str,
    subresource: &str,
) -> Manager {
    Manager {
        name: if name.is_empty() { "unknown" } else { name }.to_owned(),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.to_owned(),
        },
        subresource: subresource.to_owned(),
    }
}
