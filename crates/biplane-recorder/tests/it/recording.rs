//! A recorder as a whole: sockets, queue, disk, and what is left when it is killed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use biplane_function::metrics::Metrics;
use biplane_proto::changelogs::SendChangeLogRequest;
use biplane_proto::changelogs::change_log_service_client::ChangeLogServiceClient;
use biplane_proto::inspector::shipped::pipeline_inspector_service_client::PipelineInspectorServiceClient;
use biplane_proto::inspector::shipped::{EmitRequestRequest, EmitResponseRequest};
use biplane_proto::json::from_value;
use biplane_proto::redact::{Half, Mode};
use biplane_recorder::recorder::{Options, Print, Recorder};
use biplane_recorder::store::rows::{ChangeFilter, FindingFilter, Outcome, RunFilter};
use biplane_recorder::store::{Location, Store};
use biplane_recorder::{Format, Output, serve};
use serde_json::json;
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::Channel;

use crate::store::raw::Raw;
use crate::store::world::{self, Call, NOON, forever, simple};
use crate::world::{Printed, channel, redactor};

pub(crate) fn options(location: &Location) -> Options {
    let clock = AtomicI64::new(NOON);
    Options {
        location: location.clone(),
        id: [7; 16],
        ledger: world::options(),
        retention: forever(),
        queue: 1 << 25,
        min_free: 0,
        reserve: 1 << 20,
        probe: None,
        redactor: redactor(Mode::Deep),
        print: None,
        only: Vec::new(),
        now: Arc::new(move || clock.fetch_add(1, Ordering::Relaxed)),
    }
}

/// A recorder that listens.
struct Recording {
    recorder: Arc<Recorder>,
    location: Location,
    metrics: Metrics,
    inspector: PipelineInspectorServiceClient<Channel>,
    changes: ChangeLogServiceClient<Channel>,
    _folder: TempDir,
}

/// Serves both services at sockets in a folder.
async fn serve_in(folder: &Path, recorder: &Arc<Recorder>) {
    let options = |name: &str| crate::world::options(&folder.join(name));
    let inspector = serve::inspector(Arc::clone(recorder), options("inspector")).await.unwrap();
    let changes = serve::change_logs(Arc::clone(recorder), options("changes")).await.unwrap();
    tokio::spawn(inspector.run(std::future::pending(), std::future::pending()));
    tokio::spawn(changes.run(std::future::pending(), std::future::pending()));
}

async fn clients(
    folder: &Path,
) -> (PipelineInspectorServiceClient<Channel>, ChangeLogServiceClient<Channel>) {
    let inspector = PipelineInspectorServiceClient::new(channel(&folder.join("inspector")).await);
    let changes = ChangeLogServiceClient::new(channel(&folder.join("changes")).await);
    (inspector, changes)
}

impl Recording {
    async fn start(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let metrics = Metrics::default();
        let location = options.location.clone();
        let own = metrics.clone();
        // The store may have a runtime of its own.
        let recorder = tokio::task::spawn_blocking(move || Recorder::start(options, &own));
        let recorder = recorder.await.unwrap().unwrap();
        serve_in(folder.path(), &recorder).await;
        let (inspector, changes) = clients(folder.path()).await;
        Self { recorder, location, metrics, inspector, changes, _folder: folder }
    }

    async fn emit(&mut self, call: &Call) {
        emit(&mut self.inspector, call).await;
    }

    async fn change(&mut self, name: &str) -> Result<(), tonic::Status> {
        send(&mut self.changes, name, "").await
    }

    /// Stores everything and ends.
    async fn stop(&self) {
        let recorder = Arc::clone(&self.recorder);
        let stopped = tokio::task::spawn_blocking(move || recorder.stop(Duration::from_mins(1)));
        assert!(stopped.await.unwrap());
    }

    /// Waits until something holds. It will, or the test fails after long.
    async fn until(&self, what: &str, holds: impl Fn(&Store) -> bool + Send + Sync + 'static) {
        let location = self.location.clone();
        let waiting = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_mins(2) {
                if holds(&Store::open_existing(&location).unwrap()) {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            false
        });
        assert!(waiting.await.unwrap(), "{what}");
    }

    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&Store) -> T + Send + 'static) -> T {
        let location = self.location.clone();
        let reading =
            tokio::task::spawn_blocking(move || read(&Store::open_existing(&location).unwrap()));
        reading.await.unwrap()
    }
}

