//! The thread that writes to the store: in batches, changes first, and retention when it is idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;
use tonic::Status;

use crate::disk::Disk;
use crate::inbox::{Inbox, WaitingChange};
use crate::losses::{Loss, Losses, Reason};
use crate::metrics::{FindingLabels, LossLabels, RecorderMetrics, SourceLabels};
use crate::store::{Applied, Error, HalfRecord, Ledger, Retention, hex};

/// The time in microseconds since 1970.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The writer looks for something to do this often.
const IDLE: Duration = Duration::from_millis(500);

/// What is busy, and a connection that is lost, are tried again after these pauses.
const PAUSE: Duration = Duration::from_millis(50);
const RECONNECT: Duration = Duration::from_millis(500);

/// A provider waits ten seconds.
const CHANGE_PATIENCE: Duration = Duration::from_secs(8);

/// Emissions wait for a store that is busy for this long.
const HALF_PATIENCE: Duration = Duration::from_secs(30);

/// How often the disk is looked at, retention begins, sizes are measured, losses are logged and the
/// ends of the chains are logged.
const LOOK: Duration = Duration::from_secs(1);
const SWEEP: Duration = Duration::from_secs(30);
const MEASURE: Duration = Duration::from_secs(10);
const LOG_LOSSES: Duration = Duration::from_mins(1);
const LOG_HEADS: Duration = Duration::from_hours(1);
const LOG_FAILURES: Duration = Duration::from_mins(1);

/// Retention takes at most a fifth of the time.
const SHARE: u32 = 4;

/// How the recorder is, for probes.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The writer runs.
    pub(crate) alive: AtomicBool,
    /// The last attempt to write succeeded.
    pub(crate) writable: AtomicBool,
    /// The disk has too little room for runs.
    pub(crate) full: AtomicBool,
}

/// Something that is due now and then.
#[derive(Debug, Default)]
pub(crate) struct Due(Option<Instant>);

impl Due {
    fn now(&mut self, every: Duration) -> bool {
        let due = self.0.is_none_or(|last| last.elapsed() >= every);
        if due {
            self.0 = Some(Instant::now());
        }
        due
    }
}

/// The writer and what it needs.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) ledger: Ledger,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) losses: Arc<Losses>,
    pub(crate) disk: Disk,
    pub(crate) retention: Retention,
    pub(crate) metrics: RecorderMetrics,
    pub(crate) live: broadcast::Sender<Applied>,
    pub(crate) health: Arc<Health>,
    pub(crate) clock: Clock,
    pub(crate) stopping: Arc<AtomicBool>,
    /// Why the connection to the store is gone.
    pub(crate) gone: Option<String>,
    /// When that was last logged.
    pub(crate) log_gone: Due,
}

/// The clock of the process.
#[derive(Clone)]
pub(crate) struct Clock(pub(crate) Now);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// The end of the writer, whichever way it ends.
struct End {
    health: Arc<Health>,
    inbox: Arc<Inbox>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.health.alive.store(false, Ordering::Relaxed);
        self.inbox.abandon();
    }
}

impl Writer {
    /// Writes until nothing more comes.
    pub(crate) fn run(mut self) {
        self.health.alive.store(true, Ordering::Relaxed);
        self.health.writable.store(true, Ordering::Relaxed);
        self.look_at_disk();
        // Also if something goes wrong here: probes must tell, and nobody may wait for ever.
        let _end = End { health: Arc::clone(&self.health), inbox: Arc::clone(&self.inbox) };
        let (mut look, mut measure) = (Due(None), Due(None));
        let (mut log_losses, mut log_heads) = (Due(Some(Instant::now())), Due(None));
        let (mut swept_at, mut swept_for, mut more) = (None::<Instant>, Duration::ZERO, true);
        let mut lost = 0;
        let left = self.ledger.take_left();
        self.tell(Ok(left));
        loop {
            let batch = self.inbox.next(IDLE);
            let idle = batch.is_empty();
            let tick = look.now(LOOK);
            if tick {
                self.look_at_disk();
                // Nobody may emit anything for long.
                if let Some(error) = self.gone.take() {
                    self.reconnect(&error, Some(Duration::ZERO));
                }
            }
            if !batch.changes.is_empty() {
                self.write_changes(batch.changes);
            }
            if !batch.halves.is_empty() {
                self.write_halves(batch.halves);
            }
            for trace in batch.lost {
                let done = self.attempt(None, |ledger| ledger.lost_of(&trace, Instant::now()));
                self.tell(done);
            }
            if batch.closed {
                break;
            }
            if measure.now(MEASURE) {
                self.measure();
            }
            if tick || idle {
                lost += self.write_losses();
                let done = self.ledger.close_silent(Instant::now());
                self.tell(done);
            }
            if lost > 0 && log_losses.now(LOG_LOSSES) {
                tracing::warn!(emissions = lost, "Emissions were received and not stored");
                lost = 0;
            }
            if log_heads.now(LOG_HEADS) {
                self.log_heads();
            }
            let rested = swept_at.is_none_or(|at| at.elapsed() >= swept_for * SHARE);
            let due = swept_at.is_none_or(|at| at.elapsed() >= SWEEP);
            if (idle && rested && (more || due))
                || swept_at.is_some_and(|at| at.elapsed() >= SWEEP * 2)
            {
                let begun = Instant::now();
                let done = self.ledger.sweep(&self.retention, (self.clock.0)());
                more = done.as_ref().is_ok_and(crate::store::Swept::any);
                self.note(done.err());
                swept_for = begun.elapsed();
                swept_at = Some(Instant::now());
            }
        }
        self.write_losses();
    }

