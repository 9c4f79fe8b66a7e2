//! Random histories that the engine itself makes on a cluster in memory. What the recorder answers
//! about them equals what the functions saw.
//!
//! `BIPLANE_HISTORIES` is the number of histories, `BIPLANE_HISTORY_SEED` the seed of the first.

mod oracle;
mod plan;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use biplane_cluster::Cluster;
use biplane_cluster::memory::{ApiServer, Fault};
use biplane_engine::composite::dependencies::DependencyIndex;
use biplane_engine::composite::{Behaviour, Layout, Reconciler, Writing};
use biplane_engine::requirements::ClusterRequirements;
use biplane_engine::sources::CountingIds;
use biplane_engine::{Context, FixedClock};
use biplane_function::metrics::Metrics;
use biplane_model::{Gvk, Object};
use biplane_proto::function::v1::{RunFunctionRequest, RunFunctionResponse};
use biplane_proto::json::{from_value, to_value};
use biplane_proto::redact::TagKey;
use biplane_recorder::query::answer::{Answer, Diff, Sign};
use biplane_recorder::query::archive::{Archive, RunFilter};
use biplane_recorder::query::ask::{self, Question};
use biplane_recorder::query::stored::Stored;
use biplane_recorder::recorder::{Options, Recorder};
use biplane_recorder::store::Location;
use biplane_recorder::{Dialect, Emission, TakeEmission};
use biplane_runner::inspected::{self, EmitError, Inspector, Sources};
use biplane_runner::{Call, FunctionRunner, Inspection, RunError, stack};
use serde_json::{Value, json};

use self::oracle::{Changes, Oracle, Ran, Resource, flat};
use self::plan::{Ending, Plan, STEPS};
use crate::recording::{options, variable};
use crate::store::world::{NOON, SECOND, World, forever};
use crate::story::{Dice, named, now};
use crate::travel::whole;

const VERSION: &str = "example.org/v1";

/// How many runs a history has.
const RUNS: u64 = 24;

/// The functions of all steps. They do what the plan says, and tell the oracle.
struct Functions {
    plan: Mutex<Plan>,
    oracle: Mutex<Oracle>,
}

#[tonic::async_trait]
impl FunctionRunner for Functions {
    async fn run(
        &self,
        call: &Call,
        request: RunFunctionRequest,
    ) -> Result<RunFunctionResponse, RunError> {
        let plan = self.plan.lock().unwrap().clone();
        let mut oracle = self.oracle.lock().unwrap();
        let request = to_value(&request).unwrap();
        let desired = oracle.asked(&call.trace, call.index, &request);
        let ending = plan.ending(call.index);
        if ending == Ending::Error {
            oracle.failed();
            return Err(RunError::Other("the function is away".to_owned()));
        }
        let size = request["observed"]["composite"]["resource"]["spec"]["size"].clone();
        let answer = oracle.answered(&call.step, &plan.apply(call.index, desired, &size), ending);
        Ok(from_value(answer).unwrap())
    }
}

/// Hands emissions to recorders, as the socket would.
struct Receivers(Vec<Arc<Recorder>>, Arc<Functions>);

