//! What is odd about templates of composed resources: names, and patches whose paths no schema knows
//! or whose required values are missing.

use std::collections::{BTreeMap, BTreeSet};

use biplane_go::fmt::quote;
use biplane_model::fieldpath::FieldPath;
use biplane_model::{Gvk, Object, Value};

use super::{Known, Remark, schema};
use crate::field_path;

/// What the templates of one step, or of a Composition, are looked at with.
pub(super) struct Templates<'a> {
    /// The schema of the composite resource.
    pub(super) composite: Option<&'a Value>,
    /// Everything else that is known.
    pub(super) known: &'a Known<'a>,
    /// Whether there may be an environment before the templates.
    pub(super) has_environment: bool,
}

/// What a patch reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Composite,
    Composed,
    Environment,
    /// The reference to the connection secret.
    Secret,
}

impl Side {
    /// What a patch of a composed resource reads and writes.
    fn of_resource(kind: &str) -> Option<(Self, Self)> {
        Some(match kind {
            "FromCompositeFieldPath" | "CombineFromComposite" => (Self::Composite, Self::Composed),
            "ToCompositeFieldPath" | "CombineToComposite" => (Self::Composed, Self::Composite),
            "FromEnvironmentFieldPath" | "CombineFromEnvironment" => {
                (Self::Environment, Self::Composed)
            }
            "ToEnvironmentFieldPath" | "CombineToEnvironment" => {
                (Self::Composed, Self::Environment)
            }
            _ => return None,
        })
    }

    /// What a patch of the environment reads and writes. There is no composed resource, so that
    /// each direction has two names.
    fn of_environment(kind: &str) -> Option<(Self, Self)> {
        let (from, to) = Self::of_resource(kind)?;
        Some(match (from, to) {
            (Self::Composite, _) | (_, Self::Environment) => (Self::Composite, Self::Environment),
            _ => (Self::Environment, Self::Composite),
        })
    }

    /// What a patch of the reference to the connection secret reads and writes.
    fn of_secret(kind: &str) -> Option<(Self, Self)> {
        let (from, _) = Self::of_resource(kind)?;
        (from == Self::Composite).then_some((Self::Composite, Self::Secret))
    }
}

/// What patches belong to.
struct Owner<'a> {
    /// What patches of a kind read and write.
    sides: fn(&str) -> Option<(Side, Side)>,
    /// The name of the composed resource. `None` if it is none.
    resource: Option<&'a str>,
    /// The schema of the composed resource.
    composed: Option<&'a Value>,
}

impl Owner<'_> {
    /// What becomes of it if a required value is missing.
    fn held_back(&self) -> String {
        match self.resource {
            Some("") => "the resource is not composed".to_owned(),
            Some(name) => format!("resource {} is not composed", quote(name)),
            None => "the function fails".to_owned(),
        }
    }
}

/// The items of a list.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The path of an item.
fn item(path: &[String], name: &str, place: usize) -> Vec<String> {
    [path, &[name.to_owned(), place.to_string()]].concat()
}

fn kind_of(patch: &Value) -> &str {
    match text(patch, "type") {
        "" => "FromCompositeFieldPath",
        kind => kind,
    }
}

