//! `composition render`: what the control plane would do about a composite resource.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, anyhow, bail};
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, RequestMeta, render_request, render_response,
};
use clap::{ArgAction, Args};

use super::context::{self, ContextHelper};
use super::engine::What;
use super::flags::{EngineFlags, FunctionFlags, OutputFlags, OutputFormat};
use super::functions::{Runners, Running};
use super::load::Loader;
use super::runtime::Function;
use super::{block_on, checks, defaults, engine, functions, print, structs, summary, v1};
use crate::cli::values;
use crate::streams::Streams;

const EXAMPLES: &str = "\
Examples:
  # What a composite resource becomes
  biplane render xr.yaml composition.yaml functions.yaml

  # With resources that exist already, and what functions had to say
  biplane render xr.yaml composition.yaml functions.yaml -o observed.yaml -r

  # Many composite resources of one kind
  biplane render composition.yaml functions.yaml --xrs xrs/

  # Without a functions file, when every function is one that runs in process
  biplane render xr.yaml composition.yaml";

/// Shows what the control plane would do about a composite resource
///
/// Prints the composite resource as it would become and the resources that it would be composed of.
/// Functions that biplane brings along run in process; no cluster and no Docker is needed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct CompositionRender {
    /// The composite resource (XR), a YAML file
    #[arg(value_name = "COMPOSITE-RESOURCE", value_parser = values::existing_file)]
    composite_resource: PathBuf,
    /// The Composition, a YAML file; must be of mode Pipeline
    #[arg(value_parser = values::existing_file, required_unless_present = "xrs")]
    composition: Option<PathBuf>,
    /// The Functions, a YAML file or a directory of such; optional when all of them run in process
    #[arg(value_parser = values::path)]
    functions: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    function: FunctionFlags,
    /// Resources that functions may require (deprecated, use --required-resources)
    #[arg(long, value_name = "PATH", action = ArgAction::Append, help_heading = "Functions")]
    extra_resources: Vec<String>,
    /// OpenAPI v3 documents that functions may require schemas of, a directory of JSON files
    #[arg(short = 's', long, value_name = "DIR", value_parser = values::path,
        help_heading = "Functions")]
    required_schemas: Option<PathBuf>,
    /// Composed resources that exist, from a file or a directory
    #[arg(short = 'o', long, value_name = "PATH", value_parser = values::path)]
    observed_resources: Option<PathBuf>,
    /// The XR's CompositeResourceDefinition: its defaults are applied, its layout is used
    #[arg(long, value_name = "PATH", value_parser = values::existing_file)]
    xrd: Option<PathBuf>,
    /// Render every XR of a file or a directory; leave out the composite resource argument
    #[arg(long, value_name = "PATH", value_parser = values::path)]
    xrs: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
    /// Print the whole XR: what it would become over what it is
    #[arg(short = 'x', long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_name = "BOOL", hide_possible_values = true,
        hide_default_value = true, help_heading = "Output")]
    include_full_xr: bool,
}

/// What is printed about one composite resource.
#[derive(Debug)]
struct Rendered {
    documents: Vec<Value>,
    /// Lines for stderr.
    notes: Vec<String>,
}

/// Everything that a render of a composite resource is made from.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    pub composite: Object,
    pub composition: Object,
    pub functions: Vec<Function>,
    pub definition: Option<Object>,
    pub credentials: Vec<Object>,
    pub observed: Vec<Object>,
    pub required: Vec<Object>,
    pub schemas: Vec<Object>,
    pub context: Option<Arc<ContextHelper>>,
}

impl Inputs {
    /// The same for another composite resource.
    fn of(&self, composite: Object) -> Self {
        let context = self.context.as_ref().map(|helper| Arc::new(helper.afresh()));
        Self { composite, context, ..self.clone() }
    }
}

