//! Measures what a recorder costs: processor time and memory for each emission, and how fast lists
//! are in a store with many steps.
//!
//! `STEPS` is how many steps the store of the second part has; `POSTGRES` is where a server is, to
//! measure it instead of a file.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods)]
#![allow(clippy::cast_possible_wrap, clippy::semicolon_if_nothing_returned)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use biplane_function::metrics::Metrics;
use biplane_proto::Timestamp;
use biplane_proto::inspector::shipped::{CompositionMeta, StepMeta, step_meta::Context};
use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use biplane_recorder::TakeEmission as _;
use biplane_recorder::emission::{Details, Dialect, Emission};
use biplane_recorder::recorder::{Options, Recorder};
use biplane_recorder::store::rows::{Found, Outcome, RunFilter};
use biplane_recorder::store::{HalfRecord, Ledger, LedgerOptions, Location, Retention, Store};
use serde_json::{Value, json};

const BEGIN: i64 = 1_800_000_000_000_000;

fn emission(run: u64, owner: u64, index: i32, half: Half, payload: &Value) -> Emission {
    let micros = BEGIN + run as i64 * 1_000_000;
    Emission {
        dialect: Dialect::Shipped,
        half,
        meta: Some(StepMeta {
            timestamp: Some(Timestamp { seconds: micros / 1_000_000, nanos: 0 }),
            trace_id: format!(
                "{:08x}-0000-4000-8000-{run:012x}",
                run.wrapping_mul(2_654_435_761) & 0xffff_ffff
            ),
            span_id: format!("{run:08x}-0000-4000-8000-{index:012x}"),
            step_index: index,
            step_name: format!("step-{index}"),
            iteration: 0,
            function_name: format!("function-{index}"),
            context: Some(Context::CompositionMeta(CompositionMeta {
                composition_name: format!("stores-{}", owner % 20),
                composite_resource_uid: format!("{owner:08x}-0000-4000-8000-000000000000"),
                composite_resource_name: format!("xr-{owner}"),
                composite_resource_namespace: format!("team-{}", owner % 50),
                composite_resource_api_version: "example.org/v1".into(),
                composite_resource_kind: "Store".into(),
            })),
        }),
        payload: payload.to_string().into_bytes(),
        error: String::new(),
        details: Details { took: Some(Duration::from_millis(3)), ..Details::default() },
    }
}

/// A payload of so many bytes, of which a part depends on a number.
fn payload(bytes: usize, changes: u64) -> Value {
    let rules: Vec<Value> = (0..bytes / 90)
        .map(|rule| json!({"name": format!("rule-{rule}"), "days": rule, "description": "kept as long as told"}))
        .collect();
    let bucket = json!({"apiVersion": "s3.example.org/v1", "kind": "Bucket", "metadata": {"name": "b"}, "spec": {"rules": rules, "changes": changes}});
    json!({"meta": {"tag": format!("{changes:064x}")}, "desired": {"resources": {"bucket": {"resource": bucket}}}})
}

/// Seconds of processor time of this process, and the most memory that it had, in MiB.
fn cost() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = most.split_whitespace().next().unwrap().parse().unwrap();
    (ticks as f64 / 100.0, kilobytes / 1024)
}

fn redactor() -> Redactor {
    Redactor::new(Mode::Deep, TagKey::new([1; 32]))
}