    fn tell(&mut self, done: Result<Applied, Error>) {
        for kind in self.ledger.take_found() {
            let labels = FindingLabels { kind: kind.name() };
            self.metrics.findings.get_or_create(&labels).inc();
        }
        match done {
            // Nobody may listen.
            Ok(applied) if applied != Applied::default() => drop(self.live.send(applied)),
            Ok(_) => {}
            Err(error) => self.note(Some(error)),
        }
    }

    /// Logs a failure. A connection that is gone is made again soon.
    fn note(&mut self, error: Option<Error>) {
        let Some(error) = error else { return };
        tracing::warn!(%error, "cannot write to the store");
        if let Error::Disconnected(reason) = error {
            self.health.writable.store(false, Ordering::Relaxed);
            self.gone = Some(reason);
        }
    }

    /// Connects again, at least once, until it works, the process stops or patience ends.
    fn reconnect(&mut self, reason: &str, patience: Option<Duration>) -> bool {
        let begun = Instant::now();
        self.health.writable.store(false, Ordering::Relaxed);
        let says_why = self.log_gone.now(LOG_FAILURES);
        if says_why {
            tracing::warn!(reason, "the connection to the store is lost");
        }
        loop {
            match self.ledger.reconnect() {
                Ok(()) => {
                    tracing::info!("the connection to the store is back");
                    self.health.writable.store(true, Ordering::Relaxed);
                    self.gone = None;
                    return true;
                }
                Err(error) => {
                    if says_why || self.log_gone.now(LOG_FAILURES) {
                        tracing::warn!(%error, "cannot connect to the store");
                    }
                    self.gone = Some(error.to_string());
                }
            }
            if self.stopping.load(Ordering::Relaxed)
                || patience.is_some_and(|patience| begun.elapsed() >= patience)
            {
                return false;
            }
            thread::sleep(RECONNECT);
        }
    }

