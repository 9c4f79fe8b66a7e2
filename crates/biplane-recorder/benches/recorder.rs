//! Measures what a recorder costs: processor time and memory, bytes on the disk, and how fast lists are
//! in a store with many steps. Every figure stands beside its goal.
//!
//! Each part runs in a process of its own, so that one does not count the memory of another. `PARTS`
//! chooses some of them. `STEPS` is how many steps the store of the lists has, `HOURS` how long
//! composite resources are at rest; `POSTGRES` is where an empty database is, to measure lists there
//! instead of in a file. The memory of the sidecars is measured if `biplane` was built in the same
//! profile; the reference is measured too if `BIPLANE_UPSTREAM_BIN` has it.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::disallowed_methods)]
#![allow(clippy::cast_possible_wrap, clippy::semicolon_if_nothing_returned)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use biplane_function::metrics::Metrics;
use biplane_proto::Timestamp;
use biplane_proto::inspector::shipped::{CompositionMeta, StepMeta, step_meta::Context};
use biplane_proto::redact::{Half, Mode, Redactor, TagKey};
use biplane_recorder::TakeEmission as _;
use biplane_recorder::emission::{Details, Dialect, Emission};
use biplane_recorder::line::{self, Format};
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

/// Prints a figure beside its goal.
fn figure(what: &str, figure: f64, goal: f64, unit: &str) {
    let verdict = if figure <= goal { "ok" } else { "MISSED" };
    println!("{what:<52} {figure:>10.2} {unit:<8} goal {goal:<8} {verdict}");
}

/// Emissions of 8 KB at a rate of a thousand a second, of which one run in ten has something new.
fn ingest(location: &Location) {
    const COUNT: u64 = 20_000;
    let recorder = Recorder::start(options(location), &Metrics::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Made before, so that only the recorder is measured; shared, so that it takes little memory.
    let payloads: Vec<Value> = (0..COUNT / 40).map(|changes| payload(8000, changes)).collect();
    let texts: Vec<Vec<u8>> = payloads.iter().map(|value| value.to_string().into_bytes()).collect();
    let empty = Value::Null;
    let before = cost().0;
    let begun = Instant::now();
    runtime.block_on(async {
        for number in 0..COUNT {
            let due = Duration::from_millis(number);
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
            let (run, part) = (number / 4, i32::try_from(number % 4).unwrap());
            let half = if part % 2 == 0 { Half::Request } else { Half::Response };
            let mut emission = emission(run, run % 100, part / 2, half, &empty);
            emission.payload = texts[usize::try_from(run / 10).unwrap()].clone();
            recorder.take(emission).await.unwrap();
        }
    });
    assert!(recorder.stop(Duration::from_mins(5)));
    let took = begun.elapsed().as_secs_f64();
    figure("1,000 emissions of 8 KB a second", (cost().0 - before) / took, 0.3, "cores");
}

/// More than can be stored, and large messages among it: what does not fit is dropped.
fn flood(location: &Location) {
    let recorder = Recorder::start(options(location), &Metrics::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let small = payload(8000, 1).to_string();
    let large = payload(1_000_000, 1).to_string();
    let begun = Instant::now();
    let mut count = 0_u64;
    while begun.elapsed() < Duration::from_secs(20) {
        let (run, part) = (count / 4, i32::try_from(count % 4).unwrap());
        let half = if part % 2 == 0 { Half::Request } else { Half::Response };
        let mut emission = emission(run, run % 1000, part / 2, half, &Value::Null);
        let text = if count.is_multiple_of(200) { &large } else { &small };
        // Nothing repeats.
        let text = text.replace("\"changes\":1", &format!("\"changes\":{count}"));
        emission.payload = text.into_bytes();
        runtime.block_on(recorder.take(emission)).unwrap();
        count += 1;
    }
    recorder.stop(Duration::from_mins(5));
    let rate = count as f64 / 20.0;
    figure(&format!("memory at {rate:.0} emissions a second"), cost().1 as f64, 96.0, "MiB");
}

/// Text that does not compress.
fn noise(seed: &mut u64, length: usize) -> String {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[usize::try_from(*seed % 36).unwrap()])
    };
    (0..length).map(|_| next()).collect()
}