impl Templates<'_> {
    /// What is odd about the templates of an input, or of the `spec` of a Composition.
    pub(super) fn check(&self, holder: &Object, path: &[&str]) -> Vec<Remark> {
        let holder = holder.to_value();
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        let mut found = Found::default();
        let mut sets = BTreeMap::new();
        for (k, set) in list(&holder, "patchSets").iter().enumerate() {
            let at = item(&path, "patchSets", k);
            let name = text(set, "name");
            if sets.contains_key(name) {
                let said = format!("another patch set is named {} too", quote(name));
                found.add(&at, &["name"], said);
            } else {
                sets.insert(name, (at, set));
            }
        }
        let check = Check { templates: self, is_empty: self.environment_is_empty(&holder), sets };
        if let Some(environment) = holder.get("environment") {
            let at = [&path[..], &["environment".to_owned()]].concat();
            check.others(environment, &at, Side::of_environment, &mut found);
        }
        check.resources(&holder, &path, &mut found);
        if let Some(secret) = holder.get("writeConnectionSecretToRef") {
            let at = [&path[..], &["writeConnectionSecretToRef".to_owned()]].concat();
            check.others(secret, &at, Side::of_secret, &mut found);
        }
        found.remarks
    }

    /// Whether nothing writes into the environment that patches read.
    fn environment_is_empty(&self, holder: &Value) -> bool {
        let own = holder.get("environment").map_or(&[][..], |own| list(own, "patches"));
        let into = |patch: &Value| {
            Side::of_resource(kind_of(patch)).is_some_and(|(_, to)| to == Side::Environment)
        };
        let holders = list(holder, "resources").iter().chain(list(holder, "patchSets"));
        let mut patches = holders.flat_map(|holder| list(holder, "patches"));
        !self.has_environment && own.is_empty() && !patches.any(into)
    }

    /// Why a composite resource is without the value of a path, if one is.
    fn missing(&self, path: &FieldPath, resource: Option<&str>) -> Option<String> {
        let without = |composite: &&super::Composite<'_>| {
            let exists = resource.is_some_and(|name| composite.existing.contains(name));
            !exists && path.get(composite.object).is_err_and(|error| error.is_not_found())
        };
        let composite = self.known.composites.iter().find(without)?.object;
        Some(format!("{} {} has no {}", composite.kind(), composite.name(), path.text()))
    }
}

/// A check of the templates of one holder.
struct Check<'a> {
    templates: &'a Templates<'a>,
    /// Whether the environment is known to be empty.
    is_empty: bool,
    /// The patch sets by name, each with its path.
    sets: BTreeMap<&'a str, (Vec<String>, &'a Value)>,
}

