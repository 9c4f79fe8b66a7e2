//! Renders many composite resources with one set of functions and one deadline. As many run
//! concurrently as there are processors. The first failure stops the rest.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Error, Result, anyhow};
use biplane_console::{Deadline, Streams};
use biplane_model::{Object, Value};
use biplane_runtime::{Runners, Subject};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::reachable::Unreached;
use super::{CompositionRender, Inputs};

impl CompositionRender {
    /// Documents and messages are returned in input order.
    pub(super) fn render_all(
        &self,
        runtime: &Runtime,
        inputs: &Inputs,
        composites: &[Object],
        (runners, deadline): (&Runners, Deadline),
        streams: &mut Streams<'_>,
    ) -> Result<Vec<Value>> {
        // A container must run until its resources are known, so that they can be cleaned up.
        let can_stop = !self.engine.is_image();
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let all = each(composites, workers, |composite, mut others| {
            let mut said = Vec::new();
            let mut said_to = |line: &str| said.push(line.to_owned());
            // Earlier composite resources may have used up the time limit.
            let rendered = match deadline.check() {
                Ok(()) => {
                    let inputs = inputs.of(composite.clone());
                    let render = self.render(inputs, runners, deadline, &mut said_to);
                    runtime.handle().block_on(async {
                        tokio::select! {
                            biased;
                            rendered = render => rendered,
                            () = others.failed(), if can_stop => Err(anyhow!("another failed first")),
                        }
                    })
                }
                Err(late) => Err(Error::new(late).context(Subject::Composite.attempted())),
            };
            let name = || format!("{} {:?}", composite.kind(), composite.name());
            match rendered.with_context(name) {
                Ok(documents) => Ok((documents, said)),
                Err(error) => Err((error, said)),
            }
        });
        // Messages about work that is rendered again are not printed.
        if let Some(Err((error, _))) = all.last()
            && let Some(unreached) = error.downcast_ref::<Unreached>()
        {
            return Err(unreached.clone().into());
        }
        let mut documents = Vec::new();
        for rendered in all {
            let (rendered, said) = match rendered {
                Ok((documents, said)) => (Ok(documents), said),
                Err((error, said)) => (Err(error), said),
            };
            for line in &said {
                streams.say(line);
            }
            documents.extend(rendered?);
        }
        Ok(documents)
    }
}

/// The state of the items before an item.
struct Others {
    index: usize,
    first_failed: watch::Receiver<usize>,
}

impl Others {
    /// Returns once an item before this one has failed, so that the result of this one is not
    /// needed.
    async fn failed(&mut self) {
        let index = self.index;
        if self.first_failed.wait_for(|failed| *failed < index).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Processes each item, and returns the results in input order up to the first failure. Items after
/// a failure are not started.
fn each<I: Sync, T: Send, E: Send>(
    items: &[I],
    workers: usize,
    work: impl Fn(&I, Others) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let next = AtomicUsize::new(0);
    let (failed, first_failed) = watch::channel(usize::MAX);
    let share = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index).filter(|_| index < *failed.borrow()) else {
                return done;
            };
            let came = work(item, Others { index, first_failed: first_failed.clone() });
            if came.is_err() {
                failed.send_if_modified(|first| {
                    let is_first = index < *first;
                    *first = index.min(*first);
                    is_first
                });
            }
            done.push((index, came));
        }
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers.min(items.len())).map(|_| scope.spawn(share)).collect();
        // The results of a worker that panicked are lost, so the remaining results are not
        // complete.
        let done = threads.into_iter().flat_map(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        done.collect()
    });
    all.sort_by_key(|(index, _)| *index);
    // All items before the first failure were started before it.
    let last = *failed.borrow();
    all.into_iter().take_while(|(index, _)| *index <= last).map(|(_, came)| came).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;

    #[test]
    fn what_comes_of_many_items_is_in_their_order() {
        let items: Vec<_> = (0..100).collect();
        let doubled: Vec<_> = items.iter().map(|item| Ok::<_, ()>(item * 2)).collect();
        assert_eq!(each(&items, 3, |item, _| Ok(item * 2)), doubled);
        assert!(each(&[], 3, |item: &u8, _| Ok::<_, ()>(*item)).is_empty());
    }

    #[test]
    fn a_worker_that_dies_takes_everything_with_it() {
        let died = std::panic::catch_unwind(|| {
            each(&[1, 2, 3], 2, |item, _| {
                assert_ne!(*item, 2, "this item is fatal");
                Ok::<_, ()>(*item)
            })
        });
        assert!(died.is_err());
    }

    #[test]
    fn what_comes_after_a_failure_is_not_begun() {
        let begun = Mutex::new(Vec::new());
        let came = each(&[0, 1, 2, 3, 4, 5], 1, |item, _| {
            begun.lock().unwrap().push(*item);
            if *item == 2 { Err("fails") } else { Ok(*item) }
        });
        assert_eq!(came, [Ok(0), Ok(1), Err("fails")]);
        assert_eq!(begun.into_inner().unwrap(), [0, 1, 2]);
    }

    #[test]
    fn what_is_under_way_is_stopped_by_a_failure_before_it() {
        let both = Barrier::new(2);
        let came = each(&[0, 1, 2, 3], 2, |item, mut others| {
            both.wait();
            match item {
                0 => Err("fails"),
                1 => {
                    waiting().block_on(others.failed());
                    Err("stopped")
                }
                _ => Ok(()),
            }
        });
        assert_eq!(came, [Err("fails")]);
    }

    #[test]
    fn the_first_failure_in_order_counts_even_if_it_comes_last() {
        let came = each(&[0, 1, 2, 3], 2, |item, mut others| {
            if *item > 0 {
                return Err::<(), _>("later");
            }
            waiting().block_on(others.first_failed.wait_for(|failed| *failed == 1)).unwrap();
            Err("first")
        });
        assert_eq!(came, [Err("first")]);
    }

    fn waiting() -> Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }
}