/// A state of five composed resources of four kilobytes, of which one has a text of its own.
fn resources(owner: u64, changed: &str) -> Value {
    let resource = |number: u64| {
        let mut seed = owner * 31 + number + 1;
        let rules: Vec<Value> = (0..23)
            .map(|rule| {
                json!({
                    "name": format!("rule-{rule}"),
                    "description": "Keeps objects of this prefix for as long as the policy says",
                    "prefix": format!("xr-{owner}/{rule}/"), "expirationDays": 30 + rule, "enabled": true,
                })
            })
            .collect();
        json!({"resource": {
            "apiVersion": "s3.example.org/v1beta1", "kind": "Bucket",
            "metadata": {
                "name": format!("xr-{owner}-{number}-{}", noise(&mut seed, 5)), "namespace": "shop",
                "uid": noise(&mut seed, 36), "resourceVersion": noise(&mut seed, 6),
                "annotations": {"crossplane.io/external-name": noise(&mut seed, 20)},
            },
            "spec": {"forProvider": {"rules": rules, "changed": if number == 2 { changed } else { "" }}},
            "status": {"atProvider": {"arn": format!("arn:aws:s3:::{}", noise(&mut seed, 24))}},
        }})
    };
    let all = (0..5).map(|number| (format!("bucket-{number}"), resource(number)));
    Value::Object(all.collect())
}

/// The halves of a run of two steps with five composed resources, and the bytes of their lines.
fn run_of_five(run: u64, owner: u64, changed: &str, at: i64) -> (Vec<HalfRecord>, u64) {
    let redactor = redactor();
    let xr = json!({"apiVersion": "example.org/v1", "kind": "Store",
        "metadata": {"name": format!("xr-{owner}")}, "spec": {"changed": changed}});
    let state = resources(owner, changed);
    let observed = json!({"composite": {"resource": xr}, "resources": state});
    let tag = format!("{:064x}", u128::from(owner) * 7919 + changed.len() as u128);
    let desired = json!({"resources": state});
    let payloads = [
        json!({"meta": {"tag": tag}, "observed": observed, "desired": {}}),
        json!({"meta": {"tag": tag, "ttl": "60s"}, "desired": desired}),
        json!({"meta": {"tag": tag}, "observed": observed, "desired": desired}),
        json!({"meta": {"tag": tag, "ttl": "60s"}, "desired": desired}),
    ];
    let (mut halves, mut printed) = (Vec::new(), 0);
    for (part, value) in payloads.iter().enumerate() {
        let half = if part % 2 == 0 { Half::Request } else { Half::Response };
        let index = i32::try_from(part / 2).unwrap();
        let mut emission = emission(run, owner, index, half, value);
        emission.meta.as_mut().unwrap().timestamp =
            Some(Timestamp { seconds: at / 1_000_000, nanos: 0 });
        let payload = redactor.line_payload(half, &emission.payload, false);
        let meta = emission.meta.as_ref();
        let line = line::emission(Format::Json, half, meta, payload.clone(), "").unwrap();
        printed += line.len() as u64;
        halves.push(HalfRecord::new(&emission, payload, at, None).unwrap());
    }
    (halves, printed)
}

/// Bytes of a store against those of the lines that a sidecar prints.
fn sizes(folder: &Path) {
    let owner_of = |kind: &str, number: u64| if kind == "all new" { number + 1000 } else { 1 };
    for (kind, goal, count) in
        [("repeats", 200.0, 500), ("one resource changed", 50.0, 200), ("all new", 10.0, 100)]
    {
        let location = Location::File(folder.join(format!("{}.db", kind.replace(' ', "-"))));
        let options = options(&location).ledger;
        let mut ledger =
            Ledger::open(&location, &[1; 16], options, (BEGIN, Instant::now())).unwrap();
        let mut store = |number: u64| {
            let changed = if kind == "one resource changed" {
                format!("value {number}")
            } else {
                String::new()
            };
            let at = BEGIN + number as i64 * 60_000_000;
            let (halves, printed) = run_of_five(number, owner_of(kind, number), &changed, at);
            ledger.record(&halves, Instant::now()).unwrap();
            ledger.close_all().unwrap();
            (printed, ledger.store().size().unwrap())
        };
        let (_, before) = store(0);
        let mut printed = 0;
        let mut after = before;
        for number in 1..=count {
            let (bytes, size) = store(number);
            printed += bytes;
            after = size;
        }
        let part = 1000.0 * (after - before) as f64 / printed as f64;
        let what = format!("bytes of lines, five resources of 4 KB, {kind}");
        figure(&what, part, 1000.0 / goal, "1/1000");
    }
}

