//! Measures how long pages take and how large they are in a store with many steps, runs of 1,000
//! composed resources and bodies of 4 MB; and what readers who follow the news cost those who emit.
//! Every figure stands beside its goal.
//!
//! `STEPS` is how many steps the store has, `REQUESTS` how often each kind of page is asked for, and
//! `PARTS` chooses among `pages` and `viewers`.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods)]
#![allow(clippy::cast_possible_wrap)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use biplane_function::metrics::Metrics;
use biplane_pages::http::Request;
use biplane_pages::serve;
use biplane_pages::site::{Options, PATIENCE, Site};
use biplane_proto::Timestamp;
use biplane_proto::changelogs::{ChangeLogEntry, OperationType};
use biplane_proto::inspector::shipped::{CompositionMeta, StepMeta, step_meta::Context};
use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use biplane_recorder::TakeEmission as _;
use biplane_recorder::emission::{Details, Dialect, Emission};
use biplane_recorder::query::stored::Stored;
use biplane_recorder::recorder::{self, Recorder};
use biplane_recorder::store::rows::RunFilter;
use biplane_recorder::store::{
    ChangeRecord, HalfRecord, Ledger, LedgerOptions, Location, Retention, Store,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const BEGIN: i64 = 1_800_000_000_000_000;
const SECOND: i64 = 1_000_000;
/// Goals: milliseconds and bytes of a page, and milliseconds of an emission.
const PAGE: f64 = 100.0;
const LARGEST: usize = 100 * 1024;
const EMISSION: f64 = 2.0;
/// How many composed resources the large runs have, and how many of them each run changes.
const RESOURCES: usize = 1000;
const CHANGED: usize = 10;
/// How many of these runs there are.
const LARGE_RUNS: u64 = 40;

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Prints a figure beside its goal.
fn figure(what: &str, figure: f64, goal: f64, unit: &str) {
    let verdict = if figure <= goal { "ok" } else { "MISSED" };
    println!("{what:<72} {figure:>9.2} {unit:<3} goal {goal:<6} {verdict}");
}

fn percentile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part) as usize;
    sorted[at.min(sorted.len() - 1)]
}

fn redactor() -> Redactor {
    Redactor::new(Mode::Deep, TagKey::new([1; 32]))
}

fn ledger_options() -> LedgerOptions {
    LedgerOptions { cluster: String::new(), source: "bench".into(), failures_only: false }
}

/// A run of a pipeline: whose, and when.
struct Pipeline<'a> {
    number: u64,
    kind: &'a str,
    name: String,
    composition: String,
    at: i64,
}

impl Pipeline<'_> {
    fn trace(&self) -> String {
        let number = self.number;
        let first = number.wrapping_mul(2_654_435_761) & 0xffff_ffff;
        format!("{first:08x}-0000-4000-8000-{number:012x}")
    }

    fn emission(&self, index: i32, half: Half) -> Emission {
        Emission {
            dialect: Dialect::Shipped,
            half,
            meta: Some(StepMeta {
                timestamp: Some(Timestamp { seconds: self.at / SECOND, nanos: 0 }),
                trace_id: self.trace(),
                span_id: format!("{:08x}-0000-4000-8000-{index:012x}", self.number),
                step_index: index,
                step_name: format!("step-{index}"),
                iteration: 0,
                function_name: format!("function-{index}"),
                context: Some(Context::CompositionMeta(CompositionMeta {
                    composition_name: self.composition.clone(),
                    composite_resource_uid: format!("uid-of-{}-{}", self.kind, self.name),
                    composite_resource_name: self.name.clone(),
                    composite_resource_namespace: "team-a".into(),
                    composite_resource_api_version: "example.org/v1".into(),
                    composite_resource_kind: self.kind.to_owned(),
                })),
            }),
            payload: Vec::new(),
            error: String::new(),
            details: Details { took: Some(Duration::from_millis(3)), ..Details::default() },
        }
    }

    /// The halves of steps with these messages.
    fn halves(&self, messages: &[(Value, Value)]) -> Vec<HalfRecord> {
        let redactor = redactor();
        let mut halves = Vec::new();
        for (index, (request, response)) in messages.iter().enumerate() {
            for (half, message) in [(Half::Request, request), (Half::Response, response)] {
                let mut emission = self.emission(i32::try_from(index).unwrap(), half);
                emission.payload = message.to_string().into_bytes();
                let payload = redactor.line_payload(half, &emission.payload, false);
                halves.push(HalfRecord::new(&emission, payload, self.at, None).unwrap());
            }
        }
        halves
    }
}

