//! Notices that someone wants the command to stop, so that it can clean up first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};

use super::runners::Runners;
use crate::cli;
use crate::progress::Progress;

/// Someone asked to stop.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Hears when someone asks this process to stop, which it then no longer does by itself: on a
/// terminal, by closing the terminal, or with a signal from elsewhere.
#[derive(Clone, Debug)]
pub(super) struct Interrupts {
    asked: watch::Receiver<bool>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Whether the process ends as soon as someone asks, whatever it does, since nothing has to be
    /// cleaned up.
    at_once: Mutex<bool>,
    progress: Progress,
    last_words: Option<String>,
    /// Nobody listens any longer than this.
    _alive: oneshot::Sender<()>,
}

impl Interrupts {
    /// Listens until the last copy is gone. That someone asked to stop is mentioned when the process
    /// ends, but for those who have to be asked in any case.
    pub(super) fn listen(progress: &Progress, silently: bool) -> Result<Self> {
        let attempted = "cannot listen for signals";
        // A thread of its own can also hear what is asked while others are busy.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.context(attempted)?;
        let signals = {
            let _entered = runtime.enter();
            kinds().into_iter().map(signal).collect::<std::io::Result<Vec<_>>>()
        };
        let mut signals = signals.context(attempted)?;
        let (send, asked) = watch::channel(false);
        let (alive, dead) = oneshot::channel();
        let shared = Arc::new(Shared {
            at_once: Mutex::new(true),
            progress: progress.clone(),
            last_words: (!silently).then(|| cli::error_text(&Interrupted.into())),
            _alive: alive,
        });
        let listeners = Arc::downgrade(&shared);
        let listen = move || {
            let heard = runtime.block_on(async {
                tokio::select! {
                    () = first(&mut signals) => true,
                    _ = dead => false,
                }
            });
            if let Some(shared) = listeners.upgrade().filter(|_| heard) {
                // Nothing can be begun meanwhile that would have to be cleaned up.
                let at_once = shared.at_once();
                if *at_once {
                    shared.end_process();
                }
                send.send_replace(true);
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).context(attempted)?;
        Ok(Self { asked, shared })
    }

    /// Has the command notice by itself from now on that it is to stop, since there will be something
    /// to clean up.
    pub(super) fn leave_to_command(&self) {
        *self.shared.at_once() = false;
    }

    /// Returns once someone asked to stop.
    pub(super) async fn requested(&self) {
        if self.asked.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Does something that may never end, such as to read or to write. If someone asks to stop
    /// meanwhile, functions are ended, and so is the process.
    pub(super) fn while_stuck<T>(
        &self,
        runtime: &Runtime,
        runners: Runners,
        work: impl FnOnce() -> T,
    ) -> (T, Runners) {
        let (done, is_done) = oneshot::channel::<()>();
        let keep = async {
            tokio::select! {
                biased;
                _ = is_done => runners,
                () = self.requested() => {
                    runners.end().await;
                    self.shared.end_process()
                }
            }
        };
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| runtime.block_on(keep));
            let worked = work();
            drop(done);
            let runners = keeper.join();
            (worked, runners.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl Shared {
    fn at_once(&self) -> MutexGuard<'_, bool> {
        self.at_once.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_process(&self) -> ! {
        self.progress.aside(|| {
            if let Some(words) = &self.last_words {
                // There is nobody to tell when that fails.
                let _ =
                    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{words}\n"));
            }
            std::process::exit(cli::INTERRUPTED.into())
        })
    }
}

/// Returns once someone asked to stop, if anybody listens.
pub(super) async fn requested(interrupts: Option<&Interrupts>) {
    match interrupts {
        Some(interrupts) => interrupts.requested().await,
        None => std::future::pending().await,
    }
}

/// Returns with the first signal.
async fn first(signals: &mut [Signal]) {
    let heard = |signal: &mut Signal, context: &mut std::task::Context<'_>| {
        signal.poll_recv(context).is_ready()
    };
    std::future::poll_fn(|context| {
        if signals.iter_mut().any(|signal| heard(signal, context)) {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
}

/// The signals that ask a program to stop. Those that whoever started it has it ignore are not heard:
/// a program that is to outlive its terminal does. An interrupt always is, since scripts have what they
/// start in the background ignore it, and then send it nevertheless.
fn kinds() -> Vec<SignalKind> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    let others = [SignalKind::hangup(), SignalKind::quit()];
    kinds.extend(others.into_iter().filter(|kind| !is_ignored(&status, *kind)));
    kinds
}

/// Whether a signal is ignored, by the system's description of a process.
fn is_ignored(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (kind.as_raw_value() - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_told_by_their_bits() {
        let ignored = |status: &str| {
            let kinds = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit()];
            kinds.map(|kind| is_ignored(status, kind))
        };
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\n"), [true, false, false]);
        assert_eq!(ignored("SigIgn:\t0000000000000006\n"), [false, true, true]);
        assert_eq!(ignored("SigBlk:\t0000000000000007\n"), [false; 3], "only masked");
        assert_eq!(ignored("SigIgn:\tnonsense"), [false; 3]);
        assert_eq!(ignored(""), [false; 3]);
    }
}