async fn emit(client: &mut PipelineInspectorServiceClient<Channel>, call: &Call) {
    for emission in call.emissions() {
        let (meta, payload) = (emission.meta, emission.payload);
        if emission.half == Half::Request {
            client.emit_request(EmitRequestRequest { request: payload, meta }).await.unwrap();
        } else {
            let request = EmitResponseRequest { response: payload, error: emission.error, meta };
            client.emit_response(request).await.unwrap();
        }
    }
}

async fn send(
    client: &mut ChangeLogServiceClient<Channel>,
    name: &str,
    text: &str,
) -> Result<(), tonic::Status> {
    let request: SendChangeLogRequest = from_value(json!({"entry": {
        "name": name, "operation": "OPERATION_TYPE_CREATE", "snapshot": {"metadata": {"name": name}, "text": text},
    }}))
    .unwrap();
    client.send_change_log(request).await.map(drop)
}

fn names(store: &Store) -> BTreeSet<String> {
    let filter = ChangeFilter { newer_than: Some(0), ..ChangeFilter::default() };
    let all = store.changes(&filter, 1_000_000, None).unwrap();
    all.into_iter().map(|change| change.object.name).collect()
}

fn traces(store: &Store) -> Vec<String> {
    let runs = store.runs(&RunFilter::default(), 1_000_000, None).unwrap();
    runs.into_iter().map(|run| run.trace).collect()
}