/// Many small runs of a thousand composite resources. Their messages repeat.
fn fill(ledger: &mut Ledger, steps: u64) {
    let begun = Instant::now();
    let message = |variant: u64, is_fatal: bool| {
        let bucket = json!({"apiVersion": "s3.example.org/v1", "kind": "Bucket",
            "metadata": {"name": "b"}, "spec": {"variant": variant, "text": "kept as long as told"}});
        let xr = json!({"apiVersion": "example.org/v1", "kind": "Store", "spec": {"variant": variant},
            "metadata": {"name": "xr", "labels": {"team": "a"}}});
        let desired = json!({"resources": {"bucket": {"resource": bucket}}});
        let observed = json!({"composite": {"resource": xr}});
        let meta = json!({"tag": format!("{variant:064x}")});
        let mut response = json!({"meta": meta, "desired": desired});
        if is_fatal {
            response["results"] = json!([{"severity": "SEVERITY_FATAL", "message": "it broke"}]);
        }
        (json!({"meta": meta, "observed": observed, "desired": desired}), response)
    };
    let mut batch = Vec::new();
    for run in 0..steps / 2 {
        let owner = run % 1000;
        let pipeline = Pipeline {
            number: run,
            kind: "Store",
            name: format!("xr-{owner}"),
            composition: format!("stores-{}", owner % 20),
            at: BEGIN + run as i64 * SECOND / 2,
        };
        let variant = run / 5000;
        let messages = [message(variant, false), message(variant, run % 1000 == 999)];
        batch.extend(pipeline.halves(&messages));
        if batch.len() >= 256 {
            ledger.record(&batch, Instant::now()).unwrap();
            batch.clear();
        }
    }
    ledger.record(&batch, Instant::now()).unwrap();
    ledger.close_all().unwrap();
    println!("{steps} steps stored in {:.0} s", begun.elapsed().as_secs_f64());
}

/// A resource of about four kilobytes.
fn resource(number: usize, version: usize) -> Value {
    let rule = |rule: usize| {
        json!({
            "name": format!("rule-{rule}"), "prefix": format!("{number}/{rule}/"),
            "description": "Keeps objects of this prefix for as long as the policy says",
            "expirationDays": 30 + rule, "enabled": true,
        })
    };
    let rules: Vec<Value> = (0..22).map(rule).collect();
    json!({
        "apiVersion": "s3.example.org/v1beta1", "kind": "Bucket",
        "metadata": {"name": format!("large-{number:04}"), "namespace": "team-a"},
        "spec": {"forProvider": {"region": format!("eu-{version}"), "rules": rules}},
    })
}

/// Runs of three steps with a thousand composed resources, of which each changes some.
fn thousand(ledger: &mut Ledger, first: u64, at: i64) -> Vec<String> {
    let begun = Instant::now();
    let mut versions = vec![0; RESOURCES];
    let mut seen: Map<String, Value> = Map::new();
    let mut traces = Vec::new();
    for run in 0..LARGE_RUNS {
        let from = usize::try_from(run).unwrap() * CHANGED % RESOURCES;
        for version in versions.iter_mut().skip(from).take(CHANGED) {
            *version += 1;
        }
        let slot = |(at, version): (usize, &usize)| {
            let slot = json!({"resource": resource(at, *version), "ready": "READY_TRUE"});
            (format!("resource-{at:04}"), slot)
        };
        let desired: Map<String, Value> = versions.iter().enumerate().map(slot).collect();
        let xr = json!({"apiVersion": "example.org/v1", "kind": "Large", "spec": {"run": run},
            "metadata": {"name": "thousand", "uid": "uid-of-Large-thousand"}});
        let observed = json!({"composite": {"resource": xr}, "resources": seen});
        let made = json!({"resources": desired});
        let meta = json!({"tag": format!("{run:064x}")});
        let request =
            |desired: &Value| json!({"meta": meta, "observed": observed, "desired": desired});
        let response = json!({"meta": meta, "desired": made});
        let messages = [
            (request(&json!({})), response.clone()),
            (request(&made), response.clone()),
            (request(&made), response),
        ];
        let pipeline = Pipeline {
            number: first + run,
            kind: "Large",
            name: "thousand".to_owned(),
            composition: "large".to_owned(),
            at: at + run as i64 * 60 * SECOND,
        };
        ledger.record(&pipeline.halves(&messages), Instant::now()).unwrap();
        ledger.close_all().unwrap();
        traces.push(pipeline.trace());
        // What was desired is observed in the next run, with what the server adds.
        seen = desired;
        for (number, (_, slot)) in seen.iter_mut().enumerate() {
            let metadata = &mut slot["resource"]["metadata"];
            metadata["uid"] = format!("uid-{number}").into();
            metadata["resourceVersion"] = format!("{}", versions[number]).into();
            slot.as_object_mut().unwrap().remove("ready");
        }
    }
    let took = begun.elapsed().as_secs_f64();
    println!("{LARGE_RUNS} runs of {RESOURCES} resources stored in {took:.0} s");
    traces
}

