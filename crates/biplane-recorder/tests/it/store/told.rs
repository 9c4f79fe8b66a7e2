//! Those who follow are told of everything, and those who share a store do not get in each other's way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use biplane_proto::json::from_value;
use biplane_recorder::store::rows::{ChangeFilter, RunFilter};
use biplane_recorder::store::{Error, Ledger, Retention, Store};
use serde_json::json;

use super::raw::Raw;
use super::world::{
    HOUR, NOON, SECOND, World, change, forever, halves, on_both, open, options, simple,
};

/// Another recorder of the same store.
fn other(world: &World, name: &str) -> Ledger {
    let mut options = options();
    options.source = name.into();
    open(&world.location, options)
}

fn append(ledger: &mut Ledger, name: &str, at: i64) {
    let entry = from_value(json!({"name": name, "snapshot": {"text": name}})).unwrap();
    let record = change(entry, at);
    let mut attempts = 0;
    while let Err(error) = ledger.append(std::slice::from_ref(&record)) {
        attempts += 1;
        assert!(matches!(error, Error::Busy(_)) && attempts < 50, "{error}");
    }
}

on_both! {
    fn every_run_that_ends_is_told(world) {
        let tell = |world: &mut World, trace: &str, at: i64| {
            let halves = halves(&[simple(trace, trace).at(NOON + at * SECOND)]);
            world.ledger.record(&halves, Instant::now()).unwrap().runs
        };
        let first = tell(world, "a", 0);
        assert_eq!(first.len(), 1, "it begins");
        let both = tell(world, "b", 1);
        assert!(both.contains(&first[0]), "the next run ends it: {both:?}");
        let lost = world.ledger.lost_of("b", Instant::now()).unwrap();
        assert_eq!(lost.runs, [world.found("b").id]);
        // What a process leaves open, the next one tells.
        let mut call = simple("c", "eu").at(NOON + 2 * SECOND);
        call.response = None;
        world.record(&[call]);
        world.restart();
        let left = world.ledger.take_left().runs;
        assert_eq!(left, [world.found("c").id]);
        assert_eq!(world.ledger.take_left().runs, Vec::<i64>::new());
    }

    /// Entries come and go while somebody verifies the chain.
    fn a_chain_that_is_written_meanwhile_is_whole(world) {
        let done = Arc::new(AtomicBool::new(false));
        let (mut ledger, is_done) = (other(world, "writer"), Arc::clone(&done));
        let writing = thread::spawn(move || {
            let retention = Retention { changes_for: HOUR, ..forever() };
            for number in 0..150 {
                let at = NOON + number * HOUR / 10;
                append(&mut ledger, &format!("db-{number}"), at);
                if number % 10 == 9 {
                    let _ = ledger.sweep(&retention, at);
                }
            }
            is_done.store(true, Ordering::Release);
        });
        let store = Store::open_existing(&world.location).unwrap();
        let mut entries = 0;
        while !done.load(Ordering::Acquire) {
            for verified in store.verify().unwrap() {
                assert_eq!(verified.broken, [], "{}", verified.source.name);
                entries += verified.entries;
            }
        }
        writing.join().unwrap();
        assert!(entries > 0);
    }

    /// Another recorder remembers keys of rows that are gone.
    fn what_nothing_points_at_goes_and_comes_back(world) {
        let mut other = other(world, "other");
        let record = |ledger: &mut Ledger, trace: &str, at: i64| {
            ledger.record(&halves(&[simple(trace, "eu").at(at)]), Instant::now()).unwrap();
            ledger.close_all().unwrap();
        };
        record(&mut other, "a", NOON);
        record(&mut other, "b", NOON + SECOND);
        let retention = Retention { runs_for: HOUR, changes_for: HOUR, ..forever() };
        for hours in [50, 75, 100] {
            world.sweep(&retention, NOON + hours * HOUR);
        }
        let raw = Raw::open(&world.location);
        for table in ["run", "object", "label", "slot", "word", "pipeline", "pipeline_step"] {
            let left = raw.number(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(left, 0, "{table}");
        }
        let at = NOON + 100 * HOUR;
        record(&mut other, "c", at);
        record(&mut world.ledger, "d", at + SECOND);
        for trace in ["c", "d"] {
            let run = world.found(trace);
            assert_eq!((run.owner.name.as_str(), run.composition.as_deref()), ("north", Some("stores")));
            let step = world.store().steps(run.id).unwrap().remove(0);
            assert_eq!((step.step.as_str(), step.function.as_str()), ("step-0", "function-0"));
        }
        // What is in use stays.
        world.sweep(&retention, at + HOUR / 2);
        assert_eq!(world.found("d").owner.name, "north");
        assert!(raw.number("SELECT count(*) FROM word") > 0);
    }

    /// An answer waits for its request in memory, but not however large it is.
    fn answers_before_their_requests_are_bounded(world) {
        let large = "x".repeat(5_000_000);
        let mut requests = Vec::new();
        for name in ["one", "two"] {
            let mut call = simple(name, "eu").of(name);
            call.response.as_mut().unwrap()["context"] = json!({"large": large});
            let mut both = halves(&[call]);
            let answer = both.remove(1);
            world.ledger.record(&[answer], Instant::now()).unwrap();
            requests.extend(both);
        }
        world.ledger.record(&requests, Instant::now()).unwrap();
        world.ledger.close_all().unwrap();
        let whole = |trace: &str| {
            let step = world.store().steps(world.found(trace).id).unwrap().remove(0);
            (step.no_request, step.no_answer)
        };
        assert_eq!(whole("one"), (false, false));
        assert_eq!(whole("two"), (true, false), "it says so");
    }
}

/// Those who follow changes by their keys see all of them.
#[test]
fn several_recorders_store_changes_in_the_order_of_their_keys() {
    let world = World::on_a_server();
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let mut ledger = other(&world, &format!("writer-{writer}"));
            thread::spawn(move || {
                for number in 0..60 {
                    append(&mut ledger, &format!("db-{writer}-{number}"), NOON + number);
                }
            })
        })
        .collect();
    let (mut seen, mut newest) = (0, 0);
    let mut is_over = false;
    loop {
        let filter = ChangeFilter { newer_than: Some(newest), ..ChangeFilter::default() };
        let found = world.store().changes(&filter, 500, None).unwrap();
        seen += found.len();
        newest = found.last().map_or(newest, |change| change.id);
        if is_over {
            break;
        }
        is_over = writers.iter().all(thread::JoinHandle::is_finished);
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(seen, 180);
}