    /// Writes, and tries again what can succeed later. Without a limit, it is only given up if the
    /// store is there and busy.
    fn attempt(
        &mut self,
        patience: Option<Duration>,
        write: impl Fn(&mut Ledger) -> Result<Applied, Error>,
    ) -> Result<Applied, Error> {
        let since = Instant::now();
        loop {
            let begun = Instant::now();
            let error = match write(&mut self.ledger) {
                Ok(applied) => {
                    self.metrics.write_seconds.observe(begun.elapsed().as_secs_f64());
                    self.health.writable.store(true, Ordering::Relaxed);
                    return Ok(applied);
                }
                Err(error) => error,
            };
            match &error {
                Error::Busy(_) if since.elapsed() < patience.unwrap_or(HALF_PATIENCE) => {
                    thread::sleep(PAUSE);
                }
                Error::Disconnected(reason)
                    if self
                        .reconnect(reason, patience.map(|p| p.saturating_sub(since.elapsed()))) => {
                }
                _ => {
                    self.health.writable.store(false, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    }

    fn look_at_disk(&mut self) {
        self.disk.look();
        self.health.full.store(self.disk.is_low(), Ordering::Relaxed);
    }

    fn write_halves(&mut self, halves: Vec<(HalfRecord, usize)>) {
        let (halves, sizes): (Vec<HalfRecord>, Vec<usize>) = halves.into_iter().unzip();
        let (count, bytes) = (halves.len() as u64, sizes.iter().sum::<usize>() as u64);
        if self.disk.is_low() {
            self.lose(Reason::DiskFull, count, bytes);
            return;
        }
        let done = self.attempt(None, |ledger| ledger.record(&halves, Instant::now()));
        match done {
            Ok(applied) => self.tell(Ok(applied)),
            Err(Error::Full(_)) => {
                self.disk.is_full();
                self.health.full.store(true, Ordering::Relaxed);
                self.lose(Reason::DiskFull, count, bytes);
            }
            Err(Error::Failed(_) | Error::Damaged(_)) if count > 1 => {
                // One of them must not take the others with it.
                for half in halves.into_iter().zip(sizes) {
                    self.write_halves(vec![half]);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot store an emission");
                self.lose(Reason::StoreFailed, count, bytes);
            }
        }
    }

    fn lose(&self, reason: Reason, emissions: u64, bytes: u64) {
        let now = (self.clock.0)();
        self.metrics.lost.get_or_create(&LossLabels { reason: reason.label() }).inc_by(emissions);
        self.losses.add(reason, Loss { at: now, until: now, emissions, bytes });
    }

    /// Writes down what was lost, as soon as that is possible.
    fn write_losses(&mut self) -> u64 {
        let mut count = 0;
        for (reason, loss) in self.losses.take() {
            let Loss { at, until, emissions, bytes } = loss;
            let written = if self.disk.is_low() {
                false
            } else {
                let done = self.ledger.lose((at, until), reason.text(), emissions, bytes);
                let written = done.is_ok();
                self.note(done.err());
                written
            };
            if written {
                count += emissions;
                self.health.writable.store(true, Ordering::Relaxed);
            } else {
                self.losses.add(reason, loss);
            }
        }
        count
    }

    fn write_changes(&mut self, changes: Vec<WaitingChange>) {
        let records: Vec<_> = changes.iter().map(|change| change.record.clone()).collect();
        let append = |ledger: &mut Ledger| ledger.append(&records);
        let mut done = self.attempt(Some(CHANGE_PATIENCE), append);
        if matches!(done, Err(Error::Full(_))) && self.disk.release() {
            tracing::warn!("the disk is full: change logs use the reserve");
            done = self.attempt(Some(CHANGE_PATIENCE), append);
        }
        if matches!(done, Err(Error::Failed(_) | Error::Damaged(_))) && changes.len() > 1 {
            for change in changes {
                self.write_changes(vec![change]);
            }
            return;
        }
        let answer = match &done {
            Ok(_) => Ok(()),
            Err(error @ Error::Full(_)) => Err(Status::resource_exhausted(error.to_string())),
            Err(error @ (Error::Busy(_) | Error::Disconnected(_))) => {
                Err(Status::unavailable(error.to_string()))
            }
            Err(error) => Err(Status::internal(format!("Failed to store entry: {error}"))),
        };
        for change in changes {
            // Who waited may have gone.
            let _ = change.done.send(answer.clone());
        }
        self.tell(done);
    }

    fn measure(&mut self) {
        let store = self.ledger.store();
        match store.size() {
            Ok(size) => {
                self.metrics.store_bytes.set(i64::try_from(size).unwrap_or(i64::MAX));
            }
            // This also shows whether the store is still there.
            Err(error) => return self.note(Some(error)),
        }
        if let Ok(oldest) = store.oldest_run() {
            self.metrics.oldest_run.set(oldest.unwrap_or_default() / 1_000_000);
        }
        if let Ok(sources) = store.sources() {
            for source in sources.into_iter().filter(|source| source.kind == "changelogs") {
                let labels = SourceLabels { source: source.name };
                self.metrics.chain_sequence.get_or_create(&labels).set(source.seq);
            }
        }
    }

    /// Whoever keeps the log can tell later whether a chain was cut off or replaced.
    fn log_heads(&self) {
        let Ok(sources) = self.ledger.store().sources() else { return };
        for source in sources.into_iter().filter(|source| source.kind == "changelogs") {
            let (name, seq) = (source.name, source.seq);
            tracing::info!(source = name, seq, head = hex(&source.head), "Chain of change logs");
        }
    }
}