#[tonic::async_trait]
impl Inspector for Receivers {
    async fn emit(&self, emission: inspected::Emission) -> Result<(), EmitError> {
        if emission.meta.step_index == 0 {
            let at = emission.meta.timestamp.unwrap();
            self.1.oracle.lock().unwrap().begins(at.seconds * SECOND);
        }
        for recorder in &self.0 {
            let emission = Emission {
                dialect: Dialect::Shipped,
                half: emission.half,
                meta: Some(emission.meta.clone()),
                payload: emission.payload.get().clone(),
                error: emission.error.clone(),
                details: biplane_recorder::emission::Details {
                    took: emission.details.took,
                    cached: emission.details.cached,
                    revision: emission.details.revision.clone(),
                },
            };
            TakeEmission::take(recorder.as_ref(), emission).await.unwrap();
        }
        Ok(())
    }
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// An XR, its Composition and the controller, with recorders at its socket.
struct Plane {
    cluster: Arc<ApiServer>,
    reconciler: Reconciler,
    functions: Arc<Functions>,
    runtime: tokio::runtime::Runtime,
}

impl Plane {
    fn new(recorders: Vec<Arc<Recorder>>, clock: &Arc<AtomicI64>) -> Self {
        let cluster = Arc::new(ApiServer::default());
        let functions = Arc::new(Functions { plan: Mutex::default(), oracle: Mutex::default() });
        let requirements = Arc::new(ClusterRequirements(cluster.clone() as Arc<dyn Cluster>));
        let (time, span) = (Arc::clone(clock), AtomicI64::new(0));
        let sources = Sources {
            now: Arc::new(move || {
                let micros = time.fetch_add(SECOND, Ordering::Relaxed);
                SystemTime::UNIX_EPOCH + Duration::from_micros(micros.try_into().unwrap())
            }),
            uuid: Arc::new(move || format!("span-{}", span.fetch_add(1, Ordering::Relaxed))),
            tag_key: TagKey::new([0; 32]),
        };
        let receivers = Arc::new(Receivers(recorders, functions.clone()));
        let inspection = Inspection::new(receivers, &inspected::Options::default(), sources, None);
        let runner = stack::of_inspected_reconciler(
            functions.clone(),
            requirements.clone(),
            Some(&inspection),
        );
        let context = Context {
            cluster: cluster.clone(),
            events: cluster.clone(),
            runner,
            requirements,
            clock: Arc::new(FixedClock("2027-01-15T08:00:00Z".parse().unwrap())),
            ids: Arc::new(CountingIds::default()),
        };
        let behaviour = Behaviour {
            writing: Writing::Stepwise,
            realtime: false,
            ..Behaviour::live(Gvk::new(VERSION, "Thing"), Layout::Modern, "things.example.org")
        };
        let mut reconciler = Reconciler::new(context, behaviour);
        reconciler.dependencies = Arc::new(DependencyIndex::default());
        cluster.seed(given());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { cluster, reconciler, functions, runtime }
    }

    /// Changes an object as somebody else would.
    fn change(&self, which: impl Fn(&Object) -> bool, path: &[&str], value: impl Into<Value>) {
        if let Some(mut found) = self.cluster.objects().into_iter().find(which) {
            found.set_at_or_ignore(path, value.into());
            self.cluster.seed([found]);
        }
    }

