//! The reconciler of Functions that run in this process: it makes their revisions, so that pipelines
//! can be checked and users see what runs. Nothing is pulled, and other Functions are left alone.

use std::collections::{BTreeMap, BTreeSet};

use biplane_cluster::{Apply, List, Optional, Part, Patch, Precondition, Query, Source, Write};
use biplane_model::condition::{Condition, conditions, merge, set_conditions};
use biplane_model::object::integer;
use biplane_model::owner::{OwnerReference, set_controller};
use biplane_model::{Gvk, Object, ObjectId, labels, names};
use serde_json::json;
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::{Attempted, Class, Failure};
use crate::reconcile::{ReconcileError, Requeue, TIMEOUT};

const API_VERSION: &str = "pkg.crossplane.io/v1";
/// The annotation of a Function that decides where it runs.
pub const RUNTIME_ANNOTATION: &str = "render.crossplane.io/runtime";
const MANAGER: &str = "pkg.crossplane.io/in-process";

/// Where a Function wants to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// In this process.
    InProcess,
    /// Somewhere else.
    Other,
}

impl Runtime {
    /// The runtime that a Function or its revision asks for, if it does.
    pub fn of(object: &Object) -> Option<Self> {
        match object.annotation(RUNTIME_ANNOTATION) {
            "" => None,
            "InProcess" => Some(Self::InProcess),
            _ => Some(Self::Other),
        }
    }
}

/// The last part of the name of a package, without its version.
pub fn repository(package: &str) -> &str {
    let name = package.rsplit('/').next().unwrap_or_default();
    name.split([':', '@']).next().unwrap_or_default()
}

/// Reconciles Functions that run in this process.
#[derive(Clone, Debug)]
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// The names of the functions that this process has.
    pub built_in: BTreeSet<String>,
    /// Whether all of them run in this process. Otherwise only those that say so.
    pub all: bool,
    /// The version of this program.
    pub version: String,
}

