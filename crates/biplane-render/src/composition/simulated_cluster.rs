//! A simulated cluster for renders until stable: all objects, and which composite resource composes
//! each of them.
//!
//! Composed resources are applied as in an API server. Resources that a pipeline no longer returns
//! are deleted; fields written by others, such as a status, are kept. There are no other owners
//! here, so objects have neither field managers nor resource versions.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use biplane_manifest::defaults;
use biplane_model::labels::{COMPOSITE, RESOURCE_NAME};
use biplane_model::layout::Layout;
use biplane_model::object::overlay;
use biplane_model::owner::controller_of;
use biplane_model::{Object, ObjectId, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::CompositeOutput;
use biplane_schema::merge::{BEFORE_FIRST_APPLY, ManagedFields};

use super::nested::Nested;
use crate::{apply, print};

/// The maximum nesting depth of composite resources. Deeper nesting is treated as an error.
pub(super) const DEEPEST: usize = 10;

/// Objects by their id.
pub(super) type Objects = BTreeMap<ObjectId, Object>;

/// All objects of the simulated cluster.
#[derive(Debug)]
pub(super) struct SimulatedCluster<'a> {
    nested: &'a Nested,
    root: ObjectId,
    objects: Objects,
    /// The field managers of each object.
    managers: BTreeMap<ObjectId, Value>,
    /// The composite resource that composes each composed resource.
    composers: BTreeMap<ObjectId, ObjectId>,
}

impl<'a> SimulatedCluster<'a> {
    /// A cluster with the composite resource and the observed resources.
    pub(super) fn new(root: &Object, observed: &[Object], nested: &'a Nested) -> Self {
        let mut cluster = Self {
            nested,
            root: root.id(),
            objects: BTreeMap::from([(root.id(), root.clone())]),
            managers: BTreeMap::new(),
            composers: BTreeMap::new(),
        };
        let others = observed.iter().filter(|object| object.id() != root.id());
        for object in others {
            // An observed resource may belong to another observed one. The engine rejects resources
            // whose owner does not exist.
            let composer = controller_of(object).and_then(|owner| {
                let is_owner = |other: &&Object| {
                    other.kind() == owner.kind
                        && other.name() == owner.name
                        && other.api_version() == owner.api_version
                        && ["", object.namespace()].contains(&other.namespace())
                        && (other.uid().is_empty() || other.uid() == owner.uid)
                };
                observed.iter().find(is_owner).map(Object::id)
            });
            let composer = composer.unwrap_or_else(|| cluster.root.clone());
            cluster.composers.insert(object.id(), composer);
            cluster.keep(object.clone());
        }
        cluster
    }

    /// All objects, without times.
    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<&Object> {
        self.objects.get(id)
    }

    /// The composed resources of a composite resource, in the order in which they are printed.
    pub(super) fn composed(&self, composer: &ObjectId) -> Vec<Object> {
        let mut composed: Vec<_> = self
            .objects
            .iter()
            .filter(|(id, _)| self.composers.get(*id) == Some(composer))
            .map(|(_, object)| object.clone())
            .collect();
        print::sort(&mut composed);
        composed
    }