/// Runs with one body of four megabytes.
fn megabytes(ledger: &mut Ledger, first: u64, at: i64) -> Vec<String> {
    let mut traces = Vec::new();
    let item = |at: usize| json!({"name": format!("item-{at}"), "value": "x".repeat(180)});
    let items: Vec<Value> = (0..18_000).map(item).collect();
    for run in 0..4 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "large", "namespace": "team-a"}, "version": run, "items": items});
        let xr = json!({"apiVersion": "example.org/v1", "kind": "Long", "spec": {"run": run},
            "metadata": {"name": "megabytes", "uid": "uid-of-Long-megabytes"}});
        let meta = json!({"tag": format!("{run:064x}")});
        let observed = json!({"composite": {"resource": xr}});
        let request = json!({"meta": meta, "observed": observed, "desired": {}});
        let response = json!({"meta": meta, "desired": {"resources": {"map": {"resource": body}}}});
        let pipeline = Pipeline {
            number: first + run,
            kind: "Long",
            name: "megabytes".to_owned(),
            composition: "long".to_owned(),
            at: at + run as i64 * 60 * SECOND,
        };
        ledger.record(&pipeline.halves(&[(request, response)]), Instant::now()).unwrap();
        ledger.close_all().unwrap();
        traces.push(pipeline.trace());
    }
    traces
}

/// What providers did to the composed resources of the large runs.
fn changes(ledger: &mut Ledger, at: i64) {
    let change = |number: i64| {
        let seconds = at / SECOND + number;
        let entry = ChangeLogEntry {
            timestamp: Some(Timestamp { seconds, nanos: 0 }),
            provider: "provider-s3:v1".into(),
            api_version: "s3.example.org/v1beta1".into(),
            kind: "Bucket".into(),
            name: format!("large-{number:04}"),
            operation: OperationType::Update.into(),
            error_message: (number % 10 == 0).then(|| "AccessDenied: not allowed".into()),
            ..ChangeLogEntry::default()
        };
        ChangeRecord::new(redactor().entry(entry), seconds * SECOND).unwrap()
    };
    let records: Vec<ChangeRecord> = (0..200).map(change).collect();
    ledger.append(&records).unwrap();
}

fn site(store: &Path, now: i64) -> Site {
    let store = store.display().to_string();
    Site::new(Options {
        allowed: Vec::new(),
        token: None,
        is_secure: false,
        open: Arc::new(move || Stored::open(&store)),
        now: Arc::new(move || jiff::Timestamp::from_microsecond(now).unwrap()),
        trouble: Arc::new(|| None),
        extra: Arc::new(|_| None),
        patience: PATIENCE,
    })
}

