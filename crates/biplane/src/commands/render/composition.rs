//! `composition render`: what the control plane would do about a composite resource.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, RequestMeta, render_request, render_response,
};
use clap::{ArgAction, Args};

use super::context::{self, ContextHelper};
use super::engine::What;
use super::flags::{EngineFlags, FunctionFlags, OutputFlags, OutputFormat};
use super::functions::Running;
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
    #[arg(value_parser = values::existing_file)]
    composition: PathBuf,
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
    #[command(flatten)]
    output: OutputFlags,
    /// Print the whole XR: what it would become over what it is
    #[arg(short = 'x', long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_name = "BOOL", hide_possible_values = true,
        hide_default_value = true, help_heading = "Output")]
    include_full_xr: bool,
}

/// Everything that a render of a composite resource is made from.
#[derive(Debug)]
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

impl CompositionRender {
    /// Renders and prints.
    pub fn run(&self, streams: &mut Streams<'_>) -> Result<()> {
        let inputs = self.load(&mut Loader::new(streams))?;
        let documents = if self.output.output_format == OutputFormat::V1 {
            v1::render(
                &inputs,
                &self.function,
                &self.engine,
                &self.output,
                self.include_full_xr,
                streams,
            )?
        } else {
            self.render(inputs, streams)?
        };
        print::write(&documents, self.output.output_format, streams.stdout)
    }

    fn load(&self, loader: &mut Loader<'_, '_>) -> Result<Inputs> {
        let mut composite = loader.composite(&self.composite_resource)?;
        let composition = loader.composition(&self.composition)?;
        checks::check(&composite, &composition, self.output.output_format)?;
        let functions =
            functions::load(self.functions.as_deref(), &composition, &self.function, loader)?;
        let definition = match &self.xrd {
            Some(path) => {
                let definition = loader.definition(path)?;
                defaults::apply(&mut composite, &definition)?;
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
        Ok(Inputs {
            composite,
            composition,
            functions,
            definition,
            credentials,
            observed,
            required,
            schemas,
            context,
        })
    }

    fn render(&self, inputs: Inputs, streams: &mut Streams<'_>) -> Result<Vec<Value>> {
        block_on(async {
            let mut composition = inputs.composition;
            let mut runners =
                functions::start(&inputs.functions, &composition, &self.function, streams)?;
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
            let response = engine::render(What::Composite, request, &runners, &self.engine, |r| {
                timing.wrap(r)
            })
            .await?;
            let Some(render_response::Output::Composite(output)) = response.output else {
                bail!("render response does not contain a composite output");
            };
            timing.report(streams);
            if self.output.summary {
                summary::composite(&output, &observed, streams);
            }
            let context = inputs.context.and_then(|helper| helper.captured());
            self.documents(output, &inputs.composite, context)
        })
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
