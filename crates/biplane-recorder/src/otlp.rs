//! Sends runs and changes to an OpenTelemetry collector as they are stored: OTLP over HTTP, in JSON.
//!
//! It follows what the writer tells and reads from the store, so it takes nothing from those who
//! emit. What waits is bounded: when the collector is away for long, the oldest is dropped and
//! counted.

mod queue;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use biplane_function::metrics::{Counters, Metrics};
use prometheus_client::encoding::EncodeLabelSet;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use self::queue::{Item, Queue};
use crate::http::{Answered, HttpError, Server};
use crate::query::answer::Link;
use crate::query::archive::{Archive as _, Error};
use crate::query::ask::linked;
use crate::query::otlp::traces_and_changes;
use crate::query::record::{ChangeRecord, Outcome, Run};
use crate::query::stored::Stored;
use crate::store::Applied;

/// Where spans go below the address of a collector.
const PATH: &str = "/v1/traces";

/// How many runs and changes are sent at a time, and how long the first of them waits for others.
const BATCH: usize = 64;
const LINGER: Duration = Duration::from_millis(500);

/// How many runs are remembered, the latest ones.
const KNOWN: usize = 4096;

/// How often the feeder looks whether something was stored.
const LOOK: Duration = Duration::from_millis(50);

/// How an exporter works.
#[derive(Clone, Debug)]
pub struct Options {
    /// The collector.
    pub server: Server,
    /// The store.
    pub store: String,
    /// How many runs and changes may wait.
    pub queue: usize,
    /// How long to wait after the first failure. Each further one doubles it.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Options {
    /// Usual sizes and times.
    pub fn new(server: Server, store: String) -> Self {
        let (pause, longest_pause) = (Duration::from_secs(1), Duration::from_secs(30));
        Self { server, store, queue: 10_000, pause, longest_pause }
    }
}

/// The label of what was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SentLabels {
    /// `run` or `change`.
    kind: &'static str,
}

/// The label of what was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LostLabels {
    /// Why.
    reason: &'static str,
}

#[derive(Clone, Debug)]
struct OtlpMetrics {
    sent: Counters<SentLabels>,
    lost: Counters<LostLabels>,
}

impl OtlpMetrics {
    fn lose(&self, reason: &'static str, count: u64) {
        if count > 0 {
            self.lost.get_or_create(&LostLabels { reason }).inc_by(count);
        }
    }
}

