//! Receives emissions and entries, prints them, and stores them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use biplane_function::metrics::Metrics;
use biplane_proto::changelogs::{ChangeLogEntry, OperationType};
use biplane_proto::inspector::shipped::step_meta::Context;
use biplane_proto::redact::{Half, Mode, Redactor};
use tokio::sync::{broadcast, oneshot};
use tonic::{Status, async_trait};

use crate::disk::{Disk, Probe};
use crate::emission::{Dialect, Emission};
use crate::inbox::{Inbox, WaitingChange};
use crate::intake::{Intake, Next, Waiting};
use crate::line::{self, Format};
use crate::losses::{Loss, Losses, Reason};
use crate::metrics::{ChangeLabels, EmissionLabels, LineLabels, LossLabels, RecorderMetrics};
use crate::output::Output;
use crate::print::Spans;
use crate::receive::{TakeChange, TakeEmission};
use crate::store::{
    Applied, ChangeRecord, Error, HalfRecord, Ledger, LedgerOptions, Location, Retention, Unusable,
};
use crate::writer::{Clock, Due, Health, Now, Writer};

/// A provider waits ten seconds for an answer.
const ANSWER: Duration = Duration::from_secs(9);

/// How a recorder works.
pub struct Options {
    /// The store.
    pub location: Location,
    /// The id of the store if it is new: random bytes.
    pub id: [u8; 16],
    /// Cluster and name of the recorder.
    pub ledger: LedgerOptions,
    /// How long things are kept.
    pub retention: Retention,
    /// How many bytes of emissions may wait.
    pub queue: usize,
    /// Runs are not stored while less is free on the disk.
    pub min_free: u64,
    /// The size of the reserve for change logs.
    pub reserve: u64,
    /// Tells how much is free, instead of the file system.
    pub probe: Option<Probe>,
    /// Redacts what is stored. Its mode is always deep.
    pub redactor: Redactor,
    /// How lines are printed, if they are.
    pub print: Option<Print>,
    /// Only runs of these kinds or in these namespaces are stored. Empty: all.
    pub only: Vec<String>,
    /// The clock, in microseconds since 1970.
    pub now: Now,
}

/// How lines are printed.
#[derive(Clone, Debug)]
pub struct Print {
    /// The form of emissions.
    pub format: Format,
    /// What is redacted in lines.
    pub redactor: Redactor,
    /// Where they go.
    pub output: Output,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("location", &self.location).finish_non_exhaustive()
    }
}

