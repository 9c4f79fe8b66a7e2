//! Which Compositions matter: that of the composite resource, and those of the composite resources
//! that turn up below it. The functions of all others are left alone, so that a directory may hold
//! more Compositions than are needed.

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use biplane_model::{Object, Value};
use tokio::runtime::Runtime;

use super::super::functions;
use super::super::load::Loader;
use super::super::runners::Runners;
use super::{CompositionRender, Inputs};
use crate::streams::Streams;

/// There is work for functions that were not started, since nobody knew that they would be called.
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

    /// The pipelines of all Compositions that are reached as one, for whoever asks which functions
    /// are called.
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
    /// The documents of all composite resources. Whenever one turns up whose functions are not
    /// started, they are provided, and everything is rendered anew: it comes to the same up to there.
    pub(super) fn render_reached(
        &self,
        runtime: &Runtime,
        inputs: &mut Inputs,
        composites: &[Object],
        mut provide: impl FnMut(&Inputs, &mut Streams<'_>) -> Result<Runners>,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let mut said = 0;
        loop {
            let runners = provide(inputs, streams)?;
            let begun = Instant::now();
            let rendered =
                self.render_each(runtime, inputs, composites, &runners, &mut said, streams);
            let error = match rendered {
                Ok(documents) => return Ok(documents),
                Err(error) => error,
            };
            let Some(Unreached(more)) = error.downcast_ref() else { return Err(error) };
            self.reach(inputs, more, streams)?;
            inputs.spent = runners.spent + begun.elapsed();
        }
    }

    /// Adds the functions of Compositions to those that are started.
    pub(super) fn reach(
        &self,
        inputs: &mut Inputs,
        compositions: &[Object],
        streams: &mut Streams<'_>,
    ) -> Result<()> {
        inputs.reached.extend(compositions.iter().cloned());
        // Who lists functions lists them all.
        if self.files()?.1.is_none() {
            let pipelines = inputs.pipelines();
            let limit = self.engine.timeout.saturating_sub(inputs.spent);
            let loader = &mut Loader::new(streams);
            inputs.functions = functions::load(None, &pipelines, &self.function, limit, loader)?;
        }
        Ok(())
    }
}
