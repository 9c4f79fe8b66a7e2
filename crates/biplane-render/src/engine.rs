//! Sends a request to the render engine: the built-in one, another binary that implements the
//! protocol, or such a binary in a container.

mod container;
mod foreign;

use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use biplane_console::Deadline;
use biplane_engine::FixedClock;
use biplane_engine::composite::Release;
use biplane_engine::composite::report::{Missing, NotYet};
use biplane_engine::render::{RenderError, Settings};
use biplane_engine::sources::{CountingIds, Ids, SystemIds};
use biplane_proto::render::v1alpha1::{
    Event, RenderRequest, RenderResponse, render_response::Output,
};
use biplane_runner::{FunctionRunner, Inspection};
use biplane_runtime::{Engine, Runners, Subject};

use crate::RENDER_TIME;
use crate::summary::Timing;

/// What the built-in engine does that the protocol has no words for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// The release that a composite resource is rendered like.
    pub(crate) release: Release,
    /// Whether Compositions of mode Resources are rendered.
    pub(crate) resources_mode: bool,
    /// Whether Compositions have environments.
    pub(crate) environments: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { release: Release::V2, resources_mode: false, environments: false }
    }
}

/// What watches a render: how long calls take, and who is told about them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching<'a> {
    pub(crate) timing: &'a Timing,
    pub(crate) inspection: Option<&'a Inspection>,
}

/// Renders with an engine before a deadline.
pub(crate) async fn render(
    engine: &Engine,
    subject: Subject,
    request: RenderRequest,
    runners: &Runners,
    deadline: Deadline,
    manner: Manner,
    watching: Watching<'_>,
) -> Result<RenderResponse> {
    deadline.check().context(subject.attempted())?;
    match engine {
        Engine::BuiltIn => {
            let runner = watching.timing.runner(runners.named());
            let render = built_in(request, runner, deadline, manner, watching.inspection);
            runners.unless_interrupted(render).await
        }
        Engine::Binary(binary) => {
            let render = async {
                let rendered = foreign::render(binary, request, runners, deadline).await;
                rendered.context(subject.attempted())
            };
            runners.unless_interrupted(render).await.map(with_ordered_events)
        }
        Engine::Image(image) => {
            // Few renders need this large future, so that the others do not carry it.
            let render = Box::pin(container::render(image, request, runners, deadline));
            render.await.map(with_ordered_events)
        }
    }
}

/// Sorts the events about composed resources that are invalid or not ready by the names of the
/// resources. Other engines iterate over an unordered map there; all their other output is ordered.
fn with_ordered_events(mut response: RenderResponse) -> RenderResponse {
    fn key(event: &Event) -> Option<(String, bool)> {
        let not_yet = NotYet::read(&event.message)?;
        Some((not_yet.resource, not_yet.missing == Missing::Ready))
    }
    if let Some(Output::Composite(output)) = &mut response.output {
        let mut unready: Vec<_> =
            output.events.iter().filter(|event| key(event).is_some()).cloned().collect();
        unready.sort_by_cached_key(key);
        let places = output.events.iter_mut().filter(|event| key(event).is_some());
        for (place, event) in places.zip(unready) {
            *place = event;
        }
    }
    response
}

async fn built_in(
    request: RenderRequest,
    runner: Arc<dyn FunctionRunner>,
    deadline: Deadline,
    manner: Manner,
    inspection: Option<&Inspection>,
) -> Result<RenderResponse> {
    let clock = FixedClock(RENDER_TIME.parse()?);
    let ids = ids(inspection);
    let timeout = deadline.remaining();
    let inspection = inspection.cloned();
    let Manner { release, resources_mode, environments } = manner;
    let clock = Arc::new(clock);
    let settings =
        Settings { clock, ids, timeout, inspection, release, resources_mode, environments };
    match biplane_engine::render::render(request, runner, &settings).await {
        Ok(response) => Ok(response),
        Err(RenderError::Fatal { text, .. } | RenderError::Failed(text)) => Err(anyhow!(text)),
    }
}

/// The ids of one reconcile. Random ids are replaced by a counter, so that the same input gives the
/// same output.
pub(crate) fn ids(inspection: Option<&Inspection>) -> Arc<dyn Ids> {
    match inspection {
        Some(_) => Arc::new(TracedIds::default()),
        None => Arc::new(CountingIds::default()),
    }
}

/// Counts like [`CountingIds`], but UUIDs are random. They are the trace ids of runs, by which a
/// receiver of emissions tells one run from another, and they are not printed.
#[derive(Debug, Default)]
struct TracedIds(CountingIds);

impl Ids for TracedIds {
    fn uuid(&self) -> String {
        // The numbers after it are those of a render that is not inspected.
        self.0.uuid();
        SystemIds.uuid()
    }

    fn number(&self) -> u64 {
        self.0.number()
    }
}

#[cfg(test)]
mod tests {
    use biplane_proto::render::v1alpha1::CompositeOutput;

    use super::*;

    #[test]
    fn events_of_other_engines_come_in_a_defined_order() {
        let event = |message: &str| Event { message: message.to_owned(), ..Event::default() };
        let not = |what: &str, name: &str| {
            event(&format!("Composed resource {name:?} is not yet {what}"))
        };
        let ordered = |events: Vec<Event>| {
            let output = CompositeOutput { events, ..CompositeOutput::default() };
            let output = Some(Output::Composite(output));
            let response = with_ordered_events(RenderResponse { output, ..Default::default() });
            let Some(Output::Composite(output)) = response.output else { panic!("{response:?}") };
            output.events
        };
        assert_eq!(
            ordered(vec![
                event("z"),
                not("ready", "b"),
                event("m"),
                not("valid", "a"),
                not("ready", "a"),
                event("a"),
            ]),
            [
                event("z"),
                not("valid", "a"),
                event("m"),
                not("ready", "a"),
                not("ready", "b"),
                event("a"),
            ]
        );
    }
}
