//! `operation render`: what the control plane would do about an Operation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use biplane_function::Registry;
use biplane_model::typed::{self, Names, tables};
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    OperationInput, OperationOutput, RenderRequest, RequestMeta, render_request, render_response,
};
use clap::Args;
use serde_json::json;

use super::context::{self, ContextHelper};
use super::engine::{Engine, What};
use super::flags::{EngineFlags, FunctionFlags, OutputFlags, OutputFormat};
use super::load::{self, Loader, quoted};
use super::runners::{Runners, Running};
use super::runtime::Function;
use super::up::Up;
use super::watch::{self, Again, Sources};
use super::{asynchronous, engine, functions, print, start, structs, summary};
use crate::cli::values;
use crate::streams::Streams;

const API_VERSION: &str = "ops.crossplane.io/v1alpha1";
const WATCHED: &str = "ops.crossplane.io/watched-resource";

const EXAMPLES: &str = "\
Examples:
  # What an Operation would do
  biplane operation render operation.yaml functions.yaml

  # What a WatchOperation would do about an object
  biplane operation render watchoperation.yaml functions.yaml -w object.yaml

  # Again whenever one of the files changes
  biplane operation render operation.yaml functions.yaml --watch";

/// Show what the control plane would do about an Operation
///
/// Prints the Operation as it would become and the resources that it would apply. A CronOperation
/// or WatchOperation is rendered as the Operation that it would make.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct OperationRender {
    /// The Operation, CronOperation or WatchOperation, a YAML file
    #[arg(value_parser = values::existing_file)]
    operation: PathBuf,
    /// The Functions, a YAML file or a directory of such; optional in a project, and
    /// when all of them run in process
    #[arg(value_parser = values::path)]
    functions: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    function: FunctionFlags,
    /// OpenAPI v3 documents that functions may require schemas of, a directory of JSON files
    #[arg(long, value_name = "DIR", value_parser = values::path, help_heading = "Functions")]
    required_schemas: Option<PathBuf>,
    /// The object that a WatchOperation has seen change, a YAML file
    #[arg(short = 'w', long, value_name = "PATH", value_parser = values::existing_file)]
    watched_resource: Option<PathBuf>,
    /// Render again whenever one of the files changes, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    output: OutputFlags,
    /// Print the spec as it was given
    #[arg(short = 'o', long, help_heading = "Output")]
    include_full_operation: bool,
}

/// Everything that a render of an Operation is made from.
struct Inputs {
    operation: Object,
    functions: Vec<Function>,
    /// How much of the command's time it took to find them.
    spent: Duration,
    required: Vec<Object>,
    credentials: Vec<Object>,
    schemas: Vec<Object>,
    helper: Option<Arc<ContextHelper>>,
}

impl Again for OperationRender {
    fn sources(&self) -> Sources {
        let mut sources = Sources::of(&self.function, self.functions.as_deref());
        sources.flat.push(self.operation.clone());
        let optional = [&self.watched_resource, &self.engine.crossplane_binary];
        sources.flat.extend(optional.into_iter().flatten().cloned());
        sources.deep.extend(self.required_schemas.clone());
        sources
    }

    fn render_again(&self, up: &mut Up<'_>, streams: &mut Streams<'_>) -> Result<Vec<Value>> {
        let inputs = up.while_stuck(|| self.load(&mut Loader::new(streams)))?;
        let from = (&self.function, self.functions.as_deref());
        let runtime = up.runtime;
        let runners = up.functions(&inputs.functions, &inputs.operation, from, |runtime, up| {
            runtime.block_on(self.start(&inputs, up, streams))
        })?;
        runtime.block_on(self.render(inputs, runners, streams))
    }

    fn output_format(&self) -> OutputFormat {
        self.output.output_format
    }
}