impl CompositionRender {
    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        let (inputs, composites) = self.load(&mut Loader::new(streams))?;
        let documents = if self.output.output_format == OutputFormat::V1 {
            let flags = (&self.function, &self.engine, &self.output);
            let mut documents = Vec::new();
            for composite in composites {
                let inputs = inputs.of(composite);
                documents.extend(v1::render(&inputs, flags, self.include_full_xr, streams)?);
            }
            documents
        } else if let [composite] = composites.as_slice() {
            block_on(async {
                let runners = self.start(&inputs, streams)?;
                let rendered = self.render(inputs.of(composite.clone()), runners).await?;
                rendered.notes.iter().for_each(|line| streams.say(line));
                Ok(rendered.documents)
            })?
        } else {
            self.render_all(&inputs, &composites, streams)?
        };
        print::write(&documents, self.output.output_format, streams.stdout)
    }

    /// Renders many composite resources with one set of functions, as many at a time as there are
    /// processors. Documents come in the order of the input.
    fn render_all(
        &self,
        inputs: &Inputs,
        composites: &[Object],
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let runners = runtime.block_on(async { self.start(inputs, streams) })?;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(composite) = composites.get(index) else { return done };
                let render = self.render(inputs.of(composite.clone()), runners.clone());
                let rendered = runtime.handle().block_on(render);
                let name = || format!("{} {:?}", composite.kind(), composite.name());
                done.push((index, rendered.with_context(name)));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..workers.min(composites.len())).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
        });
        all.sort_by_key(|(index, _)| *index);
        let mut documents = Vec::new();
        for (_, rendered) in all {
            let rendered = rendered?;
            rendered.notes.iter().for_each(|line| streams.say(line));
            documents.extend(rendered.documents);
        }
        Ok(documents)
    }

    fn start(&self, inputs: &Inputs, streams: &mut Streams<'_>) -> Result<Runners> {
        functions::start(&inputs.functions, &inputs.composition, &self.function, streams)
    }

    /// The files of the Composition and of the functions. Without a composite resource among the
    /// arguments they stand one place earlier.
    fn files(&self) -> Result<(&Path, Option<&Path>)> {
        match (&self.xrs, &self.composition) {
            (None, Some(composition)) => Ok((composition, self.functions.as_deref())),
            (Some(_), functions) if self.functions.is_none() => {
                Ok((&self.composite_resource, functions.as_deref()))
            }
            _ => bail!("--xrs takes the place of the composite resource argument"),
        }
    }

    fn load(&self, loader: &mut Loader<'_, '_>) -> Result<(Inputs, Vec<Object>)> {
        let (composition, functions) = self.files()?;
        let mut composites = match &self.xrs {
            Some(path) => loader.resources(path, "composite resources")?,
            None => vec![loader.composite(&self.composite_resource)?],
        };
        let composition = loader.composition(composition)?;
        for composite in &composites {
            checks::check(composite, &composition, self.output.output_format)?;
        }
        let functions = functions::load(functions, &composition, &self.function, loader)?;
        let definition = match &self.xrd {
            Some(path) => {
                let definition = loader.definition(path)?;
                for composite in &mut composites {
                    defaults::apply(composite, &definition)?;
                }
                Some(definition)
            }
            None => None,
        };
        let credentials = match &self.function.function_credentials {
            Some(path) => loader.secrets(path, "secrets")?,
            None => Vec::new(),
        };
        let observed = match &self.observed_resources {
            Some(path) => loader.observed(path)?,
            None => Vec::new(),
        };
        let mut required = Vec::new();
        for path in values::paths(&self.function.required_resources) {
            required.extend(loader.resources(&path, "required resources")?);
        }
        for path in values::paths(&self.extra_resources) {
            required.extend(loader.resources(&path, "extra resources")?);
        }
        let schemas = match &self.required_schemas {
            Some(path) => Loader::schemas(path)?,
            None => Vec::new(),
        };
        let context = ContextHelper::from_flags(&self.function, &self.output, loader)?;
        let inputs = Inputs {
            composite: Object::new(),
            composition,
            functions,
            definition,
            credentials,
            observed,
            required,
            schemas,
            context,
        };
        Ok((inputs, composites))
    }

    async fn render(&self, inputs: Inputs, mut runners: Runners) -> Result<Rendered> {
        let mut composition = inputs.composition;
        if let Some(helper) = &inputs.context {
            helper.wrap(&mut composition, self.output.include_context);
            let helper = Running::in_process(helper.clone());
            runners.insert(context::FUNCTION.to_owned(), helper);
        }
        let observed = inputs.observed.clone();
        let request = RenderRequest {
            meta: Some(RequestMeta {}),
            input: Some(render_request::Input::Composite(CompositeInput {
                composite_resource: Some(Struct::from(inputs.composite.clone())),
                composition: Some(Struct::from(composition)),
                functions: Vec::new(),
                observed_resources: structs(inputs.observed),
                required_resources: structs(inputs.required),
                credentials: structs(inputs.credentials),
                required_schemas: structs(inputs.schemas),
                composite_resource_definition: inputs.definition.map(Struct::from),
            })),
        };
        let timing = summary::Timing::new(self.output.timing);
        let wrap = |runner| timing.wrap(runner);
        let response =
            engine::render(What::Composite, request, &runners, &self.engine, wrap).await?;
        let Some(render_response::Output::Composite(output)) = response.output else {
            bail!("render response does not contain a composite output");
        };
        let mut notes = timing.report();
        if self.output.summary {
            notes.extend(summary::composite(&output, &observed));
        }
        let context = inputs.context.and_then(|helper| helper.captured());
        Ok(Rendered { documents: self.documents(output, &inputs.composite, context)?, notes })
    }

    fn documents(
        &self,
        output: CompositeOutput,
        input: &Object,
        context: Option<Object>,
    ) -> Result<Vec<Value>> {
        let composite = output.composite_resource.ok_or_else(|| {
            anyhow!("cannot parse render response: there is no composite resource in it")
        })?;
        let mut composite = composite.into_object();
        if self.include_full_xr {
            let mut full = input.clone();
            print::overlay(full.make_mut(), &composite);
            composite = full;
        }
        print::settle_times(&mut composite);
        let mut composed: Vec<_> =
            output.composed_resources.into_iter().map(Struct::into_object).collect();
        composed.iter_mut().for_each(print::settle_times);
        print::sort(&mut composed);

        let mut documents = vec![composite.into_value()];
        documents.extend(composed.into_iter().map(Object::into_value));
        if self.output.include_function_results {
            documents.extend(output.events.iter().map(print::result));
        }
        if self.output.include_context {
            documents.extend(context.map(|fields| context::document(fields.into_value())));
        }
        Ok(documents)
    }
}
