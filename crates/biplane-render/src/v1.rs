//! Renders like Crossplane v1, for snapshot tests that were written for it.
//!
//! Crossplane v1 did not reconcile: it ran the pipeline itself and adjusted the output. Nothing is
//! garbage collected, named or validated, and functions can request fewer things.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use biplane_console::{Deadline, Interrupted};
use biplane_engine::composite::report::some_of;
use biplane_engine::pipeline;
use biplane_function::v1::{
    CredentialData, Credentials, Resource, ResourceSelector, Resources, RunFunctionRequest,
    RunFunctionResponse, Severity, State, Status, credentials, resource_selector,
};
use biplane_go::fmt::quote;
use biplane_go::json;
use biplane_model::condition::{Condition, set_conditions};
use biplane_model::owner::{OwnerReference, set_controller};
use biplane_model::pipeline::{Step, composition_spec};
use biplane_model::{Object, Value, labels, typed};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::CompositeOutput;
use biplane_runner::{Call, FunctionRunner, Named, fetching::MAX_ITERATIONS};
use biplane_runtime::{Runners, Subject};
use serde_json::json;

use crate::options::OutputOptions;
use crate::{API_VERSION, RENDER_TIME, context, hints, structs, summary};

/// A render as in Crossplane v1: its inputs and output options.
pub(crate) struct V1Render<'a> {
    pub composite: &'a Object,
    pub composition: &'a Object,
    pub observed: &'a [Object],
    pub required: &'a [Object],
    pub credentials: &'a [Object],
    /// Context as JSON, by key.
    pub context: &'a BTreeMap<String, String>,
    pub output: OutputOptions,
    pub include_full_xr: bool,
}

impl V1Render<'_> {
    /// The documents that Crossplane v1 would print.
    pub(crate) async fn run(
        &self,
        runners: &Runners,
        deadline: Deadline,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Value>> {
        let output = self.output;
        let timing = summary::Timing::new(output.timing);
        let functions = runners.named();
        let runner = timing.runner(functions.clone());
        let steps = Pipeline { inputs: self, functions, runner, deadline };
        let run = runners.unless_interrupted(steps.run()).await;
        timing.report().iter().for_each(|line| say(line));
        let end = match run {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                let error = error.context(Subject::Composite.attempted());
                let (credentials, required) = (self.credentials, self.required);
                return Err(hints::explain(error, self.composition, credentials, required));
            }
            Ok(end) => end,
        };

        if output.summary {
            end.summary(self.observed).iter().for_each(|line| say(line));
        }
        let mut composite = end.composite;
        if self.include_full_xr {
            for key in ["spec", "metadata"] {
                let value = self.composite.get(key);
                let value = value.with_context(|| {
                    format!("cannot get composite resource {key}: {key}: no such field")
                })?;
                composite.set_at_or_ignore(&[key], value.clone());
            }
        }
        let mut documents = vec![composite.into_value()];
        documents.extend(end.composed.into_iter().map(Object::into_value));
        if output.results {
            documents.extend(end.results);
        }
        if output.context {
            documents.push(end.context);
        }
        Ok(documents)
    }
}

struct Pipeline<'a> {
    inputs: &'a V1Render<'a>,
    functions: Named,
    /// Calls the functions.
    runner: Arc<dyn FunctionRunner>,
    deadline: Deadline,
}

/// The result of the pipeline.
struct V1Outcome {
    composite: Object,
    composed: Vec<Object>,
    /// The pipeline's names of the resources that are not ready.
    unready: Vec<String>,
    results: Vec<Value>,
    context: Value,
}

impl V1Outcome {
    /// What would be created and updated, and what is not ready. Nothing was ever deleted.
    fn summary(&self, observed: &[Object]) -> Vec<String> {
        let output = CompositeOutput {
            composite_resource: Some(self.composite.clone().into()),
            composed_resources: structs(self.composed.iter().cloned()),
            ..CompositeOutput::default()
        };
        summary::composite(&output, &self.unready, observed)
    }
}