/// The kind of a page: its address without ids.
fn kind(address: &str) -> String {
    const WORDS: [&str; 26] = [
        "",
        "runs",
        "x",
        "r",
        "at",
        "why",
        "warnings",
        "changes",
        "compare",
        "search",
        "status",
        "help",
        "diff",
        "blame",
        "resources",
        "request",
        "response",
        "needs",
        "raw",
        "verify",
        "created",
        "changed",
        "not-ready",
        "failed",
        "slow",
        "deleted",
    ];
    let path = address.split('?').next().unwrap();
    let parts = path.split('/').map(|part| if WORDS.contains(&part) { part } else { "*" });
    let is_filtered = if address.contains("f=") { " filtered" } else { "" };
    format!("{}{is_filtered}", parts.collect::<Vec<_>>().join("/"))
}

async fn ask(site: &Site, request: Request) -> (u16, String) {
    let response = site.answer(request.with("host", "127.0.0.1:7654")).await;
    (response.status, response.body_text().to_owned())
}

/// The addresses of pages that are two clicks away at most, a few of each kind.
async fn crawl(site: &Site, seeds: Vec<String>) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut next = seeds;
    for _ in 0..3 {
        let mut after = Vec::new();
        for address in std::mem::take(&mut next) {
            let of_kind = found.entry(kind(&address)).or_default();
            if of_kind.len() >= 3 || !known.insert(address.clone()) {
                continue;
            }
            let (status, page) = ask(site, Request::get(&address)).await;
            if status != 200 {
                println!("{address}: status {status}");
                continue;
            }
            of_kind.push(address);
            let links = page.split("href=\"").skip(1).filter_map(|part| part.split('"').next());
            let links = links.map(|link| link.replace("&amp;", "&"));
            let links = links.filter(|link| link.starts_with('/') && !link.starts_with("/assets"));
            after.extend(links.filter_map(|link| link.split('#').next().map(str::to_owned)));
        }
        next = after;
    }
    found.retain(|_, addresses| !addresses.is_empty());
    found
}

async fn pages(site: &Site, what: &str, seeds: Vec<String>, requests: u64) {
    let mut slowest = (0.0, String::new());
    for (kind, addresses) in crawl(site, seeds).await {
        let mut times = Vec::new();
        let mut largest = 0;
        for number in 0..requests {
            let address = &addresses[usize::try_from(number).unwrap() % addresses.len()];
            let begun = Instant::now();
            let (status, page) = ask(site, Request::get(address)).await;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            assert_eq!(status, 200, "{address}");
            largest = largest.max(page.len());
        }
        times.sort_by(f64::total_cmp);
        let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
        let text = format!("{what}: {kind} (p50 {p50:.1} ms, {} KB) p99", largest / 1024);
        figure(&text, p99, PAGE, "ms");
        if largest > LARGEST {
            println!("{what}: {kind} has {largest} bytes, MISSED");
        }
        if p99 > slowest.0 {
            slowest = (p99, kind);
        }
    }
    println!("{what}: the slowest is {} with {:.1} ms", slowest.1, slowest.0);
}