    /// Something happens, and then the controller runs.
    fn step(&self, dice: &mut Dice) {
        match dice.roll(8) {
            0 | 1 => {
                let size = dice.roll(5);
                self.change(|object| object.kind() == "Thing", &["spec", "size"], size);
            }
            // Somebody else writes to a composed resource.
            2 => {
                let drift = dice.roll(100);
                self.change(|object| object.kind() == "Part", &["spec", "drift"], drift);
            }
            3..=5 => self.functions.plan.lock().unwrap().change(dice),
            // Nothing happens.
            _ => {}
        }
        self.functions.plan.lock().unwrap().endings(dice);
        if dice.roll(6) == 0 {
            let at = usize::try_from(dice.roll(12)).unwrap();
            self.cluster.inject(Fault::before(self.cluster.calls() + at));
        }
        // Whether it succeeds is the history's own affair.
        let _ = self.runtime.block_on(self.reconciler.reconcile("ns", "xr"));
    }
}

fn given() -> Vec<Object> {
    let pipeline: Vec<Value> = STEPS
        .iter()
        .map(|step| json!({"step": step, "functionRef": {"name": format!("function-{step}")}}))
        .collect();
    let spec = json!({
        "compositeTypeRef": {"apiVersion": VERSION, "kind": "Thing"},
        "mode": "Pipeline", "pipeline": pipeline,
    });
    let mut revised = spec.clone();
    revised["revision"] = json!(1);
    let group = "apiextensions.crossplane.io/v1";
    [
        json!({
            "apiVersion": VERSION, "kind": "Thing",
            "metadata": {"name": "xr", "namespace": "ns", "uid": "xr-uid"}, "spec": {"size": 3},
        }),
        json!({
            "apiVersion": group, "kind": "CompositeResourceDefinition",
            "metadata": {"name": "things.example.org"}, "spec": {},
        }),
        json!({
            "apiVersion": group, "kind": "Composition",
            "metadata": {"name": "comp", "uid": "comp-uid"}, "spec": spec,
        }),
        json!({
            "apiVersion": group, "kind": "CompositionRevision",
            "metadata": {
                "name": "comp-1", "labels": {"crossplane.io/composition-name": "comp"},
                "ownerReferences": [{
                    "apiVersion": group, "kind": "Composition", "name": "comp", "uid": "comp-uid",
                    "controller": true,
                }],
            },
            "spec": revised,
            "status": {"conditions": [{
                "type": "ValidPipeline", "status": "True", "reason": "ValidPipeline",
                "lastTransitionTime": "2027-01-15T08:00:00Z",
            }]},
        }),
    ]
    .map(object)
    .into()
}

/// A step by its name.
fn name_of(step: Option<&biplane_recorder::query::answer::StepRef>) -> Option<String> {
    step.map(|step| step.name.clone())
}

/// What the recorder tells of a run: state, blame and the ages of both.
fn told(store: &Stored, ran: &Ran) -> (BTreeMap<String, Resource>, oracle::Moment) {
    let ask = |question| ask::answer(store, &question, now()).unwrap();
    let Answer::Blame(blame) = ask(Question::Blame(named(&ran.trace))) else { panic!() };
    let resources = blame
        .resources
        .into_iter()
        .map(|item| {
            let since = |since: Option<biplane_recorder::query::answer::Since>| {
                since.map(|since| {
                    assert!(!since.or_earlier, "{since:?}");
                    since.run
                })
            };
            let field = |field: biplane_recorder::query::answer::BlameField| {
                let told = (whole(field.value), name_of(field.step.as_ref()), since(field.since));
                (field.path, told)
            };
            let resource = Resource {
                created: name_of(item.created_by.as_ref()),
                removed: name_of(item.removed_by.as_ref()),
                since: since(item.since),
                fields: item.fields.into_iter().map(field).collect(),
            };
            (item.resource, resource)
        })
        .collect();
    let of = named("Thing/xr");
    let at = jiff::Timestamp::from_microsecond(ran.at).unwrap();
    let Answer::At(at) = ask(Question::At { of, at }) else { panic!() };
    assert_eq!(at.run.run, ran.trace);
    assert_eq!(at.run.outcome.name(), ran.ending.name(), "{}", ran.trace);
    let mut moment = oracle::Moment::default();
    for item in at.resources {
        let name = item.resource;
        if let Some(body) = item.observed {
            let since = item.observed_since.unwrap().run;
            moment.observed.insert(name.clone(), (whole(body), since));
        }
        if let Some(body) = item.desired {
            let since = item.desired_since.unwrap().run;
            moment.desired.insert(name, (whole(body), since));
        }
    }
    (resources, moment)
}

/// What differs between two runs, by resource.
fn differences(store: &Stored, before: &Ran, after: &Ran, observed: bool) -> Diff {
    let question =
        Question::Diff { before: named(&before.trace), after: Some(after.trace.clone()), observed };
    match ask::answer(store, &question, now()).unwrap() {
        Answer::Diff(diff) => diff,
        other => panic!("{other:?}"),
    }
}

/// The plain values that an answer says differ.
fn changes(diff: &Diff) -> BTreeMap<String, Changes> {
    let mut all = BTreeMap::new();
    for item in &diff.resources {
        let mut fields: BTreeMap<String, (Option<Value>, Option<Value>)> = BTreeMap::new();
        for field in &item.fields {
            assert_ne!(field.change, Sign::Moved, "nothing moves");
            for (path, value) in field.before.iter().flat_map(|value| flat(&field.path, value)) {
                fields.entry(path).or_default().0 = Some(value);
            }
            for (path, value) in field.after.iter().flat_map(|value| flat(&field.path, value)) {
                fields.entry(path).or_default().1 = Some(value);
            }
        }
        all.insert(item.resource.clone(), Changes { sign: item.change, fields });
    }
    all
}

/// Compares everything that is kept with the oracle.
fn check(store: &Stored, oracle: &Oracle, seed: u64) {
    let mut kept = Vec::new();
    for (index, ran) in oracle.runs.iter().enumerate() {
        if store.by_trace(&ran.trace).unwrap().is_empty() {
            continue;
        }
        let (resources, moment) = told(store, ran);
        assert_eq!(resources, oracle.blame(index), "seed {seed}: blame of {}", ran.trace);
        assert_eq!(moment, oracle.moment(index), "seed {seed}: state at {}", ran.trace);
        kept.push(ran);
    }
    for pair in kept.windows(2).chain([[kept[0], kept[kept.len() - 1]].as_slice()]) {
        let [before, after] = pair else { unreachable!() };
        let what = format!("seed {seed}: between {} and {}", before.trace, after.trace);
        if before.ending.is_success() && after.ending.is_success() {
            let found = changes(&differences(store, before, after, false));
            assert_eq!(found, oracle::differences(&before.desired(), &after.desired()), "{what}");
        }
        let found = changes(&differences(store, before, after, true));
        let expected = oracle::differences(&before.observed(), &after.observed());
        assert_eq!(found, expected, "observed, {what}");
    }
}

/// Makes a history, and asks the recorders about it, before and after folding.
fn history(seed: u64, locations: &[Location]) -> (usize, usize) {
    let clock = Arc::new(AtomicI64::new(NOON));
    let start = |location: &Location| {
        let time = Arc::clone(&clock);
        let options =
            Options { now: Arc::new(move || time.load(Ordering::Relaxed)), ..options(location) };
        Recorder::start(options, &Metrics::default()).unwrap()
    };
    let recorders: Vec<Arc<Recorder>> = locations.iter().map(start).collect();
    let plane = Plane::new(recorders.clone(), &clock);
    let mut dice = Dice(seed);
    for _ in 0..RUNS {
        plane.step(&mut dice);
        // The next run comes a minute later.
        clock.fetch_add(60 * SECOND, Ordering::Relaxed);
    }
    for recorder in recorders {
        assert!(recorder.stop(Duration::from_mins(1)));
    }
    let oracle = plane.functions.oracle.lock().unwrap();
    for location in locations {
        // What the recorder left open is closed by the next one.
        let mut world = World::at(location.clone());
        let store = Stored::open(&world.text()).unwrap();
        let count = |store: &Stored| store.runs(&RunFilter::default(), 1000, None).unwrap().len();
        assert_eq!(count(&store), oracle.runs.len(), "seed {seed}");
        check(&store, &oracle, seed);
        world.sweep(&forever(), NOON + 30 * 3600 * SECOND);
        check(&store, &oracle, seed);
    }
    let failed = oracle.runs.iter().filter(|ran| !ran.ending.is_success()).count();
    (oracle.runs.len(), failed)
}

fn number(name: &str, otherwise: u64) -> u64 {
    variable(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn what_is_told_of_a_random_history_is_what_the_functions_saw() {
    let (first, histories) = (number("BIPLANE_HISTORY_SEED", 1), number("BIPLANE_HISTORIES", 5));
    let (mut runs, mut failed) = (0, 0);
    for seed in first..first + histories {
        println!("history of seed {seed}");
        let folder = tempfile::tempdir().unwrap();
        let mut locations = vec![Location::File(folder.path().join("store.db"))];
        // Servers take longer.
        if seed % 4 == 1 {
            locations.push(crate::postgres::database());
        }
        let (all, bad) = history(seed, &locations);
        (runs, failed) = (runs + all, failed + bad);
    }
    // The histories are not empty.
    assert!(runs as u64 > histories * RUNS / 2 && failed > 0, "{runs} runs, {failed} failed");
}
