//! Handles signals such as Ctrl-C, so that an interrupted command can clean up before it exits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::signal::unix::SignalKind;
use tokio::sync::{oneshot, watch};

use crate::error::{self, error_text};
use crate::progress::Progress;
use crate::signals;

/// The command was interrupted.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Receives the signals that interrupt this process and replaces their default action.
#[derive(Clone, Debug)]
pub struct Interrupts {
    asked: watch::Receiver<bool>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Whether a signal ends the process immediately, because there is nothing to clean up.
    at_once: Mutex<bool>,
    progress: Progress,
    /// The message written to stderr when a signal ends the process.
    exit_message: Option<String>,
    /// The listening thread ends when this is dropped.
    _alive: oneshot::Sender<()>,
}

impl Interrupts {
    /// Listens until the last clone is dropped. When a signal ends the process, this is reported on
    /// stderr unless `silently` is set.
    pub fn listen(progress: &Progress, silently: bool) -> Result<Self> {
        let attempted = "cannot listen for signals";
        // A separate thread receives signals while the others are busy.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.context(attempted)?;
        let stop = {
            let _entered = runtime.enter();
            signals::first_of(kinds()).context(attempted)?
        };
        let (send, asked) = watch::channel(false);
        let (alive, dead) = oneshot::channel();
        let shared = Arc::new(Shared {
            at_once: Mutex::new(true),
            progress: progress.clone(),
            exit_message: (!silently).then(|| error_text(&Interrupted.into())),
            _alive: alive,
        });
        let listeners = Arc::downgrade(&shared);
        let listen = move || {
            let heard = runtime.block_on(async {
                tokio::select! {
                    () = stop => true,
                    _ = dead => false,
                }
            });
            if let Some(shared) = listeners.upgrade().filter(|_| heard) {
                // While this lock is held, nothing starts that would need to be cleaned up.
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

    /// From now on a signal does not end the process. The command cleans up and exits by itself.
    pub fn leave_to_command(&self) {
        *self.shared.at_once() = false;
    }

    /// From now on a signal ends the process again, because there is nothing left to clean up. If a
    /// signal has already arrived, the process ends now.
    pub fn end_at_once(&self) {
        // Signal handlers stay installed for the life of the process, so the listener must too:
        // without it, signals would be lost once the last clone is dropped.
        std::mem::forget(Arc::clone(&self.shared));
        let mut at_once = self.shared.at_once();
        *at_once = true;
        if *self.asked.borrow() {
            self.shared.end_process();
        }
    }

    /// Returns once the command is interrupted.
    pub async fn requested(&self) {
        if self.asked.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Runs `work`, which may block forever, for example on a read or a write. A signal in the
    /// meantime runs `clean_up` on `held` and ends the process; otherwise `held` is returned.
    pub fn run_interruptible<T, H: Send, F: Future<Output = ()> + Send>(
        &self,
        runtime: &Runtime,
        held: H,
        clean_up: impl FnOnce(H) -> F + Send,
        work: impl FnOnce() -> T,
    ) -> (T, H) {
        let (done, is_done) = oneshot::channel::<()>();
        let keep = async {
            tokio::select! {
                biased;
                _ = is_done => held,
                () = self.requested() => {
                    clean_up(held).await;
                    self.shared.end_process()
                }
            }
        };
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| runtime.block_on(keep));
            let worked = work();
            drop(done);
            let held = keeper.join();
            (worked, held.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl Shared {
    fn at_once(&self) -> MutexGuard<'_, bool> {
        self.at_once.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_process(&self) -> ! {
        self.progress.aside(|| {
            if let Some(message) = &self.exit_message {
                // A failure to write to stderr cannot be reported.
                let _ =
                    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{message}\n"));
            }
            std::process::exit(error::INTERRUPTED.into())
        })
    }
}

/// Returns once the command is interrupted; never returns if it does not listen for signals.
pub async fn requested(interrupts: Option<&Interrupts>) {
    match interrupts {
        Some(interrupts) => interrupts.requested().await,
        None => std::future::pending().await,
    }
}

/// The signals that interrupt a command. A hangup or quit that the parent process set to ignored
/// stays ignored (`nohup` does that). An interrupt is always received: shells ignore it in
/// background jobs, but scripts still send it to them.
fn kinds() -> Vec<SignalKind> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    let others = [SignalKind::hangup(), SignalKind::quit()];
    kinds.extend(others.into_iter().filter(|kind| !is_ignored(&status, *kind)));
    kinds
}

/// Whether a signal is ignored, according to the text of `/proc/self/status`.
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
