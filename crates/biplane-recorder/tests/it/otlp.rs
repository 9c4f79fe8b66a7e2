//! Runs and changes as spans, sent to a collector as they are stored.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use biplane_function::metrics::Metrics;
use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::json::from_value;
use biplane_recorder::http::{Credentials, Server};
use biplane_recorder::otlp::{Exporter, Options};
use biplane_recorder::recorder::Recorder;
use biplane_recorder::store::{Applied, Location};
use biplane_recorder::{TakeChange, TakeEmission};
use serde_json::{Value, json};

use crate::recording::options;
use crate::store::raw::Raw;
use crate::store::world::{NOON, simple};

/// A collector that answers as told, and then with 200. It keeps what it took.
pub(crate) struct Collector {
    pub(crate) url: String,
    taken: Arc<Mutex<Vec<Value>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    pub(crate) fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut answers: VecDeque<String> = answers.iter().map(|a| (*a).to_owned()).collect();
        let (taken, heads) =
            (Arc::<Mutex<Vec<Value>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (kept, seen) = (Arc::clone(&taken), Arc::clone(&heads));
        // It ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (head, body) = request(&stream);
                seen.lock().unwrap().push(head);
                let ok = "200 OK\r\nContent-Length: 2\r\n\r\n{}";
                let answer = answers.pop_front().unwrap_or_else(|| ok.to_owned());
                if answer.starts_with("200") {
                    kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                }
                let answer = format!("HTTP/1.1 {answer}");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, taken, heads }
    }

    /// All spans that were taken.
    fn spans(&self) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        let of = |body: &Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        taken.iter().flat_map(|body| of(body).as_array().unwrap().clone()).collect()
    }
}