/// An exporter that runs.
#[derive(Debug)]
pub struct Exporter {
    queue: Arc<Queue>,
    /// Whether something was not sent because the process ends.
    gave_up: Arc<AtomicBool>,
    metrics: OtlpMetrics,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Exporter {
    /// Begins to send what is stored from now on.
    pub fn start(
        options: Options,
        live: broadcast::Receiver<Applied>,
        metrics: &Metrics,
    ) -> std::io::Result<Self> {
        let metrics = OtlpMetrics {
            sent: metrics.counters(
                "biplane_recorder_otlp_sent_total",
                "Runs and changes that an OpenTelemetry collector took.",
            ),
            lost: metrics.counters(
                "biplane_recorder_otlp_lost_total",
                "Runs and changes that were not sent to an OpenTelemetry collector.",
            ),
        };
        let (queue, gave_up) = (Arc::new(Queue::new(options.queue)), Arc::default());
        let feeder = Feeder { live, queue: Arc::clone(&queue), metrics: metrics.clone() };
        let sender = Sender {
            options,
            queue: Arc::clone(&queue),
            metrics: metrics.clone(),
            stored: None,
            gave_up: Arc::clone(&gave_up),
            known: BTreeMap::new(),
            fails: false,
        };
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let feeding = named("otlp feeder").spawn(move || feeder.run())?;
        let sending = named("otlp sender").spawn(move || sender.run())?;
        Ok(Self { queue, gave_up, metrics, threads: Mutex::new(vec![feeding, sending]) })
    }

    /// Sends what was stored and ends. Call it after the recorder has stopped. Gives up after a
    /// while, and then says so.
    pub fn stop(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        self.queue.stop(end);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let mut is_whole = true;
        for thread in threads {
            while !thread.is_finished() && Instant::now() < end {
                thread::sleep(Duration::from_millis(5));
            }
            is_whole &= thread.is_finished() && thread.join().is_ok();
        }
        let left = self.queue.clear();
        self.metrics.lose("stopped", left);
        is_whole && left == 0 && !self.gave_up.load(Ordering::Relaxed)
    }
}

/// The thread that takes what the writer tells.
struct Feeder {
    live: broadcast::Receiver<Applied>,
    queue: Arc<Queue>,
    metrics: OtlpMetrics,
}

impl Feeder {
    fn run(mut self) {
        loop {
            match self.live.try_recv() {
                Ok(applied) => {
                    let runs = applied.runs.into_iter().map(Item::Run);
                    let changes = applied.changes.into_iter().map(|(key, ..)| Item::Change(key));
                    let dropped = self.queue.put(runs.chain(changes));
                    self.metrics.lose("queue_full", dropped);
                }
                Err(TryRecvError::Lagged(batches)) => self.metrics.lose("lagged", batches),
                Err(TryRecvError::Closed) => break,
                Err(TryRecvError::Empty) => {
                    if self.queue.is_stopping() {
                        break;
                    }
                    thread::sleep(LOOK);
                }
            }
        }
        self.queue.close();
    }
}

/// The thread that sends.
struct Sender {
    options: Options,
    queue: Arc<Queue>,
    metrics: OtlpMetrics,
    stored: Option<Stored>,
    /// Whether something was not sent because the process ends.
    gave_up: Arc<AtomicBool>,
    /// How runs looked when they were last read, so that one that is told twice is sent once.
    known: BTreeMap<i64, (Outcome, usize)>,
    /// Whether the last attempt failed, so that only the first one is logged.
    fails: bool,
}

/// What was read to be sent.
#[derive(Default)]
struct Batch {
    runs: Vec<Run>,
    changes: Vec<(ChangeRecord, Option<Link>)>,
    /// What could not be read, and why.
    unreadable: Vec<(Item, String)>,
}

/// What a collector said about a batch.
enum Verdict {
    Taken { rejected: u64 },
    Later(Option<Duration>),
    Refused(u16),
}

impl Sender {
    fn run(mut self) {
        while let Some(batch) = self.queue.next(BATCH, LINGER) {
            let mut read = self.read(&batch);
            if read.unreadable.len() == batch.len() {
                // It may be the connection. One more attempt with another one tells.
                self.stored = None;
                if !self.queue.rest(self.options.pause) {
                    self.metrics.lose("stopped", batch.len() as u64);
                    self.gave_up.store(true, Ordering::Relaxed);
                    return;
                }
                read = self.read(&batch);
            }
            for (item, error) in &read.unreadable {
                let (Item::Run(key) | Item::Change(key)) = item;
                let kind = if matches!(item, Item::Run(_)) { "run" } else { "change" };
                tracing::warn!(kind, key, %error, "cannot read what is to be sent to the collector");
            }
            self.metrics.lose("unreadable", read.unreadable.len() as u64);
            if !read.runs.is_empty() || !read.changes.is_empty() {
                self.send(&read.runs, &read.changes);
            }
        }
    }

    /// Reads runs that have ended, and changes with what they belong to.
    fn read(&mut self, batch: &[Item]) -> Batch {
        let opened = match self.stored.take() {
            Some(stored) => Ok(stored),
            None => Stored::open(&self.options.store),
        };
        let mut read = Batch::default();
        let stored = match opened {
            Ok(stored) => stored,
            Err(error) => {
                let error = error.to_string();
                read.unreadable = batch.iter().map(|item| (*item, error.clone())).collect();
                return read;
            }
        };
        for item in batch {
            if let Err(error) = self.read_one(&stored, *item, &mut read) {
                read.unreadable.push((*item, error.to_string()));
            }
        }
        while self.known.len() > KNOWN {
            self.known.pop_first();
        }
        self.stored = Some(stored);
        read
    }