#[test]
fn what_others_hold_is_not_waited_for_without_end() {
    let mut world = World::on_a_server();
    let raw = Raw::open(&world.location);
    world.record(&[simple("a", "eu")]);
    raw.execute("BEGIN; LOCK TABLE source, run IN ACCESS EXCLUSIVE MODE");
    let record = change(from_value(json!({"name": "db"})).unwrap(), NOON);
    let refused = world.ledger.append(std::slice::from_ref(&record)).unwrap_err();
    assert!(matches!(refused, Error::Busy(_)), "{refused}");
    // Who asks has a limit of their own.
    let store = world.store();
    store.limit(Instant::now() + std::time::Duration::from_millis(50), 1 << 20);
    let refused = store.runs(&RunFilter::default(), 10, None).unwrap_err();
    assert!(matches!(refused, Error::TooMuch(_)), "{refused}");
    raw.execute("ROLLBACK");
    world.restart();
    // Neither is the lock of the keys, and a transaction that could not begin leaves nothing behind.
    raw.execute("SELECT pg_advisory_lock(x'6269706c0004'::bigint)");
    let refused = world.ledger.append(std::slice::from_ref(&record)).unwrap_err();
    assert!(matches!(refused, Error::Busy(_)), "{refused}");
    raw.execute("SELECT pg_advisory_unlock(x'6269706c0004'::bigint)");
    world.ledger.append(&[record]).unwrap();
    assert_eq!(world.runs().len(), 1);
}

/// Something listens and says nothing.
#[test]
fn a_server_that_says_nothing_is_gone() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let location = format!("postgres://biplane@{address}/test?sslmode=disable");
    let location = biplane_recorder::store::Location::parse(&location);
    let error = Store::open(&location, &[7; 16]).unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error}");
}
