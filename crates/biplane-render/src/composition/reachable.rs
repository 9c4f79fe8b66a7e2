//! Which Compositions matter: that of the composite resource, and those of the composite resources that
//! turn up below it. The functions of all others are not started, so that a folder may hold more
//! Compositions than are needed.

use std::fmt;

use anyhow::Result;
use biplane_console::{Deadline, Streams};
use biplane_manifest::Loader;
use biplane_model::{Object, Value};
use biplane_runtime::Runners;
use tokio::runtime::Runtime;

use super::{CompositionRender, Inputs};
use crate::functions;

/// Composite resources turned up whose functions are not started yet.
#[derive(Clone, Debug)]
pub(super) struct Unreached(
    /// The Compositions that call them.
    pub(super) Vec<Object>,
);

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(Object::name).collect();
        write!(f, "the functions of Compositions that are not started: {}", names.join(", "))
    }
}

impl std::error::Error for Unreached {}

impl Inputs {
    /// Whether the functions of a Composition are among those that are started.
    pub(super) fn has_reached(&self, composition: &Object) -> bool {
        let is_it = |one: &Object| one.same(composition) || one == composition;
        is_it(&self.composition) || self.reached.iter().any(is_it)
    }

    /// The pipelines of all Compositions that are reached, as one, to tell which functions are called.
    pub(super) fn pipelines(&self) -> Object {
        let steps = |composition: &Object| match composition.at(&["spec", "pipeline"]) {
            Some(Value::Array(steps)) => steps.clone(),
            _ => Vec::new(),
        };
        let mut all = self.composition.clone();
        if !self.reached.is_empty() {
            let compositions = std::iter::once(&self.composition).chain(&self.reached);
            all.set_at(&["spec", "pipeline"], compositions.flat_map(steps).collect::<Vec<_>>());
        }
        all
    }
}

impl CompositionRender {
    /// The documents of all composite resources. When one turns up whose functions are not started,
    /// they are, and everything is rendered again: rendering is deterministic up to there.
    pub(super) fn render_reachable(
        &self,
        runtime: &Runtime,
        inputs: &mut Inputs,
        composites: &[Object],
        deadline: Deadline,
        mut provide: impl FnMut(&Inputs, &mut Streams<'_>) -> Result<Runners>,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let mut said = 0;
        loop {
            let runners = provide(inputs, streams)?;
            let called = (&runners, deadline);
            let rendered =
                self.render_each(runtime, inputs, composites, called, &mut said, streams);
            let error = match rendered {
                Ok(documents) => return Ok(documents),
                Err(error) => error,
            };
            let Some(Unreached(more)) = error.downcast_ref() else { return Err(error) };
            self.reach(inputs, more, deadline, streams)?;
        }
    }

    /// Adds the functions of Compositions to those that are started.
    pub(super) fn reach(
        &self,
        inputs: &mut Inputs,
        compositions: &[Object],
        deadline: Deadline,
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        inputs.reached.extend(compositions.iter().cloned());
        // A file that lists functions lists all of them.
        if self.functions.is_none() {
            let loader = &mut Loader::new(streams, deadline);
            let pipelines = inputs.pipelines();
            inputs.functions = functions::load(None, &pipelines, &self.function, loader)?;
        }
        Ok(())
    }
}