    /// All objects except one.
    pub(super) fn others(&self, id: &ObjectId) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |(other, _)| *other != id).map(|(_, object)| object)
    }

    /// The composite resources that exist and have a Composition, parents first.
    pub(super) fn composites(&self) -> Result<Vec<ObjectId>> {
        let mut all = vec![self.root.clone()];
        // Each is listed once, even if owner references form a cycle.
        let mut known = BTreeSet::from([self.root.clone()]);
        let mut at = 0;
        while let Some(composer) = all.get(at).cloned() {
            for composed in self.composed(&composer) {
                let id = composed.id();
                if self.nested.composition(&composed)?.is_some() && known.insert(id.clone()) {
                    all.push(id);
                }
            }
            at += 1;
        }
        Ok(all)
    }

    /// Applies the result of a reconcile of a composite resource.
    pub(super) fn take_in(
        &mut self,
        id: &ObjectId,
        composition: &str,
        output: &CompositeOutput,
    ) -> Result<()> {
        let Some(before) = self.objects.get(id).cloned() else { return Ok(()) };
        for deleted in &output.deleted_resources {
            self.delete(&deleted.id());
        }
        for composed in &output.composed_resources {
            self.apply(&before, composed.object())?;
        }
        if let Some(after) = &output.composite_resource {
            if is_update(after) && !after.annotation(RESOURCE_NAME).is_empty() {
                bail!("a composite resource composes itself: {id} composes {id}");
            }
            self.update(before, composition, after);
        }
        Ok(())
    }

    /// Copies the fields that the reconciler writes to a composite resource: references and status,
    /// and once the Composition and the label with the name of the top-level XR.
    fn update(&mut self, mut composite: Object, composition: &str, after: &Struct) {
        if is_update(after) {
            if composite.label(COMPOSITE).is_empty() {
                let name = composite.name().to_owned();
                composite.set_at_or_ignore(&["metadata", "labels", COMPOSITE], name);
            }
            let machinery = self.machinery(&composite.id());
            composite
                .set_at_or_ignore(&[machinery, &["compositionRef", "name"]].concat(), composition);
        }
        if let Some(Value::Object(spec)) = after.get("spec") {
            let below = match composite.get("spec") {
                Some(Value::Object(below)) => below.clone(),
                _ => biplane_model::Map::new(),
            };
            composite.set_at_or_ignore(&["spec"], overlay(below, spec.clone()));
        }
        match after.get("status") {
            Some(status) => composite.set_at_or_ignore(&["status"], status.clone()),
            None => {
                composite.make_mut().remove("status");
            }
        }
        self.keep(composite);
    }

    /// The path of the control plane's fields in a composite resource.
    fn machinery(&self, id: &ObjectId) -> &'static [&'static str] {
        let definition = self.nested.definition(&id.gvk);
        definition.map_or(Layout::Modern, Layout::of_definition).machinery()
    }

    /// Only the fields of a composite resource that a render changes, as printed.
    pub(super) fn changed(&self, composite: &Object) -> Object {
        let mut changed = Object::new();
        changed.set_at_or_ignore(&["apiVersion"], composite.api_version());
        changed.set_at_or_ignore(&["kind"], composite.kind());
        changed.set_meta("name", composite.name());
        changed.set_meta("namespace", composite.namespace());
        let references = [self.machinery(&composite.id()), &["resourceRefs"]].concat();
        for path in [references.as_slice(), &["status"]] {
            if let Some(value) = composite.at(path) {
                changed.set_at_or_ignore(path, value.clone());
            }
        }
        changed
    }

    fn apply(&mut self, composite: &Object, intent: &Object) -> Result<()> {
        let id = intent.id();
        self.check_composer(&composite.id(), &id)?;
        let mut live = self.objects.get(&id).cloned();
        if let (Some(live), Some(managers)) = (&mut live, self.managers.get(&id)) {
            live.set_at_or_ignore(&["metadata", "managedFields"], managers.clone());
        }
        let mut object = apply::apply(composite, live.as_ref(), intent)
            .with_context(|| format!("cannot apply {id}"))?;
        // Existing fields are also ours, as after the upgrade of a live control plane.
        let mut managers = ManagedFields::decode(&object)?;
        managers.0.retain(|manager, _| manager.name != BEFORE_FIRST_APPLY);
        self.managers.insert(id.clone(), managers.encode().into());
        object.remove_at(&["metadata", "managedFields"]);
        if let Some(definition) = self.nested.definition(&id.gvk) {
            defaults::apply(&mut object, definition)?;
        }
        self.composers.insert(id, composite.id());
        self.keep(object);
        Ok(())
    }

    /// Fails if a composite resource may not compose an object.
    fn check_composer(&self, composer: &ObjectId, composed: &ObjectId) -> Result<()> {
        let mut chain = vec![composed, composer];
        while let Some(above) = chain.last().and_then(|last| self.composers.get(*last))
            && chain.len() <= DEEPEST + 1
        {
            chain.push(above);
        }
        let described = || {
            let names: Vec<_> = chain.iter().rev().map(ToString::to_string).collect();
            names.join(" composes ")
        };
        if chain.iter().skip(1).any(|above| *above == composed) {
            bail!("a composite resource composes itself: {}", described());
        }
        if chain.len() > DEEPEST + 1 {
            bail!("composite resources nest more than {DEEPEST} deep: {}", described());
        }
        match self.composers.get(composed) {
            Some(other) if other != composer => {
                bail!("{composed} is composed by both {other} and {composer}")
            }
            _ => Ok(()),
        }
    }

    /// Deletes an object and its composed resources.
    fn delete(&mut self, id: &ObjectId) {
        let mut gone = BTreeSet::from([id.clone()]);
        while let Some(id) = gone.pop_first() {
            self.objects.remove(&id);
            self.managers.remove(&id);
            self.composers.remove(&id);
            let composed = self.composers.iter().filter(|(_, composer)| **composer == id);
            gone.extend(composed.map(|(composed, _)| composed.clone()));
        }
    }

    fn keep(&mut self, mut object: Object) {
        print::fix_times(&mut object);
        self.objects.insert(object.id(), object);
    }
}

/// Whether the engine returned only the changed fields of a composite resource. If nothing was
/// reconciled, for example because it is paused, the engine returns the whole input with its
/// resource version.
fn is_update(after: &Struct) -> bool {
    after.resource_version().is_empty()
}

#[cfg(test)]
mod tests;