fn options(location: &Location) -> Options {
    let clock = AtomicI64::new(BEGIN);
    Options {
        location: location.clone(),
        id: [1; 16],
        ledger: LedgerOptions {
            cluster: String::new(),
            source: "bench".into(),
            failures_only: false,
        },
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

/// Emissions of 8 KB at a rate of a thousand a second, of which one in ten has something new.
fn ingest(location: &Location) {
    const COUNT: u64 = 10_000;
    let recorder = Recorder::start(options(location), &Metrics::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let emissions: Vec<Emission> = (0..COUNT / 4)
        .flat_map(|run| {
            let payload = payload(8000, run / 10);
            (0..4).map(move |part| {
                let half = if part % 2 == 0 { Half::Request } else { Half::Response };
                emission(run, run % 100, part / 2, half, &payload)
            })
        })
        .collect();
    let before = cost().0;
    let begun = Instant::now();
    runtime.block_on(async {
        for (number, emission) in emissions.into_iter().enumerate() {
            let due = Duration::from_millis(number as u64);
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
            recorder.take(emission).await.unwrap();
        }
    });
    assert!(recorder.stop(Duration::from_mins(5)));
    let took = begun.elapsed().as_secs_f64();
    let (spent, memory) = cost();
    println!(
        "{COUNT} emissions of 8 KB in {took:.1} s: {:.2} of a core, at most {memory} MiB with the emissions of the bench",
        (spent - before) / took
    );
}

fn fill(location: &Location, steps: u64) {
    let options = options(location).ledger;
    let mut ledger = Ledger::open(location, &[1; 16], options, (BEGIN, Instant::now())).unwrap();
    let redactor = redactor();
    let begun = Instant::now();
    let mut batch = Vec::new();
    for run in 0..steps / 2 {
        for index in 0..2 {
            for half in [Half::Request, Half::Response] {
                let mut value = payload(300, run / 5000);
                if run % 1000 == 999 && index == 1 && half == Half::Response {
                    value["results"] =
                        json!([{"severity": "SEVERITY_FATAL", "message": "it broke"}]);
                }
                let emission = emission(run, run % 1000, index, half, &value);
                let payload = redactor.line_payload(half, &emission.payload, false);
                batch.push(
                    HalfRecord::new(&emission, payload, BEGIN + run as i64 * 1_000_000, None)
                        .unwrap(),
                );
            }
        }
        if batch.len() >= 64 {
            ledger.record(&batch, Instant::now()).unwrap();
            batch.clear();
        }
    }
    ledger.record(&batch, Instant::now()).unwrap();
    ledger.close_all().unwrap();
    let size = ledger.store().size().unwrap();
    println!("{steps} steps stored in {:.0} s, {} MiB", begun.elapsed().as_secs_f64(), size >> 20);
}

/// Repeats a question and prints how long answers took.
fn ask(name: &str, mut question: impl FnMut(u64)) {
    let mut times: Vec<Duration> = (0..300)
        .map(|number| {
            let begun = Instant::now();
            question(number);
            begun.elapsed()
        })
        .collect();
    times.sort();
    println!("{name:<28} p50 {:>8.2?}  p99 {:>8.2?}", times[150], times[297]);
}

fn lists(location: &Location, steps: u64) {
    let store = Store::open_existing(location).unwrap();
    let list = |filter: &RunFilter| store.runs(filter, 50, None).unwrap();
    let none = RunFilter::default;
    ask("the newest runs", |_| assert_eq!(list(&none()).len(), 50));
    ask("failed runs", |_| {
        drop(list(&RunFilter { outcomes: vec![Outcome::Fatal, Outcome::Error], ..none() }))
    });
    ask("runs that changed something", |_| drop(list(&RunFilter { changed: true, ..none() })));
    ask("runs of a kind", |_| drop(list(&RunFilter { kind: Some("Store".into()), ..none() })));
    ask("runs of a composition", |n| {
        drop(list(&RunFilter { composition: Some(format!("stores-{}", n % 20)), ..none() }))
    });
    ask("failed runs of a function", |_| {
        drop(list(&RunFilter {
            function: Some("function-1".into()),
            outcomes: vec![Outcome::Fatal],
            ..none()
        }))
    });
    ask("runs in a namespace", |n| {
        drop(list(&RunFilter { namespace: Some(format!("team-{}", n % 50)), ..none() }))
    });
    ask("runs of a name", |n| drop(list(&RunFilter { name: Some(format!("xr-{n}")), ..none() })));
    ask("a run with its payloads", |n| {
        let run = n * (steps / 2 / 300);
        let trace = format!(
            "{:08x}-0000-4000-8000-{run:012x}",
            run.wrapping_mul(2_654_435_761) & 0xffff_ffff
        );
        let Found::One(run) = store.run(&trace).unwrap() else { panic!("{trace}") };
        for step in store.steps(run.id).unwrap() {
            store.exchange(step.exchange.unwrap()).unwrap().unwrap();
        }
    });
}

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let steps: u64 = variable("STEPS").map_or(1_000_000, |steps| steps.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let server = variable("POSTGRES");
    let location = |name: &str| match &server {
        Some(server) => Location::Server(server.clone()),
        None => Location::File(folder.path().join(name)),
    };
    ingest(&location("ingest.db"));
    fill(&location("lists.db"), steps);
    lists(&location("lists.db"), steps);
}
