//! Threads for calls that compute.
//!
//! Each thread keeps memory that it has freed, for itself. Taken in turns, all threads that a rush has
//! started would stay, with all their memory. So the thread that became idle last works next, and a
//! thread without work ends after a while.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::task::{Context, Poll};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::sync::oneshot;

/// A bounded number of threads. They end when this is dropped, after the work that they have begun.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Arc<Shared>,
    max: usize,
    patience: Duration,
}

/// The answer of some work.
#[derive(Debug)]
pub(crate) struct Answer<T>(oneshot::Receiver<Result<T, Panicked>>);

impl<T> Future for Answer<T> {
    type Output = Result<T, Panicked>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let told = Pin::new(&mut self.0).poll(context);
        told.map(|told| told.unwrap_or_else(|_| Err(Panicked("no answer".to_owned()))))
    }
}

/// The work panicked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Panicked(String);

/// Why work was not begun.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("all threads work")]
    AllWork,
    #[error("cannot start a thread: {0}")]
    CannotStart(std::io::Error),
}

#[derive(Debug, Default)]
struct Shared(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The idle threads. The last one works next.
    idle: Vec<Idle>,
    /// The number of all threads.
    threads: usize,
}

#[derive(Debug)]
struct Idle {
    thread: ThreadId,
    /// Where it waits. No other sender is left then, so the thread notices when this one is dropped.
    door: mpsc::SyncSender<Task>,
}

struct Task {
    work: Work,
    /// Where the thread waits for its next task.
    door: mpsc::SyncSender<Task>,
}

/// Work returns what tells its answer. That is done when the thread is idle again, so that who gets
/// the answer and asks again finds this thread.
type Work = Box<dyn FnOnce() -> Tell + Send>;
type Tell = Box<dyn FnOnce()>;

impl Threads {
    /// At most this many threads, each of which ends when it was idle for so long.
    pub(crate) fn new(max: usize, patience: Duration) -> Self {
        Self { shared: Arc::default(), max, patience }
    }

    /// Begins the work on a thread, at once or not at all. It goes on if nobody waits for its answer.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answer<T>, Refused> {
        let (tell, answer) = oneshot::channel();
        let work: Work = Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Panicked::new(&*panic));
            // Nobody may be waiting any longer.
            Box::new(move || drop(tell.send(done)))
        });
        let mut state = self.shared.lock();
        if let Some(Idle { door, .. }) = state.idle.pop() {
            drop(state);
            let task = Task { work, door: door.clone() };
            // It waits there, or will notice that it is not idle any more before it ends.
            return door.send(task).map(|()| Answer(answer)).map_err(|_| Refused::AllWork);
        }
        if state.threads >= self.max {
            return Err(Refused::AllWork);
        }
        state.threads += 1;
        drop(state);
        let (door, tasks) = mpsc::sync_channel(1);
        let (shared, patience) = (Arc::downgrade(&self.shared), self.patience);
        let started = thread::Builder::new()
            .name("function".to_owned())
            .spawn(move || live(&shared, &tasks, Task { work, door }, patience));
        if let Err(error) = started {
            self.shared.lock().threads -= 1;
            return Err(Refused::CannotStart(error));
        }
        Ok(Answer(answer))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the thread was still idle and may end.
    fn leave(&self, thread: ThreadId) -> bool {
        let mut state = self.lock();
        let Some(place) = state.idle.iter().position(|idle| idle.thread == thread) else {
            return false;
        };
        state.idle.remove(place);
        state.threads -= 1;
        true
    }
}

/// The life of a thread.
fn live(shared: &Weak<Shared>, tasks: &mpsc::Receiver<Task>, first: Task, patience: Duration) {
    let thread = thread::current().id();
    let mut task = first;
    loop {
        let Task { work, door } = task;
        let tell = work();
        match shared.upgrade() {
            Some(shared) => shared.lock().idle.push(Idle { thread, door }),
            // Nobody can knock any more.
            None => drop(door),
        }
        // The answer may be dropped here, and may panic then.
        let _ = catch_unwind(AssertUnwindSafe(tell));
        let next = match tasks.recv_timeout(patience) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let ends = shared.upgrade().is_none_or(|shared| shared.leave(thread));
                // Otherwise a task is on its way.
                if ends { None } else { tasks.recv().ok() }
            }
            next => next.ok(),
        };
        match next {
            Some(next) => task = next,
            None => return,
        }
    }
}

impl Panicked {
    fn new(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self(text.unwrap_or_else(|| "no message".to_owned()))
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
