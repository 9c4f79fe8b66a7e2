//! What exists between two reconciles: every object, and which composite resource composes it.
//!
//! Composed resources are applied as an API server would: what a pipeline no longer mentions goes,
//! what others have written, such as a status, stays. Nobody owns anything else here, so that
//! objects carry neither field managers nor versions.

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

/// How deep composite resources may nest before it is taken for a mistake.
pub(super) const DEEPEST: usize = 10;

/// Objects by what they are found by.
pub(super) type Objects = BTreeMap<ObjectId, Object>;

/// Everything that exists.
#[derive(Debug)]
pub(super) struct World<'a> {
    nested: &'a Nested,
    root: ObjectId,
    objects: Objects,
    /// Who has set which fields of an object.
    managers: BTreeMap<ObjectId, Value>,
    /// By composed resource: the composite resource that composes it.
    composers: BTreeMap<ObjectId, ObjectId>,
}

impl<'a> World<'a> {
    /// The composite resource, and composed resources that exist already.
    pub(super) fn new(root: &Object, observed: &[Object], nested: &'a Nested) -> Self {
        let mut world = Self {
            nested,
            root: root.id(),
            objects: BTreeMap::from([(root.id(), root.clone())]),
            managers: BTreeMap::new(),
            composers: BTreeMap::new(),
        };
        let others = observed.iter().filter(|object| object.id() != root.id());
        for object in others {
            // An observed resource may belong to another observed one. The engine refuses those whose
            // owner is not here.
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
            let composer = composer.unwrap_or_else(|| world.root.clone());
            world.composers.insert(object.id(), composer);
            world.keep(object.clone());
        }
        world
    }

    /// Every object. Times do not count.
    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    pub(super) fn get(&self, id: &ObjectId) -> Option<&Object> {
        self.objects.get(id)
    }

    /// What a composite resource is composed of, in the order in which it is printed.
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

    /// Everything but one object.
    pub(super) fn others(&self, id: &ObjectId) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |(other, _)| *other != id).map(|(_, object)| object)
    }

    /// The composite resources that exist and have a Composition, parents first.
    pub(super) fn composites(&self) -> Result<Vec<ObjectId>> {
        let mut all = vec![self.root.clone()];
        // Whatever they say of each other, each is there once.
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

    /// Makes what a reconcile of a composite resource with a Composition came to part of the world.
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

    /// Takes over what the reconciler writes of a composite resource: references and status, and
    /// once the Composition and the label that names the top.
    fn update(&mut self, mut composite: Object, composition: &str, after: &Struct) {
        if is_update(after) {
            if composite.label(COMPOSITE).is_empty() {
                let name = composite.name().to_owned();
                composite.set_at(&["metadata", "labels", COMPOSITE], name);
            }
            let machinery = self.machinery(&composite.id());
            composite.set_at(&[machinery, &["compositionRef", "name"]].concat(), composition);
        }
        if let Some(Value::Object(spec)) = after.get("spec") {
            let below = match composite.get("spec") {
                Some(Value::Object(below)) => below.clone(),
                _ => biplane_model::Map::new(),
            };
            composite.set_at(&["spec"], overlay(below, spec.clone()));
        }
        match after.get("status") {
            Some(status) => composite.set_at(&["status"], status.clone()),
            None => {
                composite.make_mut().remove("status");
            }
        }
        self.keep(composite);
    }

    /// Where the control plane writes in a composite resource.
    fn machinery(&self, id: &ObjectId) -> &'static [&'static str] {
        let definition = self.nested.definition(&id.gvk);
        definition.map_or(Layout::Modern, Layout::of_definition).machinery()
    }

    /// Only what a render changes in a composite resource, as it is printed.
    pub(super) fn changed(&self, composite: &Object) -> Object {
        let mut changed = Object::new();
        changed.set_at(&["apiVersion"], composite.api_version());
        changed.set_at(&["kind"], composite.kind());
        changed.set_meta("name", composite.name());
        changed.set_meta("namespace", composite.namespace());
        let references = [self.machinery(&composite.id()), &["resourceRefs"]].concat();
        for path in [references.as_slice(), &["status"]] {
            if let Some(value) = composite.at(path) {
                changed.set_at(path, value.clone());
            }
        }
        changed
    }

    fn apply(&mut self, composite: &Object, intent: &Object) -> Result<()> {
        let id = intent.id();
        self.check_composer(&composite.id(), &id)?;
        let mut live = self.objects.get(&id).cloned();
        if let (Some(live), Some(managers)) = (&mut live, self.managers.get(&id)) {
            live.set_at(&["metadata", "managedFields"], managers.clone());
        }
        let mut object = apply::apply(composite, live.as_ref(), intent)
            .with_context(|| format!("cannot apply {id}"))?;
        // What existed before is ours as well, as it is after the upgrade of a live control plane.
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

    /// Whether a composite resource may compose an object.
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

    /// Deletes an object and what is composed by it.
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
        print::settle_times(&mut object);
        self.objects.insert(object.id(), object);
    }
}

/// Whether the engine shows only what it made of a composite resource. When it made nothing of it,
/// since it is paused, for example, it shows the whole of what it was given, version included.
fn is_update(after: &Struct) -> bool {
    after.resource_version().is_empty()
}

#[cfg(test)]
mod tests;
