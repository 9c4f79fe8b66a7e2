//! Checks the pipelines of CompositionRevisions: every function that is installed must support
//! Compositions. Composite resources are not composed with a revision that has not been checked.

use std::time::Duration;

use biplane_cluster::{EventType, List, Optional, Query, Source};
use biplane_go::fmt::quote;
use biplane_model::condition::{Condition, condition};
use biplane_model::pipeline::function_names;
use biplane_model::{Gvk, Object, ObjectId, Value, composition, labels};
use tokio::time::Instant;

use crate::context::{Context, Reporter};
use crate::draft::Draft;
use crate::failure::{Attempted, Class, Failure};
use crate::reconcile::{GRACE, ReconcileError, Requeue, TIMEOUT};

/// The condition that says whether a pipeline can be run.
pub const VALID_PIPELINE: &str = "ValidPipeline";
/// The name of the controller of revisions, on every event of it.
pub const CONTROLLER: &str = "revision/compositionrevision.apiextensions.crossplane.io";
const CHECK: &str = "CheckCapabilities";
/// The capability of a function that can be used in a Composition.
const COMPOSITION: &str = "composition";

/// Reconciles CompositionRevisions.
#[derive(Clone, Debug)]
pub struct Reconciler {
    /// What it works with.
    pub context: Context,
    /// The time limit of one reconcile.
    pub timeout: Duration,
}

impl Reconciler {
    /// A reconciler with the usual time limit.
    pub fn new(context: Context) -> Self {
        Self { context, timeout: TIMEOUT }
    }

    /// Checks the pipeline of a revision. It is checked again when a FunctionRevision of one of its
    /// functions changes.
    ///
    /// A conflict is not a failure. The next reconcile sees the other write.
    pub async fn reconcile(&self, _namespace: &str, name: &str) -> Result<Requeue, ReconcileError> {
        let by = Instant::now() + self.timeout;
        match self.check(name, by).await {
            Ok(()) => Ok(Requeue::No),
            Err(failure) if failure.class() == Class::Conflict => Ok(Requeue::Now),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn check(&self, name: &str, by: Instant) -> Result<(), Failure> {
        let context = &self.context;
        let id = ObjectId::new(Gvk::new(composition::API_VERSION, "CompositionRevision"), "", name);
        let found = context.cluster.get(&id, Source::Cache, by).await.optional();
        let Some(object) = found.attempted("cannot get CompositionRevision")? else {
            return Ok(());
        };
        if object.is_being_deleted() {
            return Ok(());
        }
        let kind = Gvk::new("pkg.crossplane.io/v1", "FunctionRevision");
        let installed = context.cluster.list(&kind, &Query::default(), &List::cached(), by).await;
        let installed = installed.attempted("cannot list FunctionRevisions")?.objects;
        let incapable = incapable(&function_names(&object), &installed);
        let was_valid = condition(&object, VALID_PIPELINE).status == "True";
        let mut revision = Draft::new(object);
        let valid = match &incapable {
            Some(text) => Condition::new(VALID_PIPELINE, "False", "MissingCapabilities")
                .with_message(text.as_str()),
            None => Condition::new(VALID_PIPELINE, "True", VALID_PIPELINE),
        };
        let from = Reporter { component: CONTROLLER.to_owned(), ..Reporter::default() };
        match incapable {
            Some(text) => context.event(&from, &revision.object, EventType::Warning, CHECK, &text),
            None if was_valid => {}
            None => {
                let text = "All functions have required composition capability";
                context.event(&from, &revision.object, EventType::Normal, CHECK, text);
            }
        }
        revision.mark(context.clock.now(), [Condition::reconcile_success(), valid]);
        let written = revision.write_status(&*context.cluster, by + GRACE).await;
        written.attempted("cannot update CompositionRevision status")
    }
}

/// Why one of the functions cannot be used in a Composition. Functions that are not installed are
/// not looked at: they fail when they are called.
fn incapable(functions: &[String], installed: &[Object]) -> Option<String> {
    installed.iter().find_map(|revision| {
        let function = revision.label(labels::PACKAGE);
        let is_active = revision.str_at(&["spec", "desiredState"]) == "Active";
        if !is_active || !functions.iter().any(|name| name == function) {
            return None;
        }
        let capabilities = revision.at(&["status", "capabilities"]).and_then(Value::as_array);
        let mut capabilities = capabilities.into_iter().flatten().filter_map(Value::as_str);
        if capabilities.any(|capability| simplified(capability) == COMPOSITION) {
            return None;
        }
        Some(format!(
            "function {} (active revision {}) is missing required capabilities: {COMPOSITION}",
            quote(function),
            quote(revision.name())
        ))
    })
}

/// A capability as it is compared: only letters and digits, in lower case.
fn simplified(capability: &str) -> String {
    let kept = capability.chars().filter(char::is_ascii_alphanumeric);
    kept.map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn installed(function: &str, state: &str, capabilities: &[&str]) -> Object {
        let revision = json!({
            "metadata": {"name": format!("{function}-1"), "labels": {labels::PACKAGE: function}},
            "spec": {"desiredState": state},
            "status": {"capabilities": capabilities},
        });
        Object::from_value(revision).unwrap()
    }

    #[test]
    fn only_active_revisions_of_named_functions_must_be_capable() {
        // VP-1, VP-2
        let functions = ["f".to_owned(), "g".to_owned()];
        for (revision, fine) in [
            (installed("f", "Active", &["composition"]), true),
            (installed("f", "Active", &["operation", "Compo-sition!"]), true),
            (installed("f", "Active", &["operation"]), false),
            (installed("f", "Active", &[]), false),
            (installed("f", "Inactive", &[]), true),
            (installed("other", "Active", &[]), true),
        ] {
            assert_eq!(
                incapable(&functions, std::slice::from_ref(&revision)).is_none(),
                fine,
                "{revision:?}"
            );
        }
        assert_eq!(incapable(&functions, &[]), None);
        assert_eq!(
            incapable(&functions, &[installed("g", "Active", &["operation"])]).unwrap(),
            "function \"g\" (active revision \"g-1\") is missing required capabilities: composition"
        );
    }
}
