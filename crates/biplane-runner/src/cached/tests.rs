//! Tests of the cache: what is kept, for how long, and the effect of damaged files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use biplane_function::metrics::{Counters, Metrics};
use biplane_proto::cache::CachedRunFunctionResponse;
use prost::Message;
use tempfile::TempDir;

use super::metrics::Function;
use super::*;
use crate::fetching::Fetching;
use crate::runner::FetchError;
use crate::v1::{
    RequestMeta, ResourceSelector, Resources, ResponseMeta, Result as FunctionResult, Schema,
    SchemaSelector,
};

const MINUTE: Duration = Duration::from_mins(1);

/// Responds with this TTL, or fails without one. Counts its calls.
#[derive(Clone)]
struct Answering {
    response: Option<RunFunctionResponse>,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl FunctionRunner for Answering {
    async fn run(&self, _: &Call, _: RunFunctionRequest) -> Result<RunFunctionResponse, RunError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.response.clone().ok_or_else(|| RunError::Other("boom".into()))
    }
}

fn with_ttl(ttl: Duration) -> RunFunctionResponse {
    let meta = ResponseMeta { tag: "t".into(), ttl: Some(ttl.into()) };
    RunFunctionResponse { meta: Some(meta), ..RunFunctionResponse::default() }
}

struct World {
    folder: TempDir,
    time: Arc<Mutex<SystemTime>>,
    runner: Cached<Answering>,
}

const START: Duration = Duration::from_secs(1_700_000_000);

impl World {
    fn new(response: Option<RunFunctionResponse>, max_ttl: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let time = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + START));
        let inner = Answering { response, calls: Arc::default() };
        let runner = Cached::new(inner, folder.path(), max_ttl, clock(&time), metrics());
        Self { folder, time, runner }
    }

    async fn run(&self, function: &str, tag: &str) -> Result<RunFunctionResponse, RunError> {
        self.runner.run(&call(function), tagged(tag)).await
    }

    fn calls(&self) -> usize {
        self.runner.inner.calls.load(Ordering::SeqCst)
    }

    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        for folder in fs::read_dir(self.folder.path()).unwrap() {
            let folder = folder.unwrap().path();
            files.extend(fs::read_dir(&folder).unwrap().map(|file| {
                let file = file.unwrap().path();
                file.strip_prefix(self.folder.path()).unwrap().display().to_string()
            }));
        }
        files.sort();
        files
    }

    fn pass(&self, time: Duration) {
        *self.time.lock().unwrap() += time;
    }
}

fn metrics() -> CacheMetrics {
    CacheMetrics::new(&Metrics::default())
}

fn count(counters: &Counters<Function>, function: &str) -> u64 {
    counters.get_or_create(&Function::of(function)).get()
}

fn clock(time: &Arc<Mutex<SystemTime>>) -> Now {
    let time = Arc::clone(time);
    Arc::new(move || *time.lock().unwrap())
}

fn call(function: &str) -> Call {
    Call { function: function.into(), ..Call::default() }
}

fn tagged(tag: &str) -> RunFunctionRequest {
    let meta = RequestMeta { tag: tag.into(), ..RequestMeta::default() };
    RunFunctionRequest { meta: Some(meta), ..RunFunctionRequest::default() }
}

/// FN-K3, FN-K4
#[tokio::test]
async fn what_must_not_be_kept_is_not() {
    let cases = [
        (Some(with_ttl(MINUTE)), ""),
        (Some(with_ttl(MINUTE)), "../escape"),
        (Some(with_ttl(Duration::ZERO)), "t"),
        (Some(RunFunctionResponse::default()), "t"),
        (None, "t"),
    ];
    for (response, tag) in cases {
        let world = World::new(response.clone(), Duration::ZERO);
        for n in 1..=2 {
            assert_eq!(world.run("fn", tag).await.ok(), response);
            assert_eq!(world.calls(), n, "{response:?} {tag}");
        }
        assert_eq!(world.files(), Vec::<String>::new());
        assert_eq!(count(&world.runner.metrics.misses, "fn"), 2);
    }
}