/// A recorder that runs.
#[derive(Debug)]
pub struct Recorder {
    intake: Arc<Intake>,
    inbox: Arc<Inbox>,
    losses: Arc<Losses>,
    metrics: RecorderMetrics,
    clock: Clock,
    redactor: Redactor,
    print: Option<Print>,
    health: Arc<Health>,
    live: broadcast::Sender<Applied>,
    /// For whoever follows first, so that nothing is missed that was stored at the start.
    first: Mutex<Option<broadcast::Receiver<Applied>>>,
    stopping: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Why a recorder could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened.
    #[error("cannot open the store {location}: {reason}")]
    Store {
        /// Where it is.
        location: String,
        /// Why.
        reason: Error,
    },
    /// The folder of the store cannot be made.
    #[error("cannot make the folder {}: {reason}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// The system has no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

impl Recorder {
    /// Opens the store and starts to write. Call it where nothing asynchronous runs.
    pub fn start(options: Options, metrics: &Metrics) -> Result<Arc<Self>, StartError> {
        if let Some(folder) = options.location.file().and_then(|path| path.parent()) {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|reason| StartError::Folder { folder: folder.to_owned(), reason })?;
        }
        let (location, clock) = (options.location, Clock(options.now));
        let now = ((clock.0)(), Instant::now());
        let ledger = Ledger::open(&location, &options.id, options.ledger, now)
            .map_err(|reason| StartError::Store { location: location.to_string(), reason })?;
        let mut disk = match location.file() {
            Some(path) => Disk::of_file(path, options.min_free, options.reserve, options.probe),
            None => Disk::unknown(),
        };
        disk.look();
        let (live, first) = broadcast::channel(256);
        let recorder = Arc::new(Self {
            intake: Arc::new(Intake::new(options.queue)),
            inbox: Arc::default(),
            losses: Arc::default(),
            metrics: RecorderMetrics::new(metrics),
            clock,
            redactor: options.redactor,
            print: options.print,
            health: Arc::default(),
            live,
            first: Mutex::new(Some(first)),
            stopping: Arc::default(),
            threads: Mutex::default(),
        });
        let writer = Writer {
            ledger,
            inbox: Arc::clone(&recorder.inbox),
            losses: Arc::clone(&recorder.losses),
            disk,
            retention: options.retention,
            metrics: recorder.metrics.clone(),
            live: recorder.live.clone(),
            health: Arc::clone(&recorder.health),
            clock: recorder.clock.clone(),
            stopping: Arc::clone(&recorder.stopping),
            gone: None,
            log_gone: Due::default(),
        };
        let digester = Digester {
            intake: Arc::clone(&recorder.intake),
            inbox: Arc::clone(&recorder.inbox),
            losses: Arc::clone(&recorder.losses),
            metrics: recorder.metrics.clone(),
            redactor: recorder.redactor.clone(),
            print: recorder.print.clone(),
            only: options.only,
            spans: (Spans::default(), Spans::default()),
        };
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        let writing = thread("writer").spawn(move || writer.run()).map_err(StartError::Thread)?;
        let digesting =
            thread("digest").spawn(move || digester.run()).map_err(StartError::Thread)?;
        recorder.threads().extend([digesting, writing]);
        Ok(recorder)
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is stored from now on, for whoever follows; for the first one, since the start.
    pub fn live(&self) -> broadcast::Receiver<Applied> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.live.subscribe())
    }

    /// Whether it runs. A disk that is full is no reason to end it.
    pub fn is_alive(&self) -> Result<(), &'static str> {
        if self.health.alive.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("the writer does not run")
        }
    }

    /// Whether it runs and can write.
    pub fn is_ready(&self) -> Result<(), &'static str> {
        self.is_alive()?;
        if self.health.writable.load(Ordering::Relaxed) {
            Ok(())
        } else {
            Err("the store cannot be written")
        }
    }

    /// Why runs are not stored, if that is so. Change logs may still be: they have a reserve.
    pub fn trouble(&self) -> Option<&'static str> {
        let is_full = self.health.full.load(Ordering::Relaxed);
        self.is_ready().err().or(is_full.then_some("the disk is full"))
    }

    /// Stores what was received and ends. Gives up after a while, and then says so.
    pub fn stop(&self, patience: Duration) -> bool {
        let begun = Instant::now();
        self.intake.close();
        let threads = std::mem::take(&mut *self.threads());
        let mut all = true;
        for (at, thread) in threads.into_iter().enumerate() {
            if at == 1 {
                // Everything is digested.
                self.inbox.close();
            }
            while !thread.is_finished() && begun.elapsed() < patience {
                thread::sleep(Duration::from_millis(5));
            }
            if thread.is_finished() {
                all &= thread.join().is_ok();
            } else {
                self.stopping.store(true, Ordering::Relaxed);
                all = false;
            }
        }
        all
    }
}

#[async_trait]
impl TakeEmission for Recorder {
    /// Answers as soon as the emission is queued. The pipeline does not wait for the store.
    async fn take(&self, emission: Emission) -> Result<(), Status> {
        let labels = EmissionLabels {
            r#type: match emission.half {
                Half::Request => "request",
                Half::Response => "response",
            },
            dialect: match emission.dialect {
                Dialect::Shipped => "shipped",
                Dialect::Design => "design",
            },
        };
        self.metrics.emissions.get_or_create(&labels).inc();
        let now = (self.clock.0)();
        let waiting = Waiting { emission, received: now, arrived: Instant::now() };
        let dropped = self.intake.push(waiting);
        self.metrics.queue_bytes.set(i64::try_from(self.intake.bytes()).unwrap_or(i64::MAX));
        if dropped.emissions > 0 {
            let (emissions, bytes) = (dropped.emissions, dropped.bytes);
            let reason = Reason::QueueFull;
            self.metrics
                .lost
                .get_or_create(&LossLabels { reason: reason.label() })
                .inc_by(emissions);
            self.losses.add(reason, Loss { at: now, until: now, emissions, bytes });
        }
        Ok(())
    }
}

