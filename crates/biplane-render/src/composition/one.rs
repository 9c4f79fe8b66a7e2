//! One composite resource: from its inputs to the engine's answer, and from there to documents.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, RequestMeta, render_request, render_response,
};

use super::super::context;
use super::super::engine::{self, What};
use super::super::flags::{EngineFlags, OutputFormat};
use super::super::runners::{Runners, Running};
use super::super::{print, structs, summary, v1};
use super::{CompositionRender, Inputs, Say, owned};

/// What the engine made of a composite resource.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) output: CompositeOutput,
    /// The pipeline's context in the end, if it was captured.
    pub(super) context: Option<Object>,
    /// How long each call took, if someone wants to know.
    pub(super) timing: Vec<String>,
}

impl CompositionRender {
    /// The documents of one composite resource, after one reconcile or as many as it takes.
    pub(super) async fn render(
        &self,
        inputs: Inputs,
        runners: &Runners,
        say: Say<'_>,
    ) -> Result<Vec<Value>> {
        if self.until_stable {
            return self.settle(inputs, runners, say).await;
        }
        if self.output.output_format == OutputFormat::V1 {
            let flags = (&self.engine, &self.output);
            let whose = self.whose(&inputs.composite);
            let mut say = |line: &str| say(&format!("{whose}{line}"));
            return v1::render(&inputs, runners, flags, self.include_full_xr, &mut say).await;
        }
        let (composite, observed) = (inputs.composite.clone(), inputs.observed.clone());
        let answer = self.reconcile(inputs, runners, self.engine.timeout, say).await?;
        let mut lines = answer.timing.clone();
        if self.output.summary {
            lines.extend(summary::composite(&answer.output, &observed));
        }
        let whose = self.whose(&composite);
        for line in &lines {
            say(&format!("{whose}{line}"));
        }
        self.documents(answer, &composite)
    }

    /// Has the engine reconcile a composite resource once, within a time. What its calls took is
    /// said if that fails, and part of the answer otherwise.
    pub(super) async fn reconcile(
        &self,
        inputs: Inputs,
        runners: &Runners,
        timeout: Duration,
        say: Say<'_>,
    ) -> Result<Answer> {
        let composite = inputs.composite.id();
        let given = (inputs.composite.clone(), inputs.observed.clone());
        let _waiting = inputs.progress.wait(|| format!("{composite} to be rendered"));
        let mut runners = runners.clone();
        let mut composition = inputs.composition;
        if let Some(helper) = &inputs.context {
            helper.wrap(&mut composition, self.output.include_context);
            let helper = Running::in_process(helper.clone());
            runners.insert(context::FUNCTION.to_owned(), helper);
        }
        let request = RenderRequest {
            meta: Some(RequestMeta {}),
            input: Some(render_request::Input::Composite(CompositeInput {
                composite_resource: Some(Struct::from(inputs.composite)),
                composition: Some(Struct::from(composition)),
                functions: Vec::new(),
                observed_resources: structs(inputs.observed),
                // It is there anyway, and some engines would take this one for it.
                required_resources: structs(
                    inputs.required.into_iter().filter(|object| object.id() != composite),
                ),
                credentials: structs(inputs.credentials),
                required_schemas: structs(inputs.schemas),
                composite_resource_definition: inputs.definition.map(Struct::from),
            })),
        };
        let timing = summary::Timing::new(self.output.timing);
        let wrap = |runner| timing.wrap(runner);
        let flags = EngineFlags { timeout, ..self.engine.clone() };
        let response = engine::render(What::Composite, request, &runners, &flags, wrap).await;
        if response.is_err() {
            timing.report().iter().for_each(|line| say(line));
        }
        let response = response.map_err(|error| owned::explain(error, &given.0, &given.1))?;
        let Some(render_response::Output::Composite(output)) = response.output else {
            bail!("render response does not contain a composite output");
        };
        let context = inputs.context.and_then(|helper| helper.captured());
        Ok(Answer { output, context, timing: timing.report() })
    }

    fn documents(&self, answer: Answer, input: &Object) -> Result<Vec<Value>> {
        let Answer { output, context, .. } = answer;
        let composite = self.composite(output.composite_resource, input)?;
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

    /// The composite resource as it is printed.
    pub(super) fn composite(&self, rendered: Option<Struct>, input: &Object) -> Result<Object> {
        let rendered = rendered.ok_or_else(|| {
            anyhow!("cannot parse render response: there is no composite resource in it")
        })?;
        let mut composite = rendered.into_object();
        if self.include_full_xr {
            let mut full = input.clone();
            print::overlay(full.make_mut(), &composite);
            composite = full;
        }
        print::settle_times(&mut composite);
        Ok(composite)
    }
}