impl Check<'_> {
    fn resources(&self, holder: &Value, path: &[String], found: &mut Found) {
        let mut names = BTreeSet::new();
        for (i, resource) in list(holder, "resources").iter().enumerate() {
            let at = item(path, "resources", i);
            let name = text(resource, "name");
            if !name.is_empty() && !names.insert(name) {
                let said = format!("another resource is named {} too", quote(name));
                found.add(&at, &["name"], said);
            }
            let base = resource.get("base").unwrap_or(&Value::Null);
            let gvk = Gvk::new(text(base, "apiVersion"), text(base, "kind"));
            let composed = schema(self.templates.known.crds, &gvk);
            let owner = Owner { sides: Side::of_resource, resource: Some(name), composed };
            for (j, patch) in list(resource, "patches").iter().enumerate() {
                let at = item(&at, "patches", j);
                if kind_of(patch) == "PatchSet" {
                    self.set(text(patch, "patchSetName"), &at, &owner, found);
                } else {
                    self.patch(patch, &at, &owner, None, found);
                }
            }
            for (list_name, field) in
                [("connectionDetails", "fromFieldPath"), ("readinessChecks", "fieldPath")]
            {
                for (j, detail) in list(resource, list_name).iter().enumerate() {
                    let at = item(&at, list_name, j);
                    if let Some(schema) = composed {
                        found.add_unknown(schema, text(detail, field), &at, &[field], "");
                    }
                }
            }
        }
    }

    /// The patches of what is no composed resource.
    fn others(
        &self,
        holder: &Value,
        path: &[String],
        sides: fn(&str) -> Option<(Side, Side)>,
        found: &mut Found,
    ) {
        let owner = Owner { sides, resource: None, composed: None };
        for (j, patch) in list(holder, "patches").iter().enumerate() {
            self.patch(patch, &item(path, "patches", j), &owner, None, found);
        }
    }

    fn set(&self, name: &str, at: &[String], owner: &Owner<'_>, found: &mut Found) {
        let Some((path, set)) = self.sets.get(name) else {
            let near = field_path::nearest_name(name, self.sets.keys().copied());
            let hint = near.map(|near| format!("; the nearest is {}", quote(near)));
            let said = format!("no patch set is named {}", quote(name));
            found.add(at, &["patchSetName"], said + &hint.unwrap_or_default());
            return;
        };
        for (j, patch) in list(set, "patches").iter().enumerate() {
            self.patch(patch, &item(path, "patches", j), owner, owner.resource, found);
        }
    }

    /// Checks a patch. One of a patch set is for the given resource among others.
    fn patch(
        &self,
        patch: &Value,
        at: &[String],
        owner: &Owner<'_>,
        shared_by: Option<&str>,
        found: &mut Found,
    ) {
        let kind = kind_of(patch);
        let Some((from, to)) = (owner.sides)(kind) else { return };
        let schema_of = |side: Side| match side {
            Side::Composite => self.templates.composite,
            Side::Composed => owner.composed,
            Side::Environment | Side::Secret => None,
        };
        let policy = patch.get("policy").map_or("", |policy| text(policy, "fromFieldPath"));
        let required = policy == "Required";
        let user = shared_by.map(|name| format!(", for resource {}", quote(name)));
        let user = user.unwrap_or_default();
        let combines = kind.starts_with("Combine");
        let mut sources: Vec<(Vec<String>, &str)> = Vec::new();
        if combines {
            let combine = patch.get("combine").unwrap_or(&Value::Null);
            for (k, variable) in list(combine, "variables").iter().enumerate() {
                let at = item(&["combine".to_owned()], "variables", k);
                sources.push((
                    [&at[..], &["fromFieldPath".to_owned()]].concat(),
                    text(variable, "fromFieldPath"),
                ));
            }
        } else {
            sources.push((vec!["fromFieldPath".to_owned()], text(patch, "fromFieldPath")));
        }
        for (place, path) in &sources {
            let place: Vec<&str> = place.iter().map(String::as_str).collect();
            let unknown = schema_of(from).is_some_and(|schema| {
                let mut tail = user.clone();
                if required && from == Side::Composite {
                    tail = format!("{tail}; the patch requires it, so {}", owner.held_back());
                }
                found.add_unknown(schema, path, at, &place, &tail)
            });
            if unknown || !required {
                continue;
            }
            let Ok(parsed) = FieldPath::parse(path) else { continue };
            let missing = match from {
                Side::Composite => self.templates.missing(&parsed, owner.resource),
                Side::Environment if self.is_empty => {
                    Some(format!("the environment is empty here, and has no {path}"))
                }
                _ => None,
            };
            if let Some(missing) = missing {
                let said = format!("{missing}, which the patch requires: {}", owner.held_back());
                found.add(at, &place, said);
            }
        }
        // Without a target, the path of the source is also that of the target.
        let (field, target) = match text(patch, "toFieldPath") {
            "" if combines => return,
            "" => ("fromFieldPath", text(patch, "fromFieldPath")),
            target => ("toFieldPath", target),
        };
        if let Some(schema) = schema_of(to) {
            found.add_unknown(schema, target, at, &[field], &user);
        }
    }
}

/// What was found. Resources share patch sets, and each remark is made once.
#[derive(Default)]
struct Found {
    remarks: Vec<Remark>,
    seen: BTreeSet<(Vec<String>, String)>,
}

impl Found {
    fn add(&mut self, at: &[String], member: &[&str], text: String) {
        let path = at.iter().cloned().chain(member.iter().map(|step| (*step).to_owned()));
        let path: Vec<String> = path.collect();
        if self.seen.insert((path.clone(), text.clone())) {
            self.remarks.push(Remark { path, text });
        }
    }

    /// Adds that a schema does not know a path. Returns whether that is so.
    fn add_unknown(
        &mut self,
        schema: &Value,
        path: &str,
        at: &[String],
        member: &[&str],
        tail: &str,
    ) -> bool {
        // A wildcard stands for every item, which the schema describes under its first index.
        let single = path.replace("[*]", "[0]");
        // Schemas say little about metadata, and every object has all of it.
        if path.starts_with("metadata") {
            return false;
        }
        let Err(problem) = field_path::check(Some(schema), &single) else { return false };
        if problem.contains("has an unsupported type") {
            return false;
        }
        let near = field_path::nearest(schema, &single);
        let hint = near.map(|near| format!("; the nearest field is {near}")).unwrap_or_default();
        self.add(at, member, format!("no schema has {path}: {problem}{hint}{tail}"));
        true
    }
}