async fn what_is_received_is_printed_and_stored(location: Location) {
    let printed = Printed::default();
    let output = Output::new(printed.clone()).unwrap();
    let print = Print { format: Format::Json, redactor: redactor(Mode::Deep), output };
    let options = Options { print: Some(print), ..options(&location) };
    let mut recording = Recording::start(options).await;
    let mut live = recording.recorder.live();
    recording.emit(&simple("a", "eu")).await;
    recording.change("db").await.unwrap();
    // The answer comes after the commit.
    assert_eq!(recording.read(names).await, BTreeSet::from(["db".to_owned()]));
    recording.emit(&simple("b", "eu")).await;
    recording.stop().await;
    assert_eq!(recording.read(traces).await.len(), 2);
    let lines = printed.take();
    assert_eq!(lines.lines().count(), 5, "{lines}");
    assert_eq!(lines.matches("\"type\":\"REQUEST\"").count(), 2);
    let mut told = Vec::new();
    while let Ok(applied) = live.try_recv() {
        told.extend(applied.runs);
    }
    assert!(!told.is_empty());
    let metrics = recording.metrics.text();
    for line in [
        "biplane_recorder_emissions_total{type=\"request\",dialect=\"shipped\"} 2",
        "biplane_recorder_emissions_total{type=\"response\",dialect=\"shipped\"} 2",
        "biplane_recorder_changes_total{operation=\"create\",result=\"success\"} 1",
        "biplane_recorder_queue_bytes 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    // It takes no more.
    assert_eq!(recording.change("late").await.unwrap_err().code(), Code::Unavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_received_is_printed_and_stored_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    // The folder is made.
    what_is_received_is_printed_and_stored(Location::File(folder.path().join("new/store.db")))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_received_is_printed_and_stored_on_a_server() {
    let location = tokio::task::spawn_blocking(crate::postgres::database).await.unwrap();
    what_is_received_is_printed_and_stored(location).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emission_that_does_not_fit_is_lost_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let mut recording = Recording::start(Options { queue: 4000, ..options(&location) }).await;
    recording.emit(&simple("large", &"x".repeat(5000))).await;
    recording.emit(&simple("small", "eu")).await;
    recording.until("the run is stored", |store| traces(store) == ["small"]).await;
    recording.stop().await;
    let losses = recording.read(|store| store.losses(0, i64::MAX).unwrap()).await;
    assert_eq!(losses.iter().map(|loss| loss.emissions).sum::<i64>(), 2);
    assert!(losses.iter().all(|loss| loss.reason == "queue full" && loss.bytes > 5000));
    let metrics = recording.metrics.text();
    assert!(metrics.contains("biplane_recorder_lost_total{reason=\"queue_full\"} 2"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_in_runs_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let mut recording = Recording::start(options(&location)).await;
    recording.emit(&simple("a", "eu")).await;
    let other = Call { response: simple("b", "us").response, ..simple("b", "eu") };
    recording.emit(&other).await;
    recording.emit(&simple("c", "us")).await;
    recording.stop().await;
    let found = recording.read(|store| store.findings(&FindingFilter::default(), 9, None)).await;
    assert_eq!(found.unwrap().len(), 1);
    let metrics = recording.metrics.text();
    let line = "biplane_recorder_findings_total{kind=\"same-input\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_some_runs_are_stored_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let options = Options { only: vec!["Other".into()], ..options(&location) };
    let mut recording = Recording::start(options).await;
    recording.emit(&simple("a", "eu")).await;
    recording.stop().await;
    assert_eq!(recording.read(traces).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_step_is_refused_with_a_reason_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let mut recording = Recording::start(options(&location)).await;
    for index in [-1, 1001, i32::MAX] {
        recording.emit(&Call { index, ..simple("a", "eu") }).await;
    }
    recording.emit(&simple("", "eu")).await;
    recording.emit(&simple("b", "eu")).await;
    recording.stop().await;
    assert_eq!(recording.read(traces).await, ["b"]);
    let metrics = recording.metrics.text();
    for line in [
        "biplane_recorder_lost_total{reason=\"step_number\"} 6",
        "biplane_recorder_lost_total{reason=\"no_trace\"} 2",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

/// Standard output that nobody reads, until the other end is dropped.
struct Unread(std::sync::mpsc::Receiver<()>);

impl std::io::Write for Unread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reads_is_stored_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let (reader, unread) = std::sync::mpsc::channel();
    let output = Output::new(Unread(unread)).unwrap();
    let print = Print { format: Format::Json, redactor: redactor(Mode::Deep), output };
    let mut recording =
        Recording::start(Options { print: Some(print), ..options(&location) }).await;
    for number in 0..200 {
        recording.emit(&simple(&format!("run-{number}"), "eu")).await;
    }
    for name in ["one", "two"] {
        recording.change(name).await.unwrap();
    }
    recording.stop().await;
    assert_eq!(recording.read(traces).await.len(), 200);
    assert_eq!(recording.read(names).await.len(), 2);
    let metrics = recording.metrics.text();
    for kind in ["emission", "change"] {
        let line = format!("biplane_recorder_unprinted_total{{kind=\"{kind}\"}}");
        assert!(metrics.contains(&line), "{metrics}");
    }
    drop(reader);
}

/// On a server, with a connection of the test's own.
async fn on_a_server() -> (Recording, Raw) {
    let location = tokio::task::spawn_blocking(crate::postgres::database).await.unwrap();
    let recording = Recording::start(options(&location)).await;
    let raw = tokio::task::spawn_blocking(move || Raw::open(&location)).await.unwrap();
    (recording, raw)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_does_not_wait_for_a_store_that_is_busy() {
    let (mut recording, raw) = on_a_server().await;
    let locked = tokio::task::spawn_blocking(move || {
        raw.execute("BEGIN; LOCK TABLE source IN ACCESS EXCLUSIVE MODE");
        raw
    });
    let raw = locked.await.unwrap();
    let refused = recording.change("db").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    tokio::task::spawn_blocking(move || raw.execute("ROLLBACK")).await.unwrap();
    recording.change("later").await.unwrap();
    recording.stop().await;
    assert!(recording.read(names).await.contains("later"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_lost_is_repaired_while_nothing_is_emitted() {
    let (recording, raw) = on_a_server().await;
    let repaired = tokio::task::spawn_blocking(move || {
        let of = "FROM pg_stat_activity WHERE application_name = 'biplane recorder' \
            AND datname = current_database()";
        let last = raw.number(&format!("SELECT max(pid)::bigint {of}"));
        raw.rows(&format!("SELECT pg_terminate_backend(pid)::text {of}"));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_mins(2) {
            if raw.number(&format!("SELECT count(*) {of} AND pid <> {last}")) > 0 {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        false
    });
    assert!(repaired.await.unwrap(), "nobody connects again");
    recording.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_lost_while_the_disk_is_nearly_full_and_changes_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("store.db"));
    let free = Arc::new(AtomicU64::new(10));
    let probed = Arc::clone(&free);
    let probe: biplane_recorder::disk::Probe =
        Box::new(move || Some(probed.load(Ordering::Relaxed)));
    let options = Options { min_free: 1000, probe: Some(probe), ..options(&location) };
    let mut recording = Recording::start(options).await;
    recording.emit(&simple("lost", "eu")).await;
    recording.change("db").await.unwrap();
    free.store(1 << 40, Ordering::Relaxed);
    // It recovers by itself: the loss is written down as soon as there is room.
    recording
        .until("the loss is told", |store| !store.losses(0, i64::MAX).unwrap().is_empty())
        .await;
    recording.emit(&simple("kept", "eu")).await;
    recording.stop().await;
    assert_eq!(recording.read(traces).await, ["kept"]);
    assert_eq!(recording.read(names).await.len(), 1);
    let losses = recording.read(|store| store.losses(0, i64::MAX).unwrap()).await;
    assert_eq!((losses[0].reason.as_str(), losses[0].emissions), ("disk full", 2));
    assert!(folder.path().join("store.db-reserve").exists());
}

/// Words that do not compress.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b' ' + 1 + (state % 90) as u8)
    };
    (0..length).map(|_| next()).filter(|c| *c != '"' && *c != '\\').collect()
}

/// A disk of its own needs root. Without it, the test above stands for this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_changes_only_when_the_reserve_is_used_up() {
    use nix::mount::{MntFlags, MsFlags, mount, umount2};
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = mount(Some("tmpfs"), &disk, Some("tmpfs"), MsFlags::empty(), Some("size=24m"));
    if let Err(error) = mounted {
        println!("no disk of its own can be mounted here: {error}");
        assert!(!nix::unistd::geteuid().is_root() || error == nix::errno::Errno::EPERM);
        return;
    }
    let location = Location::File(disk.join("store.db"));
    let options = Options { min_free: 4 << 20, reserve: 2 << 20, ..options(&location) };
    let mut recording = Recording::start(options).await;
    recording.emit(&simple("before", "eu")).await;
    recording.change("before").await.unwrap();
    recording.until("the first run is stored", |store| traces(store) == ["before"]).await;
    assert!(disk.join("store.db-reserve").exists());

    // Somebody else fills the disk, to the last block.
    let filler = disk.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    drop(file);
    let mut stored = BTreeSet::from(["before".to_owned()]);
    let mut refused = None;
    for number in 0..200_u64 {
        // The pipeline goes on.
        recording.emit(&simple(&format!("full-{number}"), "eu")).await;
        let name = format!("full-{number}");
        match send(&mut recording.changes, &name, &noise(number, 100_000)).await {
            Ok(()) => drop(stored.insert(name)),
            Err(status) => {
                refused = Some(status);
                break;
            }
        }
    }
    let refused = refused.expect("the disk is never full");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(stored.len() > 5, "only {} changes fit into the reserve", stored.len());
    assert!(!disk.join("store.db-reserve").exists());

    // There is room again, and it recovers without a restart.
    std::fs::remove_file(&filler).unwrap();
    let begun = Instant::now();
    while let Err(status) = recording.change("after").await {
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(begun.elapsed() < Duration::from_mins(1));
    }
    stored.insert("after".to_owned());
    recording
        .until("the loss is told", |store| !store.losses(0, i64::MAX).unwrap().is_empty())
        .await;
    recording.emit(&simple("after", "us")).await;
    recording.until("runs are stored", |store| traces(store).contains(&"after".to_owned())).await;
    recording.stop().await;
    let found = recording.read(names).await;
    assert!(stored.is_subset(&found), "{:?}", stored.difference(&found));
    let verified = recording.read(|store| store.verify().unwrap()).await;
    assert_eq!(verified[0].broken, []);
    assert!(disk.join("store.db-reserve").exists());
    drop(recording);
    umount2(&disk, MntFlags::MNT_DETACH).unwrap();
}

const TO_BE_KILLED: &str = "BIPLANE_TEST_RECORDER_TO_BE_KILLED";

#[allow(clippy::disallowed_methods)] // how a test is told something
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Does nothing, unless it is the process that the test below kills.
#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_to_be_killed() {
    let Some(folder) = variable(TO_BE_KILLED) else { return };
    let folder = Path::new(&folder);
    let location = Location::File(folder.join("store.db"));
    let recorder = Recorder::start(options(&location), &Metrics::default()).unwrap();
    serve_in(folder, &recorder).await;
    println!("listening");
    std::future::pending::<()>().await;
}

/// Sends until the recorder is gone, and returns what was acknowledged.
async fn send_until_it_dies(
    (mut inspector, mut changes): (
        PipelineInspectorServiceClient<Channel>,
        ChangeLogServiceClient<Channel>,
    ),
    sender: usize,
    round: u64,
    acknowledged: &AtomicU64,
) -> BTreeSet<String> {
    let mut stored = BTreeSet::new();
    for number in 0.. {
        let name = format!("{round}-{sender}-{number}");
        if send(&mut changes, &name, "text").await.is_err() {
            break;
        }
        stored.insert(name.clone());
        acknowledged.fetch_add(1, Ordering::Relaxed);
        let mut call = simple(&format!("run-{name}"), &format!("r{}", number / 3));
        call.name = format!("xr-{sender}");
        for emission in call.emissions() {
            let (meta, payload) = (emission.meta, emission.payload);
            let sent = if emission.half == Half::Request {
                let request = EmitRequestRequest { request: payload, meta };
                inspector.emit_request(request).await.map(drop)
            } else {
                let request = EmitResponseRequest { response: payload, error: String::new(), meta };
                inspector.emit_response(request).await.map(drop)
            };
            if sent.is_err() {
                return stored;
            }
        }
    }
    stored
}

/// Looks at a store that was left behind.
fn look_at(store: &Store, acknowledged: &BTreeSet<String>) {
    let verified = store.verify().unwrap();
    assert_eq!(verified[0].broken, []);
    let found = names(store);
    assert!(acknowledged.is_subset(&found), "{:?}", acknowledged.difference(&found));
    for run in store.runs(&RunFilter::default(), 1_000_000, None).unwrap() {
        assert!(!run.open);
        let steps = store.steps(run.id).unwrap();
        let whole = !steps.is_empty()
            && steps.iter().all(|step| {
                let exchange = step.exchange.and_then(|id| store.exchange(id).unwrap());
                exchange.is_some_and(|exchange| {
                    exchange.request.is_some() && exchange.response.is_some()
                })
            });
        assert_eq!(whole, run.outcome == Outcome::Ok, "{run:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorder_that_is_killed_loses_nothing_that_it_acknowledged() {
    let rounds: u64 = variable("BIPLANE_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "recording::a_recorder_to_be_killed", "--nocapture"])
            .env(TO_BE_KILLED, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            assert_ne!(
                std::io::BufRead::read_line(&mut said, &mut line).unwrap(),
                0,
                "it has ended"
            );
        }
        let count = Arc::new(AtomicU64::new(0));
        let mut connected = Vec::new();
        for _ in 0..4 {
            // Before it is killed, or there would be nothing to connect to.
            connected.push(clients(folder.path()).await);
        }
        let senders: Vec<_> = connected
            .into_iter()
            .enumerate()
            .map(|(sender, clients)| {
                let count = Arc::clone(&count);
                tokio::spawn(
                    async move { send_until_it_dies(clients, sender, round, &count).await },
                )
            })
            .collect();
        // Some moment while all of them send: a number of answers that differs from round to round.
        let moment = (round * 7919 + 13) % 61;
        while count.load(Ordering::Relaxed) < moment {
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for sender in senders {
            acknowledged.extend(sender.await.unwrap());
        }
        let location = Location::File(folder.path().join("store.db"));
        let acknowledged = acknowledged.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let ledger = world::open(&location, world::options());
            look_at(ledger.store(), &acknowledged);
        });
        looking.await.unwrap();
    }
    assert!(!acknowledged.is_empty());
}
