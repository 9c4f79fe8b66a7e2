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
        let all = each(composites, |composite| {
            let mut said = Vec::new();
            let mut say = |line: &str| said.push(line.to_owned());
            let render = self.render(inputs.of(composite.clone()), runners, &mut say);
            let rendered = runtime.handle().block_on(render);
            let name = || format!("{} {:?}", composite.kind(), composite.name());
            (rendered.with_context(name), said)
        });
        let mut documents = Vec::new();
        for (rendered, said) in all {
            for line in &said {
                streams.say(line);
            }
            documents.extend(rendered?);
        }
        Ok(documents)
    }
}

/// Does some work on each item, and returns what came of it in the order of the items.
fn each<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.min(items.len())).map(|_| scope.spawn(share)).collect();
        // What a worker that died has done is lost, and nobody may take the rest for everything.
        let done = threads.into_iter().flat_map(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        done.collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, done)| done).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn what_comes_of_many_items_is_in_their_order() {
        let items: Vec<_> = (0..100).collect();
        let doubled: Vec<_> = items.iter().map(|item| item * 2).collect();
        assert_eq!(each(&items, |item| item * 2), doubled);
        assert!(each(&[], |item: &u8| *item).is_empty());
    }

    #[test]
    fn a_worker_that_dies_takes_everything_with_it() {
        let died = std::panic::catch_unwind(|| {
            each(&[1, 2, 3], |item| {
                assert_ne!(*item, 2, "this item is fatal");
                *item
            })
        });
        assert!(died.is_err());
    }
}
