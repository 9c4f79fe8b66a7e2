//! Many composite resources: rendered with one set of functions, as many at a time as there are
//! processors.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use biplane_model::{Object, Value};
use tokio::runtime::Runtime;

use super::super::runners::Runners;
use super::{CompositionRender, Inputs};
use crate::streams::Streams;

impl CompositionRender {
    /// Documents come in the order of the input, and so does what is said about them.
    pub(super) fn render_all(
        &self,
        runtime: &Runtime,
        inputs: &Inputs,
        composites: &[Object],
        runners: &Runners,
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(composite) = composites.get(index) else { return done };
                let mut said = Vec::new();
                let mut say = |line: &str| said.push(line.to_owned());
                let render = self.render(inputs.of(composite.clone()), runners, &mut say);
                let rendered = runtime.handle().block_on(render);
                let name = || format!("{} {:?}", composite.kind(), composite.name());
                done.push((index, rendered.with_context(name), said));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let mut all: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..workers.min(composites.len())).map(|_| scope.spawn(work)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
        });
        all.sort_by_key(|(index, ..)| *index);
        let mut documents = Vec::new();
        for (_, rendered, said) in all {
            for line in &said {
                streams.say(line);
            }
            documents.extend(rendered?);
        }
        Ok(documents)
    }
}