impl Reconciler {
    /// Makes the revision of a Function that runs in this process.
    ///
    /// A conflict is not a failure, wherever it happens. The next reconcile sees the other write.
    pub async fn reconcile(&self, _namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        match self.attempt(name).await {
            Ok(()) => Ok(Requeue::No),
            Err(failure) if failure.class() == Class::Conflict => Ok(Requeue::Now),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The name of the function of this process that a Function means, if it runs here.
    fn built_in(&self, function: &Object) -> Option<&str> {
        let wanted = match Runtime::of(function) {
            Some(runtime) => runtime == Runtime::InProcess,
            None => self.all,
        };
        let repository = repository(function.str_at(&["spec", "package"]));
        let found = self.built_in.get(repository).or_else(|| self.built_in.get(function.name()));
        found.filter(|_| wanted).map(String::as_str)
    }

    async fn attempt(&self, name: &str) -> Result<(), Failure> {
        let by = Instant::now() + TIMEOUT;
        let cluster = &*self.context.cluster;
        let id = ObjectId::new(Gvk::new(API_VERSION, "Function"), "", name);
        let found = cluster.get(&id, Source::Cache, by).await.optional();
        let Some(function) = found.attempted("cannot get Function")? else { return Ok(()) };
        let Some(built_in) = self.built_in(&function) else { return Ok(()) };
        if function.is_being_deleted() || function.annotation(labels::PAUSED) == "true" {
            return Ok(());
        }
        let of_function = BTreeMap::from([(labels::PACKAGE.to_owned(), name.to_owned())]);
        let kind = Gvk::new(API_VERSION, "FunctionRevision");
        let all = cluster.list(&kind, &Query::labels(of_function), &List::cached(), by).await;
        let all = all.attempted("cannot list FunctionRevisions")?.objects;
        let revision_name = revision_name(&function, &self.version);
        let number = |r: &Object| r.at(&["spec", "revision"]).and_then(integer).unwrap_or_default();
        let current = all.iter().find(|revision| revision.name() == revision_name);
        let highest = all.iter().map(number).max().unwrap_or_default();
        for other in all.iter().filter(|revision| revision.name() != revision_name) {
            if other.str_at(&["spec", "desiredState"]) == "Active" {
                let patch = Patch::Merge(json!({"spec": {"desiredState": "Inactive"}}));
                let how = Write::by(MANAGER).only_if(Precondition::unchanged(other));
                let written = cluster.patch(&other.id(), Part::Main, &patch, &how, by).await;
                written.attempted("cannot deactivate FunctionRevision")?;
            }
        }
        let revision = current.map_or(highest + 1, number);
        let intent = revision_intent(&function, &revision_name, revision)?;
        let what = "cannot apply FunctionRevision";
        let how = Apply::forced(MANAGER);
        let applied =
            cluster.apply(&intent, Part::Main, current, &how, by).await.attempted(what)?;

        let text = format!("Runs in process: {built_in} of biplane {}", self.version);
        let healthy = |r#type: &str| Condition::new(r#type, "True", "HealthyPackageRevision");
        let status = json!({"capabilities": ["composition", "operation"]});
        let told = [healthy("RevisionHealthy"), healthy("RuntimeHealthy").with_message(text)];
        self.apply_status(&applied.object, status, told, by).await.attempted(what)?;

        let status = json!({
            "currentRevision": revision_name,
            "currentIdentifier": function.str_at(&["spec", "package"]),
        });
        let told =
            [Condition::new("Installed", "True", "ActivePackageRevision"), healthy("Healthy")];
        let applied = self.apply_status(&function, status, told, by).await;
        applied.attempted("cannot update Function status")
    }

    /// Applies a status with conditions. Their times stay if they say nothing new.
    async fn apply_status(
        &self,
        object: &Object,
        status: serde_json::Value,
        told: [Condition; 2],
        by: Instant,
    ) -> Result<(), Failure> {
        let (now, generation) = (self.context.clock.now(), object.generation());
        let types = told.each_ref().map(|condition| condition.r#type.clone());
        let mut all = conditions(object);
        all.retain(|condition| types.contains(&condition.r#type));
        merge(&mut all, told.into_iter().map(|c| c.at(now).observed(generation)));
        let mut intent = Object::new();
        intent.set_at(&["apiVersion"], object.api_version())?;
        intent.set_at(&["kind"], object.kind())?;
        intent.set_meta("name", object.name());
        intent.set_at(&["status"], status)?;
        set_conditions(&mut intent, all);
        let how = Apply::forced(MANAGER).only_if(Precondition::same(object));
        self.context.cluster.apply(&intent, Part::Status, Some(object), &how, by).await?;
        Ok(())
    }
}

/// A new version of this program or of the Function is a new revision.
fn revision_name(function: &Object, version: &str) -> String {
    let generation = function.generation().to_string();
    let hash = names::sha256([version.as_bytes(), b"|", generation.as_bytes()]);
    let name: String = function.name().chars().take(50).collect();
    let hash: String = hash.chars().take(12).collect();
    format!("{}-{hash}", name.trim_end_matches(['-', '.']))
}

fn revision_intent(function: &Object, name: &str, number: i64) -> Result<Object, Failure> {
    let mut intent = Object::new();
    intent.set_at(&["apiVersion"], API_VERSION)?;
    intent.set_at(&["kind"], "FunctionRevision")?;
    intent.set_meta("name", name);
    intent.set_at(&["metadata", "labels", labels::PACKAGE], function.name())?;
    let spec = json!({
        "desiredState": "Active",
        "image": function.str_at(&["spec", "package"]),
        "revision": number,
    });
    intent.set_at(&["spec"], spec)?;
    let owner = OwnerReference::controller(function);
    set_controller(&mut intent, owner).map_err(|error| Failure::new(error.to_string()))?;
    Ok(intent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_of_a_package_is_its_last_part() {
        for (package, want) in [
            ("xpkg.example.org/acme/function-echo:v1.2", "function-echo"),
            ("xpkg.example.org:5000/acme/function-echo", "function-echo"),
            ("function-echo@sha256:0123", "function-echo"),
            ("", ""),
        ] {
            assert_eq!(repository(package), want);
        }
    }
}