/// FN-K1, FN-K2, FN-K3
#[tokio::test]
async fn what_is_kept_answers_other_runners_until_its_deadline() {
    let world = World::new(Some(with_ttl(10 * MINUTE)), Duration::ZERO);
    world.run("fn", "abc").await.unwrap();
    assert_eq!(world.files(), ["fn/abc"]);
    let mode = fs::metadata(world.folder.path().join("fn")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    let broken = Answering { response: None, calls: Arc::default() };
    let other =
        Cached::new(broken, world.folder.path(), Duration::ZERO, clock(&world.time), metrics());
    world.pass(10 * MINUTE);
    assert_eq!(other.run(&call("fn"), tagged("abc")).await.unwrap(), with_ttl(10 * MINUTE));
    assert_eq!(count(&other.metrics.hits, "fn"), 1);
    assert_eq!(other.metrics.read_seconds.get_or_create(&Function::of("fn")).count(), 1);
    assert!(other.run(&call("fn2"), tagged("abc")).await.is_err());
    world.pass(Duration::from_nanos(1));
    assert!(other.run(&call("fn"), tagged("abc")).await.is_err(), "expired");
}

/// FN-K3
#[tokio::test]
async fn broken_files_are_replaced() {
    for (content, errors) in [(b"".as_slice(), 0), (b"\xff\xff\xff", 1)] {
        let world = World::new(Some(with_ttl(MINUTE)), Duration::ZERO);
        fs::create_dir(world.folder.path().join("fn")).unwrap();
        fs::write(world.folder.path().join("fn/t"), content).unwrap();
        world.run("fn", "t").await.unwrap();
        world.run("fn", "t").await.unwrap();
        assert_eq!(world.calls(), 1);
        assert_eq!(count(&world.runner.metrics.errors, "fn"), errors);
    }
}

/// Responses may hold secrets, and a device would fill the memory.
#[tokio::test]
async fn only_the_owner_reads_what_is_kept_and_only_files_are_read() {
    let world = World::new(Some(with_ttl(MINUTE)), MINUTE * 2);
    world.run("f", "t").await.unwrap();
    let file = world.folder.path().join("f/t");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    world.run("f", "t").await.unwrap();
    assert_eq!(world.calls(), 2, "it is answered by the function");
}

fn deadline(path: &Path) -> i64 {
    let cached = CachedRunFunctionResponse::decode(fs::read(path).unwrap().as_slice()).unwrap();
    cached.deadline.unwrap().seconds - START.as_secs().cast_signed()
}

/// FN-K4, FN-K5
#[tokio::test]
async fn the_limit_cuts_the_deadline_and_not_the_response() {
    for (max, expected) in [(5 * MINUTE, 300), (Duration::ZERO, 1800), (60 * MINUTE, 1800)] {
        let world = World::new(Some(with_ttl(30 * MINUTE)), max);
        world.run("fn", "t").await.unwrap();
        assert_eq!(deadline(&world.folder.path().join("fn/t")), expected);
        let kept = world.run("fn", "t").await.unwrap();
        assert_eq!((kept, world.calls()), (with_ttl(30 * MINUTE), 1));
    }
}

#[tokio::test]
async fn what_was_kept_under_a_larger_limit_stays_valid() {
    let world = World::new(Some(with_ttl(30 * MINUTE)), Duration::ZERO);
    world.run("fn", "t").await.unwrap();
    let inner = world.runner.inner.clone();
    let strict = Cached::new(inner, world.folder.path(), MINUTE, clock(&world.time), metrics());
    world.pass(20 * MINUTE);
    let kept = strict.run(&call("fn"), tagged("t")).await.unwrap();
    assert_eq!((kept, world.calls()), (with_ttl(30 * MINUTE), 1));
}

/// FN-K9
#[tokio::test]
async fn garbage_is_collected_and_empty_folders_one_pass_later() {
    let world = World::new(Some(with_ttl(MINUTE)), Duration::ZERO);
    for (function, tag) in [("a", "1"), ("b", "1"), ("b", "2")] {
        world.run(function, tag).await.unwrap();
    }
    world.pass(MINUTE);
    for tag in ["2", "3"] {
        world.run("a", tag).await.unwrap();
    }
    fs::write(world.folder.path().join("a/.new-1-1"), "").unwrap();
    fs::write(world.folder.path().join("a/garbage"), b"\xff\xff").unwrap();

    assert_eq!(world.runner.collect_garbage().await.unwrap(), 3);
    assert_eq!(world.files(), ["a/.new-1-1", "a/2", "a/3", "a/garbage"]);
    assert!(world.folder.path().join("b").exists());
    let metrics = &world.runner.metrics;
    assert_eq!((count(&metrics.deletes, "a"), count(&metrics.deletes, "b")), (1, 2));
    assert_eq!(count(&metrics.errors, "a"), 1);

    assert_eq!(world.runner.collect_garbage().await.unwrap(), 0);
    assert!(!world.folder.path().join("b").exists());
}

/// FN-K4
#[tokio::test]
async fn a_folder_that_cannot_be_written_costs_no_answer() {
    let world = World::new(Some(with_ttl(MINUTE)), Duration::ZERO);
    // A file in place of the folder fails writes even for the root user.
    fs::write(world.folder.path().join("fn"), "").unwrap();
    assert!(world.run("fn", "t").await.is_ok());
    let metrics = &world.runner.metrics;
    assert!(count(&metrics.errors, "fn") >= 1);
    assert_eq!(count(&metrics.writes, "fn"), 0);
}

/// FN-K6
#[tokio::test]
async fn fatal_results_are_kept_too() {
    let mut fatal = with_ttl(MINUTE);
    fatal.results.push(FunctionResult { severity: 1, ..FunctionResult::default() });
    let world = World::new(Some(fatal.clone()), Duration::ZERO);
    world.run("fn", "t").await.unwrap();
    assert_eq!(world.run("fn", "t").await.unwrap(), fatal);
    assert_eq!(world.calls(), 1);
}

struct Nothing;

#[async_trait]
impl crate::runner::Requirements for Nothing {
    async fn resources(&self, _: &ResourceSelector) -> Result<Option<Resources>, FetchError> {
        Ok(None)
    }

    async fn schema(&self, _: &SchemaSelector) -> Result<Schema, FetchError> {
        Ok(Schema::default())
    }
}

/// FN-L1
#[tokio::test]
async fn the_cache_holds_the_answer_after_requirements_were_met() {
    let mut response = with_ttl(MINUTE);
    biplane_function::response::require_schema(&mut response, "s", "v1", "Pod");
    let inner = Answering { response: Some(response), calls: Arc::default() };
    let folder = tempfile::tempdir().unwrap();
    let time = Arc::new(Mutex::new(SystemTime::UNIX_EPOCH + START));
    let runner = Cached::new(
        Fetching::new(inner.clone(), Nothing),
        folder.path(),
        Duration::ZERO,
        clock(&time),
        metrics(),
    );
    for _ in 0..3 {
        runner.run(&call("fn"), tagged("t")).await.unwrap();
    }
    assert_eq!(inner.calls.load(Ordering::SeqCst), 2, "two calls of the first run");
    runner.run(&call("fn"), tagged("changed")).await.unwrap();
    assert_eq!(inner.calls.load(Ordering::SeqCst), 4);
}

#[test]
fn metrics_go_by_the_names_of_the_field() {
    let metrics = Metrics::default();
    let cache = CacheMetrics::new(&metrics);
    // A metric is printed once it has a value.
    cache.hit("fn", Duration::from_millis(30));
    cache.miss("fn");
    cache.error("fn");
    cache.write("fn", 70, Duration::from_millis(30));
    cache.delete("fn", 80);
    let text = metrics.text();
    let kinds: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE function_run_function_response_cache_"))
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert_eq!(
        kinds,
        BTreeMap::from([
            ("hits", "counter"),
            ("misses", "counter"),
            ("errors", "counter"),
            ("writes", "counter"),
            ("deletes", "counter"),
            ("bytes_written", "counter"),
            ("bytes_deleted", "counter"),
            ("read_seconds", "histogram"),
            ("write_seconds", "histogram"),
        ])
    );
    let help = "# HELP function_run_function_response_cache_hits \
                Total number of RunFunctionResponse cache hits.";
    assert!(text.lines().any(|l| l == help), "{help} is not in\n{text}");
    for (name, value) in [
        ("hits_total", "1"),
        ("misses_total", "1"),
        ("errors_total", "1"),
        ("writes_total", "1"),
        ("deletes_total", "1"),
        ("bytes_written_total", "70"),
        ("bytes_deleted_total", "80"),
        ("read_seconds_count", "1"),
        ("write_seconds_count", "1"),
    ] {
        let line =
            format!("function_run_function_response_cache_{name}{{function_name=\"fn\"}} {value}");
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}
