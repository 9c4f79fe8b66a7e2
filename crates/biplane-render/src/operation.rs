//! Renders an Operation from files: shows what the control plane would do with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use biplane_console::deadline::DeadlineExceeded;
use biplane_console::{Deadline, Interrupted, Streams};
use biplane_engine::operation::watch_operation::require_watched;
use biplane_manifest::Loader;
use biplane_manifest::loader::{self, quoted};
use biplane_model::typed::{self, Names, tables};
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    OperationInput, OperationOutput, RenderRequest, RequestMeta, render_request, render_response,
};
use biplane_runner::ContextHelper;
use biplane_runtime::{Engine, Function, Runners, Subject};

use crate::options::{Format, FunctionOptions, OutputOptions};
use crate::warm::WarmFunctions;
use crate::watch_files::{self, Repeatable, Sources, Watched};
use crate::{
    asynchronous, context, end_functions, engine, functions, hints, print, structs, summary,
};

const API_VERSION: &str = "ops.crossplane.io/v1alpha1";

/// The input files and the options of a render.
#[derive(Clone, Debug)]
pub struct OperationRender {
    /// The Operation, CronOperation or WatchOperation.
    pub operation: PathBuf,
    /// The Functions; if unset, those of the project and the built-in ones.
    pub functions: Option<PathBuf>,
    /// The engine that renders.
    pub engine: Engine,
    /// The time limit for the whole render.
    pub timeout: Duration,
    /// How functions are found and started, and their input.
    pub function: FunctionOptions,
    /// The changed object that triggered a WatchOperation.
    pub watched_resource: Option<PathBuf>,
    /// What is printed, and how.
    pub output: OutputOptions,
    /// Whether the spec is printed as given.
    pub include_full_operation: bool,
}

/// All inputs of the render of an Operation.
struct Inputs {
    operation: Object,
    functions: Vec<Function>,
    required: Vec<Object>,
    credentials: Vec<Object>,
    schemas: Vec<Object>,
    helper: Option<Arc<ContextHelper>>,
}

impl Repeatable for OperationRender {
    fn sources(&self) -> Sources {
        let mut sources = Sources::of(&self.function, self.functions.as_deref());
        sources.flat.push(self.operation.clone());
        sources.flat.extend(self.watched_resource.clone());
        if let Engine::Binary(binary) = &self.engine {
            sources.flat.push(binary.clone());
        }
        sources
    }

    fn render_again(
        &self,
        warm: &mut WarmFunctions<'_>,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let deadline = Deadline::after(self.timeout);
        let load = || self.load(&mut Loader::new(streams, deadline));
        let inputs = warm.run_interruptible(load)?;
        let from = (&self.function, self.functions.as_deref());
        let runtime = warm.runtime;
        let runners =
            warm.functions(&inputs.functions, &inputs.operation, from, |runtime, up| {
                runtime.block_on(self.start(&inputs, deadline, up, streams))
            })?;
        runtime.block_on(self.render(inputs, runners, deadline, streams))
    }

    fn format(&self) -> Format {
        self.output.format
    }
}