impl OperationRender {
    /// Lets functions that are not in the box run in process.
    pub fn link(&mut self, own: &Registry) {
        self.function.own = own.clone();
    }

    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        if self.watch {
            self.sources().check()?;
            return watch::watch(self, streams);
        }
        let none = Runners::none(&streams.progress)?;
        let inputs = self.load(&mut Loader::new(streams))?;
        // Functions must be gone before what they run on.
        let runtime = asynchronous(false)?;
        let runners = runtime.block_on(self.start(&inputs, none, streams))?;
        let rendered = runtime.block_on(self.render(inputs, &runners, streams));
        runtime.block_on(runners.end());
        print::write(&rendered?, self.output.output_format, streams.stdout)
    }

    /// Reads every file.
    fn load(&self, loader: &mut Loader<'_, '_>) -> Result<Inputs> {
        let mut operation = self.load_operation(loader)?;
        let mut required = Vec::new();
        for path in values::paths(&self.function.required_resources) {
            required.extend(loader.resources(&path, "required resources")?);
        }
        let schemas = match &self.required_schemas {
            Some(path) => Loader::schemas(path)?,
            None => Vec::new(),
        };
        if let Some(path) = &self.watched_resource {
            let watched = loader.resources(path, "watched resource")?;
            let [watched] = watched.as_slice() else {
                bail!(
                    "--watched-resource must contain exactly one resource, got {}",
                    watched.len()
                );
            };
            require_watched(&mut operation, watched);
            required.push(watched.clone());
        }
        let (begun, limit) = (Instant::now(), self.engine.timeout);
        let listed = self.functions.as_deref();
        let functions = functions::load(listed, &operation, &self.function, limit, loader)?;
        let spent = begun.elapsed();
        let credentials = match &self.function.function_credentials {
            Some(path) => loader.secrets(path, "function credentials")?,
            None => Vec::new(),
        };
        let helper = ContextHelper::from_flags(&self.function, &self.output, &self.engine, loader)?;
        Ok(Inputs { operation, functions, spent, required, credentials, schemas, helper })
    }

    async fn start(
        &self,
        inputs: &Inputs,
        up: Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Runners> {
        let Inputs { operation, functions, .. } = inputs;
        let engine = Engine::of(&self.engine, What::Operation, functions);
        let time = (self.engine.timeout, inputs.spent);
        start::start(functions, operation, &self.function, &engine, time, up, streams).await
    }

    /// Has the engine run the Operation once.
    async fn render(
        &self,
        inputs: Inputs,
        runners: &Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let (mut operation, mut runners) = (inputs.operation, runners.clone());
        if let Some(helper) = &inputs.helper {
            helper.wrap(&mut operation, self.output.include_context);
            let helper = Running::in_process(helper.clone());
            runners.insert(context::FUNCTION.to_owned(), helper);
        }
        let request = RenderRequest {
            meta: Some(RequestMeta {}),
            input: Some(render_request::Input::Operation(OperationInput {
                operation: Some(Struct::from(operation.clone())),
                functions: Vec::new(),
                required_resources: structs(inputs.required),
                credentials: structs(inputs.credentials),
                required_schemas: structs(inputs.schemas),
            })),
        };
        let rendered = operation.id();
        let waiting = streams.progress.wait(|| format!("{rendered} to be rendered"));
        let timing = summary::Timing::new(self.output.timing);
        let wrap = |runner| timing.wrap(runner);
        let response = engine::render(What::Operation, request, &runners, &self.engine, wrap).await;
        drop(waiting);
        timing.report().iter().for_each(|line| streams.say(line));
        let response = response?;
        let Some(render_response::Output::Operation(output)) = response.output else {
            bail!("render response does not contain an operation output");
        };
        if self.output.summary {
            for line in summary::operation(&output) {
                streams.say(&line);
            }
        }
        self.documents(output, &operation, inputs.helper.and_then(|helper| helper.captured()))
    }

    /// The Operation itself, or the one that its parent would make.
    fn load_operation(&self, loader: &mut Loader<'_, '_>) -> Result<Object> {
        let (mut object, text) = loader.operation(&self.operation)?;
        let kind = match (object.api_version(), object.kind()) {
            (API_VERSION, "Operation") => (tables::OPERATION, Names::OPERATION),
            (API_VERSION, "CronOperation") => (tables::MAKER, Names::CRON_OPERATION),
            (API_VERSION, "WatchOperation") => (tables::MAKER, Names::WATCH_OPERATION),
            (api_version, kind) => {
                let problem = format!("not an operation type: {kind}/{api_version}");
                if object.is_empty() {
                    let file = self.operation.display();
                    bail!("{problem}\n--> {file}: there is no object in it");
                }
                let part = if api_version == API_VERSION { "kind" } else { "apiVersion" };
                return Err(load::complain(&self.operation, &text, part, problem));
            }
        };
        load::fit(&self.operation, &text, &mut object, kind).with_context(|| {
            format!("cannot unmarshal {} from {}", object.kind(), quoted(&self.operation))
        })?;
        if object.kind() == "Operation" {
            return Ok(typed::normal(&object, tables::OPERATION).into());
        }
        let template = object.at(&["spec", "operationTemplate"]).and_then(Value::as_object);
        let template = template.cloned().unwrap_or_default();
        let mut operation = Object::from(typed::normal(&template, tables::TEMPLATE));
        operation.set_at(&["apiVersion"], API_VERSION);
        operation.set_at(&["kind"], "Operation");
        operation.set_meta("name", object.name());
        Ok(operation)
    }

    fn documents(
        &self,
        output: OperationOutput,
        input: &Object,
        context: Option<Object>,
    ) -> Result<Vec<Value>> {
        // An Operation that has nothing left to do is not returned. Scripts know this text.
        let Some(operation) = output.operation else {
            bail!(
                "cannot replace condition timestamps in operation: cannot convert object to unstructured: ToUnstructured requires a non-nil pointer to an object, got *v1alpha1.Operation"
            );
        };
        let mut operation = operation.into_object();
        if self.include_full_operation
            && let Some(spec) = input.get("spec")
        {
            operation.set_at(&["spec"], spec.clone());
        }
        print::settle_times(&mut operation);
        let mut documents = vec![operation.into_value()];
        for applied in output.applied_resources {
            let mut applied = applied.into_object();
            print::settle_times(&mut applied);
            documents.push(applied.into_value());
        }
        if self.output.include_function_results {
            documents.extend(output.events.iter().map(print::result));
        }
        if self.output.include_context {
            documents.extend(context.map(|fields| context::document(fields.into_value())));
        }
        Ok(documents)
    }
}

