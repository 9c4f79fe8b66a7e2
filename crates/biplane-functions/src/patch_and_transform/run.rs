//! Runs a plan for one request.

use std::collections::BTreeMap;

use biplane_function::Budget;
use biplane_function::resource::ENVIRONMENT_CONTEXT_KEY;
use biplane_function::response;
use biplane_function::v1::{Ready, Resource, RunFunctionRequest, RunFunctionResponse};
use biplane_go::fmt::quote;
use biplane_model::{Object, Value};
use biplane_patch::connection::{Details, extract};
use biplane_patch::document::{Document, is_group_version};
use biplane_patch::error::PatchError;
use biplane_patch::prepared::{FromPolicy, Patch, PatchKind};
use biplane_patch::{patch, readiness};

use super::connection;
use super::plan::{Plan, Template};

/// The steps of one template, besides its patches.
const STEPS: u64 = 200;

/// A composed resource, and whether it is known to be ready.
struct Made {
    document: Document,
    ready: bool,
}

/// The state of one request.
struct Run<'a> {
    response: &'a mut RunFunctionResponse,
    observed_xr: Document,
    desired_xr: Document,
    environment: Document,
    details: Details,
    observed: BTreeMap<String, Resource>,
    /// Composed resources that this call creates or changes.
    made: BTreeMap<String, Made>,
    skipped: bool,
    budget: &'a Budget,
}

/// Runs a plan. The error is the message of a fatal result.
pub(super) fn run(
    plan: &Plan,
    mut request: RunFunctionRequest,
    response: &mut RunFunctionResponse,
    budget: &Budget,
) -> Result<(), String> {
    let observed = request.observed.take().unwrap_or_default();
    let desired_xr = request.desired.as_mut().and_then(|desired| desired.composite.take());
    let desired_xr = desired_xr.unwrap_or_default();
    let environment = match request.context.as_ref().and_then(|c| c.get(ENVIRONMENT_CONTEXT_KEY)) {
        Some(Value::Object(map)) => map.clone().into(),
        _ => Object::new(),
    };
    // From here on the request shares nothing with the response, so that writing copies nothing.
    drop(request);
    let mut run = Run {
        response,
        observed_xr: Document::from_wire(
            observed.composite.unwrap_or_default().resource.unwrap_or_default().into_object(),
        ),
        desired_xr: Document::from_wire(desired_xr.resource.unwrap_or_default().into_object()),
        environment: Document::from_wire(environment),
        details: desired_xr.connection_details,
        observed: observed.resources,
        made: BTreeMap::new(),
        skipped: false,
        budget,
    };
    let had_details = !run.details.is_empty();
    let outcome = run.carry_out(plan);
    // Some errors of patches are forgiven, but not this one.
    let outcome = outcome.and_then(|()| match budget.exceeded() {
        Some(exceeded) => Err(exceeded.to_string()),
        None => Ok(()),
    });
    if outcome.is_err() {
        // Upstream adds details to the map of the request, if there is one.
        if had_details
            && let Some(composite) =
                run.response.desired.as_mut().and_then(|desired| desired.composite.as_mut())
        {
            composite.connection_details = run.details;
        }
        return outcome;
    }
    run.respond();
    Ok(())
}