/// Readers who follow the news while a thousand emissions a second arrive.
async fn viewers(recorder: Arc<Recorder>, site: Site, store: &Path) {
    const VIEWERS: usize = 50;
    const COUNT: u64 = 10_000;
    let server = serve::serve(site, "127.0.0.1:0", None).await.unwrap();
    let (address, heard) = (server.address(), Arc::new(AtomicUsize::new(0)));
    let mut following = Vec::new();
    for _ in 0..VIEWERS {
        let heard = Arc::clone(&heard);
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        following.push(tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                heard.fetch_add(count, Ordering::Relaxed);
            }
        }));
    }
    let message = |run: u64| {
        let bucket = resource(1, usize::try_from(run / 10).unwrap());
        json!({"meta": {"tag": format!("{run:064x}")}, "desired": {"resources": {
            "bucket": {"resource": bucket}, "other": {"resource": resource(2, 0)},
        }}})
    };
    let messages: Vec<Vec<u8>> =
        (0..COUNT / 4).map(|run| message(run).to_string().into_bytes()).collect();
    let mut times = Vec::new();
    let begun = Instant::now();
    for number in 0..COUNT {
        // A timer has a millisecond at best, so that several go at once.
        let early = Duration::from_millis(number).saturating_sub(begun.elapsed());
        if early > Duration::from_millis(2) {
            tokio::time::sleep(early).await;
        }
        let (run, part) = (number / 4, i32::try_from(number % 4).unwrap());
        let half = if part % 2 == 0 { Half::Request } else { Half::Response };
        let pipeline = Pipeline {
            number: run,
            kind: "Store",
            name: format!("xr-{}", run % 100),
            composition: "stores".to_owned(),
            at: BEGIN + run as i64 * SECOND,
        };
        let mut emission = pipeline.emission(part / 2, half);
        emission.payload.clone_from(&messages[usize::try_from(run).unwrap()]);
        let taken = Instant::now();
        recorder.take(emission).await.unwrap();
        times.push(taken.elapsed().as_secs_f64() * 1000.0);
    }
    let took = begun.elapsed().as_secs_f64();
    let stopping = tokio::task::spawn_blocking(move || recorder.stop(Duration::from_mins(2)));
    assert!(stopping.await.unwrap());
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
    let rate = COUNT as f64 / took;
    let what = format!("an emission, {rate:.0} a second, {VIEWERS} viewers (p50 {p50:.3} ms) p99");
    figure(&what, p99, EMISSION, "ms");
    let store = Store::open_existing(&Location::File(store.to_owned())).unwrap();
    let lost: i64 = store.losses(i64::MIN, i64::MAX).unwrap().iter().map(|l| l.emissions).sum();
    let most = usize::try_from(COUNT).unwrap();
    let runs = store.runs(&RunFilter::default(), most, None).unwrap();
    let steps: usize = runs.iter().map(|run| store.steps(run.id).unwrap().len()).sum();
    let missing = COUNT as f64 / 2.0 - steps as f64;
    figure("emissions lost", lost as f64 + 2.0 * missing, 0.0, "");
    println!("the viewers were sent {} KB", heard.load(Ordering::Relaxed) / 1024);
    following.iter().for_each(tokio::task::JoinHandle::abort);
}

fn recorder_options(store: &Path) -> recorder::Options {
    let clock = AtomicI64::new(BEGIN);
    recorder::Options {
        location: Location::File(store.to_owned()),
        id: [1; 16],
        ledger: ledger_options(),
        retention: Retention {
            runs_for: i64::MAX / 4,
            changes_for: i64::MAX / 4,
            size: u64::MAX,
            per_owner: i64::MAX,
        },
        queue: 32 << 20,
        min_free: 0,
        reserve: 0,
        probe: None,
        redactor: redactor(),
        print: None,
        only: Vec::new(),
        now: Arc::new(move || clock.fetch_add(100, Ordering::Relaxed)),
    }
}

fn main() {
    let parts = std::env::var("PARTS").unwrap_or_else(|_| "pages viewers".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    if parts.contains("viewers") {
        let store = folder.path().join("viewers.db");
        let recorder = Recorder::start(recorder_options(&store), &Metrics::default()).unwrap();
        runtime.block_on(viewers(recorder, site(&store, BEGIN), &store));
    }
    if parts.contains("pages") {
        let (steps, requests) = (setting("STEPS", 1_000_000), setting("REQUESTS", 200));
        let store = folder.path().join("pages.db");
        let location = Location::File(store.clone());
        let now = (BEGIN, Instant::now());
        let mut ledger = Ledger::open(&location, &[1; 16], ledger_options(), now).unwrap();
        fill(&mut ledger, steps);
        let end = BEGIN + (steps / 2) as i64 * SECOND / 2;
        let large = thousand(&mut ledger, steps, end);
        let end = end + LARGE_RUNS as i64 * 60 * SECOND;
        changes(&mut ledger, end);
        let long = megabytes(&mut ledger, steps + 1000, end);
        drop(ledger);
        let site = site(&store, end + 600 * SECOND);
        let run = |trace: &String| format!("/runs/{}", trace.split('-').next().unwrap());
        let last = |traces: &[String]| traces.iter().rev().take(2).map(run).collect::<Vec<_>>();
        let lists = ["/runs", "/x", "/status", "/help", "/warnings", "/changes", "/search"];
        let lists = lists.map(str::to_owned).to_vec();
        runtime.block_on(async {
            pages(&site, "lists", lists, requests).await;
            pages(&site, "thousand", last(&large), requests).await;
            pages(&site, "thousand, first", vec![run(&large[0])], requests).await;
            pages(&site, "4 MB", last(&long), requests).await;
        });
    }
}
