//! Reconciles one composite resource: turns its inputs into a request to the engine, and the
//! response into documents.

use anyhow::{Error, Result, anyhow, bail};
use biplane_console::deadline::DeadlineExceeded;
use biplane_console::{Deadline, Interrupted};
use biplane_manifest::Line;
use biplane_model::object::overlay;
use biplane_model::{Object, Value};
use biplane_proto::Struct;
use biplane_proto::render::v1alpha1::{
    CompositeInput, CompositeOutput, RenderRequest, RequestMeta, render_request, render_response,
};
use biplane_runtime::{Runners, Subject};

use super::{CompositionRender, Inputs, Say, foreign_owner, step};
use crate::engine::Manner;
use crate::{context, engine, hints, print, structs, summary, v1};

/// The result of a reconcile.
#[derive(Debug)]
pub(super) struct RenderedXr {
    pub(super) output: CompositeOutput,
    /// The final context of the pipeline, if it was captured.
    pub(super) context: Option<Object>,
}

impl CompositionRender {
    /// The documents of one composite resource, after one reconcile or until it is stable.
    pub(super) async fn render(
        &self,
        inputs: Inputs,
        runners: &Runners,
        deadline: Deadline,
        say: Say<'_>,
    ) -> Result<Vec<Value>> {
        if let Some(until_stable) = &self.until_stable {
            return self.render_until_stable(until_stable, inputs, runners, deadline, say).await;
        }
        let manner = self.manner(&inputs.composition);
        if self.output.line == Line::V1 && !manner.release.is_v1() {
            let prefix = self.prefix(&inputs.composite);
            let mut say = |line: &str| say(&format!("{prefix}{line}"));
            let v1 = v1::V1Render {
                composite: &inputs.composite,
                composition: &inputs.composition,
                observed: &inputs.observed,
                required: &inputs.required,
                credentials: &inputs.credentials,
                context: &inputs.context_texts,
                output: self.output,
                include_full_xr: self.include_full_xr,
            };
            return v1.run(runners, deadline, &mut say).await;
        }
        let (composite, observed) = (inputs.composite.clone(), inputs.observed.clone());
        let (timing, answer) = self.reconcile(inputs, runners, deadline).await;
        if answer.is_err() {
            for line in &timing {
                say(line);
            }
        }
        let answer = answer?;
        let mut lines = timing;
        if self.output.summary {
            let unready = summary::unready(&answer.output);
            lines.extend(summary::composite(&answer.output, &unready, &observed));
        }
        let prefix = self.prefix(&composite);
        for line in &lines {
            say(&format!("{prefix}{line}"));
        }
        self.to_documents(answer, &composite, manner)
    }

    /// Calls the engine to reconcile a composite resource once. Also returns the duration of each
    /// call, if requested.
    pub(super) async fn reconcile(
        &self,
        inputs: Inputs,
        runners: &Runners,
        deadline: Deadline,
    ) -> (Vec<String>, Result<RenderedXr>) {
        let timing = summary::Timing::new(self.output.timing);
        let answer = self.ask_engine(inputs, runners, deadline, &timing).await;
        (timing.report(), answer)
    }

    async fn ask_engine(
        &self,
        inputs: Inputs,
        runners: &Runners,
        deadline: Deadline,
        timing: &summary::Timing,
    ) -> Result<RenderedXr> {
        let composite = inputs.composite.id();
        let given = inputs.clone();
        let _waiting = inputs.progress.wait(|| format!("{composite} to be rendered"));
        let mut runners = runners.clone();
        let mut composition = inputs.composition;
        if let Some(helper) = &inputs.context {
            context::add(helper, &mut composition, self.output, &mut runners);
        }
        let request = RenderRequest {
            meta: Some(RequestMeta {}),
            input: Some(render_request::Input::Composite(CompositeInput {
                composite_resource: Some(Struct::from(inputs.composite)),
                composition: Some(Struct::from(composition)),
                functions: Vec::new(),
                observed_resources: structs(inputs.observed),
                // The composite resource exists anyway, and some engines would use this copy
                // instead.
                required_resources: structs(
                    inputs.required.into_iter().filter(|object| object.id() != composite),
                ),
                credentials: structs(inputs.credentials),
                required_schemas: structs(inputs.schemas),
                composite_resource_definition: inputs.definition.map(Struct::from),
            })),
        };
        let subject = Subject::Composite;
        let inspection = self.function.inspection.as_ref();
        let watching = engine::Watching { timing, inspection };
        let manner = self.manner(&given.composition);
        let response =
            engine::render(&self.engine, subject, request, &runners, deadline, manner, watching)
                .await;
        let response = response.map_err(|error| self.explain_failure(error, &given))?;
        let Some(render_response::Output::Composite(output)) = response.output else {
            bail!("render response does not contain a composite output");
        };
        let context = inputs.context.and_then(|helper| helper.captured());
        Ok(RenderedXr { output, context })
    }

    /// Adds advice to an error of the engine.
    pub(super) fn explain_failure(&self, error: Error, inputs: &Inputs) -> Error {
        if error.is::<Interrupted>() || error.is::<DeadlineExceeded>() {
            return error;
        }
        let nests = self.until_stable.is_some();
        let registry = &self.function.runtime.registry;
        let error = step::explain(error, &inputs.composition, inputs.origin.as_ref(), registry);
        let error = foreign_owner::explain(error, &inputs.composite, &inputs.observed, nests);
        hints::explain(error, &inputs.composition, &inputs.credentials, &inputs.required)
    }

    fn to_documents(
        &self,
        answer: RenderedXr,
        input: &Object,
        manner: Manner,
    ) -> Result<Vec<Value>> {
        let RenderedXr { output, context, .. } = answer;
        let composite = self.composite(output.composite_resource, input)?;
        let mut composed: Vec<_> =
            output.composed_resources.into_iter().map(Struct::into_object).collect();
        composed.iter_mut().for_each(print::fix_conditions);
        // Templates have an order of their own.
        if !manner.resources_mode {
            print::sort(&mut composed);
        }

        let mut documents = vec![composite.into_value()];
        documents.extend(composed.into_iter().map(Object::into_value));
        if self.output.results {
            documents.extend(output.events.iter().map(print::result));
        }
        if self.output.context {
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
            let full = overlay(input.clone().into_map(), composite.into_map());
            composite = Object::from(full);
        }
        print::fix_conditions(&mut composite);
        Ok(composite)
    }
}
