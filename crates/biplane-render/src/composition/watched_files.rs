//! `--watch` for composite resources.

use std::path::Path;

use anyhow::Result;
use biplane_model::{Object, Value};

use super::super::flags::OutputFormat;
use super::super::load::Loader;
use super::super::up::Up;
use super::super::watch::{Again, Sources};
use super::{CompositionRender, Inputs};
use crate::cli::values;
use crate::streams::Streams;

impl Again for CompositionRender {
    fn sources(&self) -> Sources {
        let mut sources = Sources::of(&self.function, self.function_file());
        sources.flat.push(self.composite_resource.clone());
        let optional = [
            &self.composition,
            &self.observed_resources,
            &self.xrs,
            &self.engine.crossplane_binary,
        ];
        sources.flat.extend(optional.into_iter().flatten().cloned());
        sources.flat.extend(self.xrd.iter().cloned());
        sources.flat.extend(values::paths(&self.extra_resources));
        sources.deep.extend(self.required_schemas.iter().chain(&self.compositions).cloned());
        sources
    }

    fn render_again(&self, up: &mut Up<'_>, streams: &mut Streams<'_>) -> Result<Vec<Value>> {
        let (mut inputs, composites) = up.while_stuck(|| self.load(&mut Loader::new(streams)))?;
        // Functions that were called before are likely to be called again.
        let was_reached = |composition: &&Object| up.reached.contains(composition.name());
        let reached: Vec<_> =
            inputs.nested.compositions.iter().filter(was_reached).cloned().collect();
        if !reached.is_empty() {
            self.reach(&mut inputs, &reached, streams)?;
        }
        let from = (&self.function, self.function_file());
        let runtime = up.runtime;
        let provide = |inputs: &Inputs, streams: &mut Streams<'_>| {
            up.reached = inputs.reached.iter().map(|one| one.name().to_owned()).collect();
            let runners =
                up.functions(&inputs.functions, &inputs.pipelines(), from, |runtime, up| {
                    runtime.block_on(self.start(inputs, up, streams))
                })?;
            Ok(runners.clone())
        };
        self.render_reached(runtime, &mut inputs, &composites, provide, streams)
    }

    fn output_format(&self) -> OutputFormat {
        self.output.output_format
    }
}

impl CompositionRender {
    fn function_file(&self) -> Option<&Path> {
        self.files().ok().and_then(|(_, functions)| functions)
    }
}
