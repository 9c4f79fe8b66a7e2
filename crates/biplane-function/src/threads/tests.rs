//! Tests of threads: which one works next, when they end, and what a panic does.

use std::cell::RefCell;
use std::sync::Barrier;

use super::*;

const LONG: Duration = Duration::from_hours(1);

fn here() -> ThreadId {
    thread::current().id()
}

impl<T> Answer<T> {
    fn wait(self) -> Result<T, Panicked> {
        self.0.blocking_recv().unwrap()
    }
}

fn run<T: Send + 'static>(threads: &Threads, work: impl FnOnce() -> T + Send + 'static) -> T {
    threads.run(work).unwrap().wait().unwrap()
}

/// Starts that many threads, which work at the same time.
fn rush(threads: &Threads, many: usize) -> Vec<ThreadId> {
    let all = Arc::new(Barrier::new(many));
    let begin = |_| {
        let all = Arc::clone(&all);
        threads.run(move || (all.wait(), here()).1).unwrap()
    };
    let answers: Vec<_> = (0..many).map(begin).collect();
    answers.into_iter().map(|answer| answer.wait().unwrap()).collect()
}

thread_local! {
    static END: RefCell<Option<mpsc::Sender<()>>> = const { RefCell::new(None) };
}

/// Work whose receiver is disconnected when the thread has ended.
fn until_the_end() -> (impl FnOnce() -> ThreadId + Send, mpsc::Receiver<()>) {
    let (end, ended) = mpsc::channel();
    let work = move || {
        END.with_borrow_mut(|kept| *kept = Some(end));
        here()
    };
    (work, ended)
}

#[test]
fn after_a_rush_one_thread_does_what_comes_one_by_one() {
    let threads = Threads::new(8, LONG);
    let rushed = rush(&threads, 8);
    let last = run(&threads, here);
    assert!(rushed.contains(&last));
    for _ in 0..100 {
        assert_eq!(run(&threads, here), last);
    }
}

#[test]
fn a_thread_without_work_ends_and_another_is_started_for_new_work() {
    let threads = Threads::new(1, Duration::from_millis(1));
    let (work, ended) = until_the_end();
    let first = run(&threads, work);
    assert_eq!(ended.recv(), Err(mpsc::RecvError));
    assert_ne!(run(&threads, here), first);
}

#[test]
fn work_that_comes_when_a_thread_is_about_to_end_is_done() {
    let threads = Threads::new(1, Duration::ZERO);
    for n in 0..2_000 {
        assert_eq!(run(&threads, move || n), n);
    }
}

#[test]
fn idle_threads_end_with_their_owner() {
    let threads = Threads::new(1, LONG);
    let (work, ended) = until_the_end();
    run(&threads, work);
    drop(threads);
    assert_eq!(ended.recv(), Err(mpsc::RecvError));
}

#[test]
fn work_that_was_begun_is_finished_after_its_owner_has_gone() {
    let threads = Threads::new(1, LONG);
    let (go, may_go) = mpsc::channel::<()>();
    let (work, ended) = until_the_end();
    let answer = threads.run(move || (may_go.recv(), work()).0).unwrap();
    drop(threads);
    go.send(()).unwrap();
    assert_eq!(answer.wait(), Ok(Ok(())));
    assert_eq!(ended.recv(), Err(mpsc::RecvError));
}

#[test]
fn a_panic_is_an_answer_and_costs_no_thread() {
    let threads = Threads::new(1, LONG);
    let thread = run(&threads, here);
    let panicked = |work: fn()| threads.run(work).unwrap().wait().unwrap_err();
    assert_eq!(panicked(|| panic!("as expected")).to_string(), "as expected");
    assert_eq!(panicked(|| panic!("with a number: {}", 1)).to_string(), "with a number: 1");
    assert_eq!(panicked(|| std::panic::panic_any(1)).to_string(), "no message");
    assert_eq!(run(&threads, here), thread);
}

#[test]
fn an_answer_that_panics_when_it_is_dropped_costs_no_thread() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as expected");
        }
    }
    let threads = Threads::new(1, LONG);
    let (go, may_go) = mpsc::channel::<()>();
    drop(threads.run(move || (may_go.recv().unwrap(), Bomb).1).unwrap());
    go.send(()).unwrap();
    while threads.run(|| ()).is_err() {
        thread::yield_now();
    }
}

#[test]
fn there_are_no_more_threads_than_allowed() {
    let threads = Threads::new(2, LONG);
    let (go, may_go) = mpsc::channel::<()>();
    let slow = threads.run(move || may_go.recv().unwrap()).unwrap();
    assert_eq!(run(&threads, || 1), 1);
    let all = Arc::new(Barrier::new(2));
    let other = Arc::clone(&all);
    let second = threads.run(move || other.wait().is_leader()).unwrap();
    assert!(matches!(threads.run(|| ()), Err(Refused::AllWork)));
    all.wait();
    second.wait().unwrap();
    assert_eq!(run(&threads, || 2), 2);
    go.send(()).unwrap();
    slow.wait().unwrap();
    rush(&threads, 2);
}