    fn read_one(&mut self, stored: &Stored, item: Item, read: &mut Batch) -> Result<(), Error> {
        match item {
            Item::Run(key) => match stored.run_of_key(key)? {
                // It is told again when it ends.
                Some(run) if run.head.open => {}
                Some(run) => {
                    let look = (run.head.outcome, run.steps.len());
                    if self.known.insert(key, look) != Some(look) {
                        read.runs.push(run);
                    }
                }
                None => self.metrics.lose("gone", 1),
            },
            Item::Change(key) => match stored.change(key)? {
                Some(change) => {
                    let link = linked(stored, &change)?;
                    read.changes.push((change, link));
                }
                None => self.metrics.lose("gone", 1),
            },
        }
        Ok(())
    }

    /// Sends until the collector has taken or refused it, or the process ends.
    fn send(&mut self, runs: &[Run], changes: &[(ChangeRecord, Option<Link>)]) {
        let count = (runs.len() + changes.len()) as u64;
        let body = traces_and_changes(runs, changes).to_string();
        let mut pause = self.options.pause;
        loop {
            let asked = match self.attempt(&body) {
                Verdict::Taken { rejected } => {
                    let sent = |kind| self.metrics.sent.get_or_create(&SentLabels { kind }).clone();
                    sent("run").inc_by(runs.len() as u64);
                    sent("change").inc_by(changes.len() as u64);
                    self.metrics.lose("rejected", rejected);
                    return;
                }
                Verdict::Refused(status) => {
                    tracing::warn!(status, runs = count, "the collector refuses spans");
                    self.metrics.lose("refused", count);
                    return;
                }
                Verdict::Later(asked) => asked,
            };
            let wait = asked.unwrap_or(pause).min(self.options.longest_pause);
            if !self.queue.rest(wait) {
                self.metrics.lose("stopped", count);
                self.gave_up.store(true, Ordering::Relaxed);
                return;
            }
            pause = (pause * 2).min(self.options.longest_pause);
        }
    }

    fn attempt(&mut self, body: &str) -> Verdict {
        let server = &self.options.server;
        let path = match server.path() {
            path if path.ends_with(PATH) => path.to_owned(),
            path => format!("{path}{PATH}"),
        };
        let answered = server.post(&path, "application/json", body.as_bytes());
        let failed = match &answered {
            Ok(answered) if answered.status >= 300 => Some(format!("status {}", answered.status)),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        match (&failed, self.fails) {
            (Some(error), false) => tracing::warn!(error, "the collector does not take spans"),
            (None, true) => tracing::info!("the collector takes spans again"),
            _ => {}
        }
        self.fails = failed.is_some();
        judge(answered)
    }
}

/// What an answer means, as OTLP defines it.
fn judge(answered: Result<Answered, HttpError>) -> Verdict {
    let Ok(answered) = answered else { return Verdict::Later(None) };
    match answered.status {
        200..300 => {
            let body: serde_json::Value =
                serde_json::from_slice(&answered.body).unwrap_or_default();
            let rejected = body.get("partialSuccess").and_then(|part| part.get("rejectedSpans"));
            // Numbers of 64 bits are texts in the JSON of protobuf.
            let rejected = rejected.and_then(|r| r.as_u64().or_else(|| r.as_str()?.parse().ok()));
            Verdict::Taken { rejected: rejected.unwrap_or_default() }
        }
        429 | 502 | 503 | 504 => Verdict::Later(answered.retry_after.map(Duration::from_secs)),
        status => Verdict::Refused(status),
    }
}
