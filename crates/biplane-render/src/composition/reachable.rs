//! Finds the Compositions that a render needs: that of the composite resource, and those of the
//! nested composite resources that appear during the render. Functions of other Compositions are
//! not started, so that a folder may hold more Compositions than needed.

use std::fmt;

use anyhow::Result;
use biplane_console::{Deadline, Streams};
use biplane_manifest::Loader;
use biplane_model::{Object, Value};
use biplane_runtime::Runners;
use tokio::runtime::Runtime;

use super::{CompositionRender, Inputs};
use crate::functions;

/// Nested composite resources appeared whose functions have not been started.
#[derive(Clone, Debug)]
pub(super) struct Unreached(
    /// The Compositions that call these functions.
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
    /// Whether the functions of a Composition have been started.
    pub(super) fn has_reached(&self, composition: &Object) -> bool {
        let is_it = |one: &Object| one.same(composition) || one == composition;
        is_it(&self.composition) || self.reached.iter().any(is_it)
    }

    /// The pipelines of all needed Compositions merged into one, to find the functions that are
    /// called.
    pub(super) fn pipelines(&self) -> Object {
        let steps = |composition: &Object| match composition.at(&["spec", "pipeline"]) {
            Some(Value::Array(steps)) => steps.clone(),
            _ => Vec::new(),
        };
        let mut all = self.composition.clone();
        if !self.reached.is_empty() {
            let compositions = std::iter::once(&self.composition).chain(&self.reached);
            all.set_at_or_ignore(
                &["spec", "pipeline"],
                compositions.flat_map(steps).collect::<Vec<_>>(),
            );
        }
        all
    }
}

impl CompositionRender {
    /// The documents of all composite resources. When a nested composite resource appears whose
    /// functions have not been started, they are started and everything is rendered again.
    /// Rendering is deterministic, so the repeated part does not change.
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
        // A functions file lists all functions.
        if self.functions.is_none() {
            let loader = &mut Loader::new(streams, deadline);
            let pipelines = inputs.pipelines();
            inputs.functions = functions::load(None, &pipelines, &self.function, loader)?;
        }
        Ok(())
    }
}