/// A thousand composite resources that a control plane looks at every minute and never changes.
fn rest(location: &Location, hours: u64) {
    let options = options(location);
    let mut ledger =
        Ledger::open(location, &[1; 16], options.ledger, (BEGIN, Instant::now())).unwrap();
    let begun = Instant::now();
    let (mut run, mut first) = (0_u64, 0.0);
    for minute in 0..hours * 60 {
        let mut batch = Vec::new();
        for owner in 0..1000 {
            let at = BEGIN + (minute * 60_000_000 + owner) as i64;
            batch.extend(run_of_five(run, owner, "", at).0);
            run += 1;
            if batch.len() >= 64 {
                ledger.record(&batch, Instant::now()).unwrap();
                batch.clear();
            }
        }
        ledger.record(&batch, Instant::now()).unwrap();
        if minute == 0 {
            first = ledger.store().size().unwrap() as f64 / 1e6;
        }
        if minute % 60 == 59 {
            let now = BEGIN + minute as i64 * 60_000_000;
            while ledger.sweep(&options.retention, now).unwrap().any() {}
        }
    }
    ledger.close_all().unwrap();
    let now = BEGIN + (hours as i64 + 2) * 3_600_000_000;
    while ledger.sweep(&options.retention, now).unwrap().any() {}
    let size = |ledger: &Ledger| ledger.store().size().unwrap() as f64 / 1e6;
    println!("{hours} hours stored in {:.0} s", begun.elapsed().as_secs_f64());
    // The content is stored in the first minute, and only the rows of runs grow with time.
    let grown = size(&ledger) - first;
    let day = first + grown * 24.0 / hours as f64;
    figure("1,000 composite resources at rest for a day", day, 30.0, "MB");
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
    let milliseconds = |at: usize| times[at].as_secs_f64() * 1000.0;
    figure(
        &format!("{name}, p99 (p50 {:.2} ms)", milliseconds(150)),
        milliseconds(297),
        10.0,
        "ms",
    );
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

/// The resident memory of a process, in MiB.
fn resident(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// What a sidecar takes at rest.
fn at_rest(mut command: Command, socket: &Path) -> Option<f64> {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let begun = Instant::now();
    while !socket.exists() && begun.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    let memory = resident(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    memory
}

/// The memory of the sidecars without a store, beside that of the reference.
fn sidecars(folder: &Path) {
    let own = std::env::current_exe().unwrap();
    let own: PathBuf = own.parent().and_then(Path::parent).unwrap().join("biplane");
    let upstream = std::env::var_os("BIPLANE_UPSTREAM_BIN").map(PathBuf::from);
    // What the reference took when it was recorded.
    for (name, recorded) in [("inspector", 12.7), ("changelogs", 27.7)] {
        let socket = folder.join(format!("{name}.sock"));
        let reference = upstream.as_ref().map(|folder| folder.join(format!("{name}-sidecar")));
        let reference = reference.filter(|program| program.exists()).and_then(|program| {
            let socket = folder.join(format!("{name}-reference.sock"));
            let mut command = Command::new(program);
            command.arg(format!("--socket-path={}", socket.display()));
            at_rest(command, &socket)
        });
        let goal = reference.unwrap_or(recorded);
        if !own.exists() {
            println!("{name} serve: build biplane in this profile to measure its memory");
            continue;
        }
        let mut command = Command::new(&own);
        command.args([name, "serve", &format!("--socket-path={}", socket.display())]);
        if let Some(memory) = at_rest(command, &socket) {
            let half = goal / 2.0;
            figure(&format!("{name} serve at rest (half would be {half:.1})"), memory, goal, "MiB");
        }
    }
}

/// The parts, in order.
const PARTS: [&str; 6] = ["ingest", "flood", "sidecars", "sizes", "rest", "lists"];

fn main() {
    let variable = |name: &str| std::env::var(name).ok();
    let number = |name: &str, usual: u64| variable(name).map_or(usual, |n| n.parse().unwrap());
    let Some(part) = variable("PART") else {
        let chosen = variable("PARTS").unwrap_or_else(|| PARTS.join(","));
        for part in chosen.split(',') {
            let own = std::env::current_exe().unwrap();
            let done = Command::new(own).env("PART", part).status().unwrap();
            assert!(done.success(), "{part}");
        }
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = || Location::File(folder.path().join("store.db"));
    match part.as_str() {
        "ingest" => ingest(&file()),
        "flood" => flood(&file()),
        "sidecars" => sidecars(folder.path()),
        "sizes" => sizes(folder.path()),
        "rest" => rest(&file(), number("HOURS", 24)),
        "lists" => {
            let steps = number("STEPS", 1_000_000);
            let location = variable("POSTGRES").map_or_else(file, Location::Server);
            fill(&location, steps);
            lists(&location, steps);
        }
        other => panic!("there is no part {other:?}"),
    }
}
