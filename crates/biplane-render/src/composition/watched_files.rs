//! Renders composite resources again when their files change (`--watch`).

use anyhow::Result;
use biplane_console::{Deadline, Streams};
use biplane_manifest::Loader;
use biplane_model::{Object, Value};
use biplane_runtime::Engine;

use super::{Composites, CompositionRender, Inputs};
use crate::options::Format;
use crate::warm::WarmFunctions;
use crate::watch_files::{Repeatable, Sources};

impl Repeatable for CompositionRender {
    fn sources(&self) -> Sources {
        let mut sources = Sources::of(&self.function, self.functions.as_deref());
        let (Composites::One(composites) | Composites::Many(composites)) = &self.composites;
        sources.flat.extend([composites.clone(), self.composition.clone()]);
        sources.flat.extend(self.observed_resources.clone());
        if let Engine::Binary(binary) = &self.engine {
            sources.flat.push(binary.clone());
        }
        sources.flat.extend(self.definitions.iter().cloned());
        sources.flat.extend(self.extra_resources.iter().cloned());
        if let Some(until_stable) = &self.until_stable {
            sources.deep.extend(until_stable.compositions.iter().cloned());
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
        let (mut inputs, composites) = warm.run_interruptible(load)?;
        // Functions that were called before are likely to be called again.
        let was_reached = |composition: &&Object| warm.reached.contains(composition.name());
        let reached: Vec<_> =
            inputs.nested.compositions.iter().filter(was_reached).cloned().collect();
        if !reached.is_empty() {
            self.reach(&mut inputs, &reached, deadline, streams)?;
        }
        let from = (&self.function, self.functions.as_deref());
        let runtime = warm.runtime;
        let provide = |inputs: &Inputs, streams: &mut Streams<'_>| {
            warm.reached = inputs.reached.iter().map(|one| one.name().to_owned()).collect();
            let runners =
                warm.functions(&inputs.functions, &inputs.pipelines(), from, |runtime, up| {
                    runtime.block_on(self.start(inputs, deadline, up, streams))
                })?;
            Ok(runners.clone())
        };
        self.render_reachable(runtime, &mut inputs, &composites, deadline, provide, streams)
    }

    fn format(&self) -> Format {
        self.output.format
    }
}