impl Pipeline<'_> {
    async fn run(&self) -> Result<V1Outcome> {
        let observed = self.observed();
        let mut desired = State::default();
        let mut context = Some(Struct::from(seed(self.inputs.context)?));
        let mut printed_context = context.clone().map(|c| c.into_object().into_value());
        let (mut results, mut conditions) = (Vec::new(), Vec::new());

        for step in composition_spec(self.inputs.composition)?.pipeline {
            let request = RunFunctionRequest {
                observed: Some(observed.clone()),
                desired: Some(desired),
                context: context.take(),
                input: pipeline::input(&step).with_context(|| {
                    let step = quote(&step.step);
                    format!("cannot unmarshal input for Composition pipeline step {step}")
                })?,
                credentials: self.credentials(&step)?,
                ..RunFunctionRequest::default()
            };
            let response = self.call(&step, request).await;
            let response = response
                .with_context(|| format!("cannot run pipeline step {}", quote(&step.step)))?;
            desired = response.desired.unwrap_or_default();
            context = response.context;
            // An empty context loses its fields when it is serialised.
            printed_context = context
                .clone()
                .map(|c| if c.is_empty() { Value::Null } else { c.into_object().into_value() });
            conditions.extend(response.conditions.iter().map(condition));
            for result in &response.results {
                if result.severity() == Severity::Fatal {
                    bail!(
                        "pipeline step {} returned a fatal result: {}",
                        quote(&step.step),
                        result.message
                    );
                }
                results.push(json!({
                    "apiVersion": API_VERSION,
                    "kind": "Result",
                    "step": step.step,
                    "severity": result.severity().as_str_name(),
                    "message": result.message,
                }));
            }
        }
        let unready = desired.resources.iter().filter(|(_, r)| r.ready != READY_TRUE);
        let unready: Vec<_> = unready.map(|(name, _)| name.clone()).collect();
        Ok(V1Outcome {
            composite: self.composite(desired.composite.unwrap_or_default(), &unready, conditions),
            composed: self.composed(&desired.resources)?,
            unready,
            results,
            context: printed_context.map_or(Value::Null, context::document),
        })
    }

    fn observed(&self) -> State {
        let resource = |object: &Object| Resource {
            resource: Some(Struct::from(object.clone())),
            ..Resource::default()
        };
        let named = self.inputs.observed.iter();
        State {
            composite: Some(resource(self.inputs.composite)),
            resources: named.map(|o| (resource_name(o).to_owned(), resource(o))).collect(),
        }
    }

    fn credentials(&self, step: &Step) -> Result<BTreeMap<String, Credentials>> {
        let mut all = BTreeMap::new();
        for credential in &step.credentials {
            let Some(wanted) = &credential.secret_ref else { continue };
            if credential.source != "Secret" {
                continue;
            }
            let is_wanted =
                |s: &&Object| s.name() == wanted.name && s.namespace() == wanted.namespace;
            let secret = self.inputs.credentials.iter().find(is_wanted).ok_or_else(|| {
                let name = quote(&wanted.name);
                anyhow!("cannot get credentials from secret {name}: secret {name} not found")
            })?;
            let data = secret.get("data").and_then(Value::as_object).into_iter().flatten();
            let data = data.map(|(key, value)| {
                let bytes = typed::bytes(value.as_str().unwrap_or_default());
                bytes.map(|bytes| (key.clone(), bytes)).map_err(|error| {
                    anyhow!("cannot get credentials from secret {}: {error}", quote(&wanted.name))
                })
            });
            let data = CredentialData { data: data.collect::<Result<_>>()? };
            let source = Some(credentials::Source::CredentialData(data));
            all.insert(credential.name.clone(), Credentials { source });
        }
        Ok(all)
    }

    /// Calls a function until its extra resources (the old name of required resources) are stable.
    async fn call(
        &self,
        step: &Step,
        mut request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse> {
        let name = &step.function_ref.name;
        if !self.functions.contains(name) {
            bail!("unknown Function {} - does it exist in your Functions file?", quote(name));
        }
        let mut call = Call {
            function: name.clone(),
            step: step.step.clone(),
            deadline: self.deadline.at().map(Into::into),
            ..Call::default()
        };
        let mut previous = None;
        for iteration in 0..=MAX_ITERATIONS {
            call.iteration = iteration;
            let response = self.runner.run(&call, request.clone()).await?;
            let is_fatal = response.results.iter().any(|r| r.severity() == Severity::Fatal);
            if is_fatal || response.requirements == previous {
                return Ok(response);
            }
            let wanted = response.requirements.iter().flat_map(|r| &r.extra_resources);
            request.extra_resources =
                wanted.map(|(name, selector)| (name.clone(), self.select(selector))).collect();
            request.context = response.context;
            previous = response.requirements;
        }
        bail!(
            "requirements didn't stabilize after the maximum number of iterations ({MAX_ITERATIONS})"
        )
    }

    /// The first object with a name in any namespace, or all objects with the labels.
    fn select(&self, selector: &ResourceSelector) -> Resources {
        let name = match &selector.r#match {
            Some(resource_selector::Match::MatchName(name)) => name.as_str(),
            _ => "",
        };
        let of_kind =
            |o: &&Object| o.api_version() == selector.api_version && o.kind() == selector.kind;
        let item = |object: &Object| Resource {
            resource: Some(Struct::from(object.clone())),
            ..Resource::default()
        };
        let mut items = Vec::new();
        for object in self.inputs.required.iter().filter(of_kind) {
            if object.name() == name {
                return Resources { items: vec![item(object)] };
            }
            if let Some(resource_selector::Match::MatchLabels(wanted)) = &selector.r#match
                && (wanted.labels.is_empty() || all_texts(object, "labels"))
                && object.has_labels(wanted.labels.iter().map(|(key, value)| (&**key, &**value)))
            {
                items.push(item(object));
            }
        }
        Resources { items }
    }

    fn composite(
        &self,
        desired: Resource,
        unready: &[String],
        conditions: Vec<Condition>,
    ) -> Object {
        let input = self.inputs.composite;
        let mut composite = desired.resource.unwrap_or_default().into_object();
        composite.set_at_or_ignore(&["apiVersion"], input.api_version());
        composite.set_at_or_ignore(&["kind"], input.kind());
        composite.set_meta("name", input.name());
        let ready = if unready.is_empty() {
            Condition::available()
        } else {
            Condition::creating().with_message(format!("Unready resources: {}", some_of(unready)))
        };
        let custom = conditions.into_iter().filter(|c| !SYSTEM.contains(&c.r#type.as_str()));
        let all = std::iter::once(ready).chain(custom).map(|mut condition| {
            condition.last_transition_time = Some(RENDER_TIME.to_owned());
            condition
        });
        set_conditions(&mut composite, all);
        composite
    }

    fn composed(&self, desired: &BTreeMap<String, Resource>) -> Result<Vec<Object>> {
        let composite = self.inputs.composite;
        let mut all = Vec::new();
        for (name, resource) in desired {
            let mut object = resource.resource.clone().unwrap_or_default().into_object();
            let observed = self.inputs.observed.iter().rev();
            if let Some(observed) = observed.into_iter().find(|o| resource_name(o) == name) {
                object.set_meta("namespace", observed.namespace());
                object.set_meta("name", observed.name());
            }
            object.set_meta("generateName", &format!("{}-", composite.name()));
            add_texts(&mut object, "annotations", &[(labels::RESOURCE_NAME, name)]);
            let mut ours = vec![(labels::COMPOSITE, composite.name())];
            if let Some(Value::Object(_)) = composite.at(&["spec", "claimRef"]) {
                let claim = |key: &str| composite.str_at(&["spec", "claimRef", key]);
                ours.push((labels::CLAIM_NAMESPACE, claim("namespace")));
                ours.push((labels::CLAIM_NAME, claim("name")));
            }
            add_texts(&mut object, "labels", &ours);
            set_controller(&mut object, OwnerReference::controller(composite)).with_context(|| {
                format!(
                    "cannot render composed resource {} metadata: cannot set composite resource {} as controller ref of composed resource",
                    quote(name),
                    quote(composite.name())
                )
            })?;
            all.push(object);
        }
        Ok(all)
    }
}

/// The conditions that functions may not set.
const SYSTEM: [&str; 3] = ["Ready", "Synced", "Healthy"];
const READY_TRUE: i32 = biplane_function::v1::Ready::True as i32;

/// The initial context. Its values were JSON.
fn seed(texts: &BTreeMap<String, String>) -> Result<Object> {
    let mut seed = Object::new();
    for (key, text) in texts {
        let value = match json::decode(text.as_bytes()) {
            Ok((value, None)) => value,
            Ok((_, Some(error))) | Err(error) => {
                bail!("cannot unmarshal JSON value for context key {}: {error}", quote(key))
            }
        };
        seed.make_mut().insert(key.clone(), value);
    }
    Ok(seed)
}

/// Whether labels or annotations can be decoded: a single null makes all of them invalid.
fn all_texts(object: &Object, field: &str) -> bool {
    let map = object.at(&["metadata", field]).and_then(Value::as_object);
    map.is_some_and(|map| map.values().all(Value::is_string))
}

/// The pipeline's name of an observed resource.
fn resource_name(object: &Object) -> &str {
    if all_texts(object, "annotations") { object.annotation(labels::RESOURCE_NAME) } else { "" }
}

/// Adds labels or annotations. Those that cannot be decoded are lost.
fn add_texts(object: &mut Object, field: &str, texts: &[(&str, &str)]) {
    if !all_texts(object, field) {
        object.remove_at(&["metadata", field]);
    }
    object.add_texts(field, texts.iter().copied());
}

fn condition(condition: &biplane_function::v1::Condition) -> Condition {
    let status = match condition.status() {
        Status::ConditionTrue => "True",
        Status::ConditionFalse => "False",
        Status::ConditionUnknown | Status::ConditionUnspecified => "Unknown",
    };
    Condition::new(&condition.r#type, status, &condition.reason)
        .with_message(condition.message.clone().unwrap_or_default())
}