impl Run<'_> {
    fn carry_out(&mut self, plan: &Plan) -> Result<(), String> {
        let xr = self.observed_xr.object();
        let (api_version, kind) = (xr.api_version().to_owned(), xr.kind().to_owned());
        self.desired_xr.set_root("apiVersion", &api_version);
        self.desired_xr.set_root("kind", &kind);
        self.name_environment();
        for (index, patch) in plan.environment.iter().enumerate() {
            self.patch_environment(patch, index)?;
        }
        for template in &plan.templates {
            self.template(template)?;
        }
        if connection::needs_secret(self.observed_xr.object()) && !self.details.is_empty() {
            let secret = connection::secret(
                &self.observed_xr,
                &self.details,
                plan.secret.as_ref(),
                self.budget,
            )
            .map_err(|error| format!("cannot compose connection secret: {error}"))?;
            let name = format!("{}-connection-secret", self.observed_xr.object().name());
            let document = Document::from_json(secret);
            self.made.insert(name, Made { document, ready: true });
        }
        Ok(())
    }

    /// Adds a warning.
    fn warn(&mut self, message: String) -> Result<(), String> {
        self.budget.make(message.len()).map_err(|exceeded| exceeded.to_string())?;
        response::warning(self.response, message);
        Ok(())
    }

    /// Sets the version and kind of an environment without them, because patching needs them.
    fn name_environment(&mut self) {
        let environment = self.environment.object();
        let version = environment.api_version();
        let unnamed = matches!(version, "" | "/") && environment.kind().is_empty();
        if unnamed || !is_group_version(version) {
            self.environment.set_root("apiVersion", "internal.crossplane.io/v1alpha1");
            self.environment.set_root("kind", "Environment");
        }
    }

    fn patch_environment(&mut self, patch: &Patch, index: usize) -> Result<(), String> {
        let result = match patch.kind {
            PatchKind::FromComposite | PatchKind::ToEnvironment => {
                patch::read(patch, &self.observed_xr, self.budget).and_then(|value| {
                    patch::write(patch, value, &mut self.environment, self.budget)
                })
            }
            PatchKind::ToComposite | PatchKind::FromEnvironment => {
                patch::read(patch, &self.environment, self.budget)
                    .and_then(|value| patch::write(patch, value, &mut self.desired_xr, self.budget))
            }
            PatchKind::Other => Ok(()),
        };
        match result {
            Ok(()) => Ok(()),
            Err(PatchError::NotFound(_)) if patch.policy == FromPolicy::Optional => Ok(()),
            Err(error) => Err(format!(
                "cannot apply the {} environment patch at index {index}: {error}",
                quote(&patch.kind_name)
            )),
        }
    }

    fn template(&mut self, template: &Template) -> Result<(), String> {
        let name = quote(&template.name);
        let room = self.budget.make(template.base_size).and_then(|()| self.budget.steps(STEPS));
        room.map_err(|exceeded| format!("cannot render composed resource {name}: {exceeded}"))?;
        let mut desired = match &template.base {
            Some(Ok(base)) => Document::from_json(base.clone()),
            Some(Err(error)) => {
                return Err(format!(
                    "cannot parse base template of composed resource {name}: {error}"
                ));
            }
            None => self.earlier(&template.name).ok_or_else(|| {
                format!(
                    "composed resource {name} has no base template, and was not produced by a \
                     previous Function in the pipeline"
                )
            })?,
        };
        let observed = self.observed.remove(&template.name);
        let (exists, mut ready) = (observed.is_some(), false);
        let mut observed_document = None;
        if let Some(observed) = &observed {
            let object = observed.resource.clone().unwrap_or_default().into_object();
            desired.set_metadata("namespace", object.namespace());
            desired.set_metadata("name", object.name());
            let wanted = &template.connection_details;
            let given = &observed.connection_details;
            let found = extract(&object, given, wanted, self.budget);
            self.details.extend(found.map_err(|exceeded| {
                format!("cannot get connection details of composed resource {name}: {exceeded}")
            })?);
            match readiness::is_ready(&object, &template.readiness_checks, self.budget) {
                Ok(is_ready) => ready = is_ready,
                Err(error) => self
                    .warn(format!("cannot check readiness of composed resource {name}: {error}"))?,
            }
            observed_document = Some(Document::from_wire(object));
        }
        // Two templates may have the same name.
        if let Some(observed) = observed {
            self.observed.insert(template.name.clone(), observed);
        }
        for (index, patch) in template.patches.iter().enumerate() {
            let error = match self.patch(patch, observed_document.as_ref(), &mut desired) {
                Ok(()) => continue,
                Err(PatchError::NotFound(_)) if patch.policy != FromPolicy::Required => continue,
                Err(error) => error,
            };
            let kind = quote(&patch.kind_name);
            match error {
                PatchError::NotFound(error) if patch.kind.to_composed() && !exists => {
                    self.warn(format!(
                        "not adding new composed resource {name} to desired state because {kind} \
                         patch at index {index} has 'policy.fromFieldPath: Required': {error}"
                    ))?;
                    self.skipped = true;
                    return Ok(());
                }
                PatchError::NotFound(error) => {
                    self.warn(format!(
                        "cannot render composed resource {name} {kind} patch at index {index}: \
                         ignoring 'policy.fromFieldPath: Required' because 'to' resource already \
                         exists: {error}"
                    ))?;
                }
                PatchError::Failed(error) => {
                    return Err(format!(
                        "cannot render composed resource {name} {kind} patch at index {index}: \
                         {error}"
                    ));
                }
            }
        }
        self.made.insert(template.name.clone(), Made { document: desired, ready });
        Ok(())
    }

    /// Returns the resource that an earlier template or function created under a name.
    fn earlier(&self, name: &str) -> Option<Document> {
        if let Some(made) = self.made.get(name) {
            return Some(made.document.clone());
        }
        let desired = self.response.desired.as_ref()?.resources.get(name)?;
        Some(Document::from_wire(desired.resource.clone().unwrap_or_default().into_object()))
    }

    fn patch(
        &mut self,
        patch: &Patch,
        observed: Option<&Document>,
        desired: &mut Document,
    ) -> Result<(), PatchError> {
        match (patch.kind, observed) {
            (PatchKind::FromComposite, _) => {
                let value = patch::read(patch, &self.observed_xr, self.budget)?;
                patch::write(patch, value, desired, self.budget)
            }
            (PatchKind::FromEnvironment, _) => {
                let value = patch::read(patch, &self.environment, self.budget)?;
                patch::write(patch, value, desired, self.budget)
            }
            (PatchKind::ToComposite, Some(observed)) => {
                let value = patch::read(patch, observed, self.budget)?;
                patch::write(patch, value, &mut self.desired_xr, self.budget)
            }
            (PatchKind::ToEnvironment, Some(observed)) => {
                let value = patch::read(patch, observed, self.budget)?;
                patch::write(patch, value, &mut self.environment, self.budget)
            }
            _ => Ok(()),
        }
    }

    fn respond(self) {
        let desired = self.response.desired.get_or_insert_default();
        desired.composite = Some(Resource {
            resource: Some(self.desired_xr.into_object().into()),
            connection_details: self.details,
            ready: if self.skipped { Ready::False } else { Ready::Unspecified }.into(),
        });
        // Upstream rebuilds every resource with only its object and its readiness.
        for resource in desired.resources.values_mut() {
            resource.connection_details.clear();
            resource.resource.get_or_insert_default();
            resource.ready = resource.ready().into();
        }
        desired.resources.extend(self.made.into_iter().map(|(name, made)| {
            let ready = if made.ready { Ready::True } else { Ready::Unspecified };
            let resource = Resource {
                resource: Some(made.document.into_object().into()),
                ready: ready.into(),
                ..Resource::default()
            };
            (name, resource)
        }));
        let environment = self.environment.into_object().into_value();
        response::set_context(self.response, ENVIRONMENT_CONTEXT_KEY, environment);
    }
}