/// Has every step require the watched object, as the control plane does.
fn require_watched(operation: &mut Object, watched: &Object) {
    let mut selector = json!({
        "requirementName": WATCHED,
        "apiVersion": watched.api_version(),
        "kind": watched.kind(),
        "name": watched.name(),
    });
    if !watched.namespace().is_empty() {
        selector["namespace"] = watched.namespace().into();
    }
    let Some(Value::Array(steps)) = operation.at(&["spec", "pipeline"]) else { return };
    let steps = steps.iter().map(|step| {
        let Some(mut step) = Object::from_value(step.clone()) else { return step.clone() };
        let path = ["requirements", "requiredResources"];
        let mut required = match step.at(&path) {
            Some(Value::Array(required)) => required.clone(),
            _ => Vec::new(),
        };
        required.push(selector.clone());
        step.set_at(&path, required);
        step.into_value()
    });
    let steps: Vec<_> = steps.collect();
    operation.set_at(&["spec", "pipeline"], steps);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RO-2, T-40
    #[test]
    fn every_step_requires_the_watched_object() {
        let object = |value: Value| Object::from_value(value).unwrap();
        let operation = json!({"spec": {"pipeline": [
            {"step": "a", "requirements": {"requiredResources": [{"requirementName": "x"}]}},
            {"step": "b"},
        ]}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "namespace": "n"}});
        let mut with_namespace = object(operation.clone());
        require_watched(&mut with_namespace, &object(secret));
        let selector = json!({"requirementName": WATCHED, "apiVersion": "v1", "kind": "Secret",
            "name": "s", "namespace": "n"});
        assert_eq!(
            with_namespace.at(&["spec", "pipeline"]).unwrap(),
            &json!([
                {"step": "a", "requirements": {"requiredResources": [{"requirementName": "x"}, selector]}},
                {"step": "b", "requirements": {"requiredResources": [selector]}},
            ])
        );

        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "s"}});
        let mut without = object(operation);
        require_watched(&mut without, &object(node));
        let steps = without.at(&["spec", "pipeline"]).unwrap();
        let selector = steps.pointer("/1/requirements/requiredResources/0").unwrap();
        assert_eq!(selector.get("namespace"), None);
    }
}