#[async_trait]
impl TakeChange for Recorder {
    /// Answers when the entry is on the disk.
    async fn take(&self, entry: ChangeLogEntry) -> Result<(), Status> {
        let failed = |error| Status::internal(format!("Failed to marshall input entry: {error}"));
        let operation = match OperationType::try_from(entry.operation) {
            Ok(OperationType::Create) => "create",
            Ok(OperationType::Update) => "update",
            Ok(OperationType::Delete) => "delete",
            _ => "other",
        };
        let result = if entry.error_message.is_some() { "failure" } else { "success" };
        let stored = self.redactor.entry(entry.clone());
        let record = ChangeRecord::new(stored, (self.clock.0)()).map_err(failed)?;
        if let Some(print) = &self.print {
            let line = line::entry(&print.redactor.entry(entry)).map_err(failed)?;
            let unwritten = |error| Status::internal(format!("Failed to write entry: {error}"));
            if !print.output.write_soon(line).await.map_err(unwritten)? {
                self.metrics.unprinted.get_or_create(&LineLabels { kind: "change" }).inc();
            }
        }
        let (done, answer) = oneshot::channel();
        self.inbox.put_change(WaitingChange { record, done })?;
        let gone = |_| Err(Status::unavailable("the recorder is stopping"));
        // Whatever the writer waits for, the provider does not. The entry is stored all the same as
        // soon as that is possible.
        match tokio::time::timeout(ANSWER, answer).await {
            Ok(answer) => answer.unwrap_or_else(gone)?,
            Err(_) => return Err(Status::unavailable("the store does not answer")),
        }
        self.metrics.changes.get_or_create(&ChangeLabels { operation, result }).inc();
        Ok(())
    }
}

/// The thread that parses, redacts, prints and takes apart.
struct Digester {
    intake: Arc<Intake>,
    inbox: Arc<Inbox>,
    losses: Arc<Losses>,
    metrics: RecorderMetrics,
    redactor: Redactor,
    print: Option<Print>,
    only: Vec<String>,
    /// Calls whose request was redacted, for the store and for lines.
    spans: (Spans, Spans),
}

impl Digester {
    fn run(mut self) {
        while let Some(next) = self.intake.pop() {
            match next {
                Next::Lost(trace) => self.inbox.lost(trace),
                Next::Emission(waiting) => self.digest(&waiting),
            }
            self.metrics.queue_bytes.set(i64::try_from(self.intake.bytes()).unwrap_or(i64::MAX));
        }
    }

    fn digest(&mut self, waiting: &Waiting) {
        let emission = &waiting.emission;
        let payload = self.spans.0.redacted(&self.redactor, emission);
        if let Some(print) = &self.print {
            let printed = if print.redactor.mode() == Mode::Deep {
                payload.clone()
            } else {
                self.spans.1.redacted(&print.redactor, emission)
            };
            let Emission { half, meta, error, .. } = emission;
            if let Some(line) = line::emission(print.format, *half, meta.as_ref(), printed, error) {
                if !print.output.write_later(line) {
                    let labels = LineLabels { kind: "emission" };
                    self.metrics.unprinted.get_or_create(&labels).inc();
                }
            } else {
                tracing::debug!("cannot print an emission: its metadata has no JSON form");
            }
        }
        if !self.is_wanted(emission) {
            return;
        }
        let bytes = emission.payload.len();
        let half = HalfRecord::new(emission, payload, waiting.received, Some(waiting.arrived));
        let reason = match half {
            Ok(half) => return self.inbox.put(half, bytes),
            Err(Unusable::NoTrace) => Reason::NoTrace,
            Err(Unusable::Step) => Reason::StepNumber,
        };
        self.metrics.lost.get_or_create(&LossLabels { reason: reason.label() }).inc();
        let (at, bytes) = (waiting.received, bytes as u64);
        self.losses.add(reason, Loss { at, until: at, emissions: 1, bytes });
    }

    /// Whether runs of this kind or in this namespace are stored.
    fn is_wanted(&self, emission: &Emission) -> bool {
        if self.only.is_empty() {
            return true;
        }
        let context = emission.meta.as_ref().and_then(|meta| meta.context.as_ref());
        let (kind, namespace) = match context {
            Some(Context::CompositionMeta(of)) => {
                (of.composite_resource_kind.as_str(), of.composite_resource_namespace.as_str())
            }
            Some(Context::OperationMeta(_)) => ("Operation", ""),
            None => ("", ""),
        };
        self.only.iter().any(|only| only == kind || (only == namespace && !namespace.is_empty()))
    }
}