impl OperationRender {
    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        let documents = self.documents(streams)?;
        print::write(&documents, self.output.format, streams.stdout)
    }

    /// Renders. When this returns, the functions have ended.
    pub fn documents(&self, streams: &mut Streams<'_>) -> Result<Vec<Value>> {
        let deadline = Deadline::after(self.timeout);
        let none = Runners::none(&streams.progress)?;
        let inputs = self.load(&mut Loader::new(streams, deadline))?;
        // Functions must end before the runtime that they run on.
        let runtime = asynchronous(false)?;
        let runners = runtime.block_on(self.start(&inputs, deadline, none, streams))?;
        let rendered = runtime.block_on(self.render(inputs, &runners, deadline, streams));
        end_functions(&runtime, runners, rendered)
    }

    /// Renders and prints, now and whenever one of the files changes.
    pub fn watch(&self, streams: &mut Streams<'_>) -> Result<Watched> {
        watch_files::watch(self, streams)
    }

    /// Whether standard input is among the files that are read.
    pub fn reads_stdin(&self) -> bool {
        self.sources().has_stdin()
    }

    /// Reads every file.
    fn load(&self, loader: &mut Loader<'_, '_>) -> Result<Inputs> {
        let mut operation = self.load_operation(loader)?;
        let mut required = Vec::new();
        for path in &self.function.required_resources {
            required.extend(loader.resources(path, "required resources")?);
        }
        let schemas = match &self.function.required_schemas {
            Some(path) => loader.schemas(path)?,
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
        let listed = self.functions.as_deref();
        let functions = functions::load(listed, &operation, &self.function, loader)?;
        let credentials = match &self.function.credentials {
            Some(path) => loader.secrets(path, "function credentials")?,
            None => Vec::new(),
        };
        let helper = context::helper(&self.function, self.output, &self.engine, loader)?;
        Ok(Inputs { operation, functions, required, credentials, schemas, helper })
    }

    async fn start(
        &self,
        inputs: &Inputs,
        deadline: Deadline,
        up: Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Runners> {
        let Inputs { operation, functions, .. } = inputs;
        let (options, engine) = (&self.function.runtime, &self.engine);
        biplane_runtime::start(functions, operation, options, engine, deadline, up, streams).await
    }

    /// Calls the engine to run the Operation once.
    async fn render(
        &self,
        inputs: Inputs,
        runners: &Runners,
        deadline: Deadline,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let (mut operation, mut runners) = (inputs.operation, runners.clone());
        let given = (inputs.credentials.clone(), inputs.required.clone());
        if let Some(helper) = &inputs.helper {
            context::add(helper, &mut operation, self.output, &mut runners);
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
        let subject = Subject::Operation;
        let inspection = self.function.inspection.as_ref();
        let watching = engine::Watching { timing: &timing, inspection };
        let manner = engine::Manner::default();
        let response =
            engine::render(&self.engine, subject, request, &runners, deadline, manner, watching)
                .await;
        drop(waiting);
        timing.report().iter().for_each(|line| streams.say(line));
        let response = response.map_err(|error| {
            if error.is::<Interrupted>() || error.is::<DeadlineExceeded>() {
                return error;
            }
            hints::explain(error, &operation, &given.0, &given.1)
        })?;
        let Some(render_response::Output::Operation(output)) = response.output else {
            bail!("render response does not contain an operation output");
        };
        if self.output.summary {
            for line in summary::operation(&output) {
                streams.say(&line);
            }
        }
        self.to_documents(output, &operation, inputs.helper.and_then(|helper| helper.captured()))
    }

    /// The Operation itself, or the one that a CronOperation or WatchOperation would create.
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
                return Err(loader::complain(&self.operation, &text, part, problem));
            }
        };
        loader::fit(&self.operation, &text, &mut object, kind).with_context(|| {
            format!("cannot unmarshal {} from {}", object.kind(), quoted(&self.operation))
        })?;
        if object.kind() == "Operation" {
            return Ok(typed::normal(&object, tables::OPERATION).into());
        }
        let template = object.at(&["spec", "operationTemplate"]).and_then(Value::as_object);
        let template = template.cloned().unwrap_or_default();
        let mut operation = Object::from(typed::normal(&template, tables::TEMPLATE));
        operation.set_at_or_ignore(&["apiVersion"], API_VERSION);
        operation.set_at_or_ignore(&["kind"], "Operation");
        operation.set_meta("name", object.name());
        Ok(operation)
    }

    fn to_documents(
        &self,
        output: OperationOutput,
        input: &Object,
        context: Option<Object>,
    ) -> Result<Vec<Value>> {
        // An Operation that has already finished is not returned. Scripts match on this message.
        let Some(operation) = output.operation else {
            bail!(
                "cannot replace condition timestamps in operation: cannot convert object to unstructured: ToUnstructured requires a non-nil pointer to an object, got *v1alpha1.Operation"
            );
        };
        let mut operation = operation.into_object();
        if self.include_full_operation
            && let Some(spec) = input.get("spec")
        {
            operation.set_at_or_ignore(&["spec"], spec.clone());
        }
        print::fix_times(&mut operation);
        let mut documents = vec![operation.into_value()];
        for applied in output.applied_resources {
            let mut applied = applied.into_object();
            print::fix_conditions(&mut applied);
            documents.push(applied.into_value());
        }
        if self.output.results {
            documents.extend(output.events.iter().map(print::result));
        }
        if self.output.context {
            documents.extend(context.map(|fields| context::document(fields.into_value())));
        }
        Ok(documents)
    }
}
