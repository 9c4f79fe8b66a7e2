//! A progress line on the terminal that shows what the command is waiting for when that takes long.
//!
//! A separate thread draws the line, so that the waiting code may block. The line is erased before
//! anything else is written.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use unicode_width::UnicodeWidthChar as _;

use crate::terminal;

/// How long something takes before the line appears.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is updated.
const TICK: Duration = Duration::from_secs(1);
const ERASE: &[u8] = b"\r\x1b[2K";
/// The assumed number of columns when the terminal does not report it.
const WIDTH: usize = 80;

/// Shows what the command is waiting for. The default shows nothing.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Line>>);

/// Returns the current number of columns, if known.
type Width = fn() -> Option<usize>;

struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    out: Box<dyn Write + Send>,
    width: Width,
    /// What is waited for and since when, in the order in which the waits began.
    waits: BTreeMap<u64, (Instant, String)>,
    next: u64,
    shown: bool,
    drawn_by_thread: bool,
}

/// A wait that is in progress until this is dropped.
#[must_use]
pub struct Waiting(Option<(Arc<Line>, u64)>);

impl Progress {
    /// Shows progress on stderr if that is a terminal.
    pub fn on_terminal() -> Self {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return Self::default();
        }
        let waits = BTreeMap::new();
        let (out, width) = (Box::new(stderr), terminal::width);
        let state = State { out, width, waits, next: 0, shown: false, drawn_by_thread: false };
        Self(Some(Arc::new(Line { state: Mutex::new(state), changed: Condvar::new() })))
    }

    /// Whether anything is ever shown.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Shows that something is waited for if it takes long.
    pub fn wait(&self, what: impl FnOnce() -> String) -> Waiting {
        let Some(line) = &self.0 else { return Waiting(None) };
        let mut state = line.state();
        let key = state.next;
        state.next += 1;
        state.waits.insert(key, (Instant::now(), what()));
        if !state.drawn_by_thread {
            let line = line.clone();
            let thread = std::thread::Builder::new().name("progress".to_owned());
            // Without the thread there is no progress line; everything else still works.
            state.drawn_by_thread = thread.spawn(move || line.draw()).is_ok();
        }
        line.changed.notify_all();
        Waiting(Some((line.clone(), key)))
    }

    /// Writes something else while the line is erased.
    pub fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        let Some(line) = &self.0 else { return write() };
        let mut state = line.state();
        state.erase();
        write()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some((line, key)) = self.0.take() else { return };
        let mut state = line.state();
        state.waits.remove(&key);
        state.erase();
        line.changed.notify_all();
    }
}

impl Line {
    // A panic cannot break the state: it only describes what is drawn.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the line up to date for the lifetime of the process.
    fn draw(&self) {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let timeout = match state.text(now) {
                Some(text) => {
                    state.show(&text);
                    Some(TICK)
                }
                None => state.first().map(|since| (since + PATIENCE).duration_since(now)),
            };
            state = match timeout {
                Some(timeout) => {
                    let woken = self.changed.wait_timeout(state, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

impl State {
    fn first(&self) -> Option<Instant> {
        self.waits.values().map(|(since, _)| *since).min()
    }

    /// The text of the line, once something has taken long. The latest wait is the most
    /// informative.
    fn text(&self, now: Instant) -> Option<String> {
        let long = |since: &Instant| now.duration_since(*since) >= PATIENCE;
        let mut overdue = self.waits.values().rev().filter(|(since, _)| long(since));
        let (since, what) = overdue.next()?;
        let text = format!("waiting for {what} ({} s)", now.duration_since(*since).as_secs());
        // A line that wraps cannot be erased, and some terminals wrap as soon as a line is full.
        let room = (self.width)().unwrap_or(WIDTH).saturating_sub(1);
        Some(fitting(&terminal::harmless(&text), room))
    }

    // A failure to write cannot be reported.
    fn show(&mut self, text: &str) {
        let _ = self.out.write_all(ERASE);
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.shown = true;
    }

    fn erase(&mut self) {
        if self.shown {
            let _ = self.out.write_all(ERASE).and_then(|()| self.out.flush());
            self.shown = false;
        }
    }
}

/// As much of a text as fits into some columns.
fn fitting(text: &str, columns: usize) -> String {
    let mut left = columns;
    text.chars()
        .take_while(|c| {
            let width = c.width().unwrap_or_default();
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.is_on()).finish()
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(waits: &[(Instant, &str)]) -> State {
        let waits = waits.iter().map(|(since, what)| (*since, (*what).to_owned()));
        State {
            out: Box::new(Vec::new()),
            width: || None,
            waits: (0..).zip(waits).collect(),
            next: 0,
            shown: false,
            drawn_by_thread: true,
        }
    }

    #[test]
    fn nothing_is_said_before_patience_ends() {
        let start = Instant::now();
        let state = state(&[(start, "a")]);
        assert_eq!(state.text(start + Duration::from_millis(499)), None);
        assert_eq!(state.text(start + PATIENCE).unwrap(), "waiting for a (0 s)");
        assert_eq!(state.text(start + Duration::from_secs(7)).unwrap(), "waiting for a (7 s)");
    }

    #[test]
    fn what_began_last_is_shown_once_it_takes_long_itself() {
        let start = Instant::now();
        let state = state(&[(start, "a"), (start + PATIENCE, "b")]);
        assert_eq!(state.text(start + PATIENCE).unwrap(), "waiting for a (0 s)");
        assert_eq!(state.text(start + PATIENCE * 2).unwrap(), "waiting for b (0 s)");
    }

    #[test]
    fn a_line_never_wraps() {
        let start = Instant::now();
        let long = "ü".repeat(200);
        let mut state = state(&[(start, &long)]);
        let mut length = |width: Width| {
            state.width = width;
            state.text(start + PATIENCE).unwrap().chars().count()
        };
        assert_eq!(length(|| None), 79);
        assert_eq!(length(|| Some(30)), 29);
        assert_eq!(length(|| Some(120)), 119);
        assert_eq!(length(|| Some(0)), 0);
        // Wide characters take two columns each, and never half of one.
        state.waits = BTreeMap::from([(0, (start, "数".repeat(200)))]);
        state.width = || Some(30);
        let line = state.text(start + PATIENCE).unwrap();
        assert_eq!(line, format!("waiting for {}", "数".repeat(8)));
    }
}