/// The head and the body of a request.
fn request(stream: &TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// A recorder with an exporter.
struct World {
    recorder: Arc<Recorder>,
    exporter: Exporter,
    metrics: Metrics,
    _folder: tempfile::TempDir,
}

impl World {
    fn start(url: &str, queue: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let metrics = Metrics::default();
        let recorder = Recorder::start(options(&Location::File(path.clone())), &metrics).unwrap();
        let server = Server::new(url, &Credentials::default()).unwrap();
        let options = Options {
            queue,
            pause: Duration::from_millis(1),
            longest_pause: Duration::from_millis(10),
            ..Options::new(server, path.to_str().unwrap().to_owned())
        };
        let exporter = Exporter::start(options, recorder.live(), &metrics).unwrap();
        Self { recorder, exporter, metrics, _folder: folder }
    }

    async fn emit(&self, trace: &str, region: &str) {
        for emission in simple(trace, region).emissions() {
            TakeEmission::take(self.recorder.as_ref(), emission).await.unwrap();
        }
    }

    /// A provider makes the bucket of the runs.
    async fn change(&self) {
        let at = jiff::Timestamp::from_microsecond(NOON + 1_000_000).unwrap();
        let entry: ChangeLogEntry = from_value(json!({
            "timestamp": at.to_string(), "provider": "provider-s3:v1", "apiVersion": "s3.example.org/v1",
            "kind": "Bucket", "name": "north-1", "operation": "OPERATION_TYPE_CREATE",
            "errorMessage": "AccessDenied",
            "snapshot": {
                "apiVersion": "s3.example.org/v1", "kind": "Bucket",
                "metadata": {
                    "name": "north-1", "namespace": "shop",
                    "annotations": {"crossplane.io/composition-resource-name": "bucket"},
                    "ownerReferences": [{"apiVersion": "example.org/v1", "kind": "Store", "name": "north",
                        "uid": "uid-north", "controller": true}],
                },
                "data": {"password": "hunter2"},
            },
        }))
        .unwrap();
        TakeChange::take(self.recorder.as_ref(), entry).await.unwrap();
    }

    /// Stops both, the recorder first.
    fn stop(&self, patience: Duration) -> bool {
        assert!(self.recorder.stop(Duration::from_mins(1)));
        self.exporter.stop(patience)
    }
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a str {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key);
    found.and_then(|attribute| attribute["value"]["stringValue"].as_str()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_sent_with_links_from_changes_to_runs() {
    // The collector is away at first, and asks for patience later.
    let collector = Collector::start(&[
        "503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
        "429 Slow down\r\nContent-Length: 0\r\n\r\n",
    ]);
    let world = World::start(&collector.url, 100);
    world.emit("a", "eu").await;
    // The next run of the owner ends the first one.
    world.emit("b", "us").await;
    world.change().await;
    assert!(world.stop(Duration::from_mins(1)));
    let spans = collector.spans();
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let (runs, calls) = (named("Store north"), named("step-0"));
    assert_eq!((runs.len(), calls.len()), (2, 2), "{spans:?}");
    for call in calls {
        assert!(runs.iter().any(|run| run["spanId"] == call["parentSpanId"]));
        assert_eq!(attribute(call, "crossplane.function.name"), "function-0");
    }
    let change = named("create Bucket north-1")[0];
    let link = &change["links"][0];
    assert_eq!(attribute(link, "crossplane.link.certainty"), "likely");
    let run = runs.iter().find(|run| run["spanId"] == link["spanId"]).unwrap();
    assert_eq!(run["traceId"], link["traceId"]);
    assert_ne!(change["traceId"], link["traceId"]);
    assert_eq!(change["status"], json!({"code": 2, "message": "AccessDenied"}));
    let heads = collector.heads.lock().unwrap();
    assert!(heads.len() >= 3, "{heads:?}");
    for head in heads.iter() {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/json\r\n"), "{head}");
    }
    let metrics = world.metrics.text();
    assert!(metrics.contains("biplane_recorder_otlp_sent_total{kind=\"run\"} 2"), "{metrics}");
    assert!(metrics.contains("biplane_recorder_otlp_sent_total{kind=\"change\"} 1"), "{metrics}");
    assert!(!metrics.contains("biplane_recorder_otlp_lost_total{"), "{metrics}");
    assert!(
        !collector.taken.lock().unwrap().iter().any(|body| body.to_string().contains("hunter2"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_collector_refuses_is_not_sent_again_and_counted() {
    let collector = Collector::start(&["400 Bad\r\nContent-Length: 0\r\n\r\n"]);
    let world = World::start(&format!("{}/base/", collector.url), 100);
    world.emit("a", "eu").await;
    world.emit("b", "us").await;
    assert!(world.stop(Duration::from_mins(1)));
    assert!(collector.heads.lock().unwrap()[0].starts_with("POST /base/v1/traces "));
    let metrics = world.metrics.text();
    let lost: u64 = lost(&metrics).iter().sum();
    let sent = metrics
        .lines()
        .find_map(|line| line.strip_prefix("biplane_recorder_otlp_sent_total{kind=\"run\"} "))
        .map_or(0, |count| count.parse().unwrap());
    assert!(metrics.contains("lost_total{reason=\"refused\"}"), "{metrics}");
    assert_eq!(lost + sent, 2, "{metrics}");
}

/// The counts of what was lost.
fn lost(metrics: &str) -> Vec<u64> {
    let lines =
        metrics.lines().filter(|line| line.starts_with("biplane_recorder_otlp_lost_total{"));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_no_emission_and_the_loss_is_counted() {
    // Nobody listens here any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::start(&format!("http://{address}"), 3);
    for number in 0..20 {
        world.emit(&format!("run-{number}"), &format!("r{number}")).await;
    }
    assert!(!world.stop(Duration::from_millis(300)), "nothing could be sent");
    let metrics = world.metrics.text();
    assert!(!lost(&metrics).is_empty(), "{metrics}");
    assert!(!metrics.contains("biplane_recorder_otlp_sent_total{"), "{metrics}");
    // Every emission was taken and stored.
    assert!(
        metrics
            .contains("biplane_recorder_emissions_total{type=\"request\",dialect=\"shipped\"} 20")
    );
    assert!(!metrics.contains("biplane_recorder_lost_total{"), "{metrics}");
}

/// What cannot be read does not take others with it.
#[test]
fn a_run_that_cannot_be_read_is_left_out() {
    let mut stored = crate::store::world::World::in_a_file();
    let mut runs = Vec::new();
    for (number, trace) in ["a", "b", "c"].into_iter().enumerate() {
        let at = NOON + i64::try_from(number).unwrap();
        runs.push(stored.run(&[simple(trace, trace).at(at)]).id);
    }
    let raw = Raw::open(&stored.location);
    let exchange = format!("(SELECT exchange FROM step WHERE run = {})", runs[1]);
    raw.execute(&format!("UPDATE exchange SET request = x'ff' WHERE id = {exchange}"));
    let collector = Collector::start(&[]);
    let server = Server::new(&collector.url, &Credentials::default()).unwrap();
    let options =
        Options { pause: Duration::from_millis(1), ..Options::new(server, stored.text()) };
    let (live, follows) = tokio::sync::broadcast::channel(4);
    let metrics = Metrics::default();
    let exporter = Exporter::start(options, follows, &metrics).unwrap();
    live.send(Applied { runs, changes: Vec::new() }).unwrap();
    drop(live);
    assert!(exporter.stop(Duration::from_mins(1)));
    let spans = collector.spans();
    assert_eq!(spans.iter().filter(|span| span["name"] == "Store north").count(), 2, "{spans:?}");
    let text = metrics.text();
    assert!(text.contains("biplane_recorder_otlp_lost_total{reason=\"unreadable\"} 1"), "{text}");
}

/// The code by which OpenTelemetry's collectors read OTLP understands what is sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_of_opentelemetry_reads_the_spans() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("collector");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/collector-go");
    let mut build = Command::new("go");
    build.arg("build").arg("-o").arg(&program).arg(".").current_dir(source);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut collector = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.next().unwrap();
    let world = World::start(&format!("http://{address}"), 100);
    world.emit("a3aba73d-78e3-4933-9791-319f264d679a", "eu").await;
    world.emit("b3aba73d-78e3-4933-9791-319f264d679a", "us").await;
    world.change().await;
    let is_whole = world.stop(Duration::from_mins(1));
    let read = if is_whole { 5 } else { 0 };
    let spans: Vec<Value> =
        lines.take(read).map(|line| serde_json::from_str(&line).unwrap()).collect();
    collector.kill().unwrap();
    collector.wait().unwrap();
    assert!(is_whole);
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let (runs, calls, changes) =
        (named("Store north"), named("step-0"), named("create Bucket north-1"));
    assert_eq!((runs.len(), calls.len(), changes.len()), (2, 2, 1), "{spans:?}");
    assert!(spans.iter().all(|span| span["service"] == "crossplane"));
    assert!(runs.iter().any(|run| run["trace"] == "a3aba73d78e349339791319f264d679a"), "{runs:?}");
    assert!(runs.iter().all(|run| run["status"] == "Ok" && run["kind"] == "Internal"), "{runs:?}");
    for call in calls {
        let run = runs.iter().find(|run| run["span"] == call["parent"]).unwrap();
        assert_eq!(run["trace"], call["trace"]);
        assert_eq!((&call["kind"], &call["nanos"]), (&json!("Client"), &json!(1_000_000)));
        assert_eq!(call["attributes"]["crossplane.step.index"], 0);
    }
    let link = &changes[0]["links"][0];
    assert!(runs.iter().any(|run| run["span"] == link["span"] && run["trace"] == link["trace"]));
    assert_eq!(link["attributes"]["crossplane.link.certainty"], "likely");
    assert_eq!(
        (&changes[0]["status"], &changes[0]["message"]),
        (&json!("Error"), &json!("AccessDenied"))
    );
}
