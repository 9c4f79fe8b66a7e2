//! Folding and retention remove what they should, and change no answer about what is kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use biplane_recorder::store::rows::{RunRow, Side};
use biplane_recorder::store::{Retention, Store};
use serde_json::json;

use super::raw::Raw;
use super::world::{Call, HOUR, NOON, SECOND, World, bucket, forever, on_both, simple, xr};

/// All that can be asked about a run: its steps with their payloads, and what every slot had then.
fn answers(store: &Store, run: &RunRow) -> String {
    let mut answer = format!("{run:?}\n");
    for step in store.steps(run.id).unwrap() {
        let exchange = store.exchange(step.exchange.unwrap()).unwrap().unwrap();
        let _ = write!(
            answer,
            "{step:?}\n{:?} {:?} {:?}\n",
            exchange.request, exchange.response, exchange.results
        );
    }
    for slot in store.slots(run.owner.id).unwrap() {
        for side in [Side::Observed, Side::Desired] {
            let version = store.version_at(slot.id, side, run.id).unwrap();
            let body =
                version.and_then(|version| version.body).map(|body| store.body(body).unwrap());
            let _ = writeln!(answer, "{} {side:?} {body:?}", slot.name);
        }
    }
    for field in store.fields_of_run(run.id).unwrap() {
        let _ = writeln!(answer, "{field:?}");
    }
    answer
}

/// A history of some XRs that change now and then, and fail now and then.
fn history(world: &mut World, runs: i64, every: i64, seed: u64) {
    let mut state = seed;
    let mut random = |below: u64| {
        // A small generator is enough: the same seed gives the same history.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut regions = ["eu".to_owned(), "us".to_owned(), "ap".to_owned()];
    for number in 0..runs {
        let which = random(3) as usize;
        if random(6) == 0 {
            regions[which] = format!("region-{}", random(1000));
        }
        let region = &regions[which];
        let name = format!("xr-{which}");
        let mut resources = json!({"bucket": {"resource": bucket(&format!("{name}-b"), region)}});
        if random(8) == 0 {
            resources["more"] = json!({"resource": bucket(&format!("{name}-m"), &"x".repeat(200))});
        }
        let request = json!({
            "observed": {"composite": {"resource": xr(&name, &json!({"region": region}))}, "resources": resources},
        });
        let mut answer = json!({"desired": {"resources": resources}});
        if random(9) == 0 {
            answer["results"] =
                json!([{"severity": "SEVERITY_FATAL", "message": format!("broke {}", random(3))}]);
        }
        let mut call = Call::new(&format!("t-{seed}-{number:05}"), 0, request, answer)
            .of(&name)
            .at(NOON + number * every);
        call.took = 1000 + i64::try_from(random(500)).unwrap();
        world.record(&[call]);
    }
    world.ledger.close_all().unwrap();
}

fn all_answers(world: &World) -> Vec<(String, String)> {
    world.runs().iter().map(|run| (run.trace.clone(), answers(world.store(), run))).collect()
}

on_both! {
    fn folding_keeps_the_first_the_last_and_the_slowest(world) {
        for number in 0..30 {
            let mut call = simple(&format!("t-{number:02}"), "eu").at(NOON + number * 60 * SECOND);
            call.took = if number == 17 { 9000 } else { 1000 };
            world.record(&[call]);
        }
        world.ledger.close_all().unwrap();
        let before = all_answers(world);
        let size: i64 = world.store().tallies(0, i64::MAX).unwrap().iter().map(|tally| tally.runs).sum();
        assert_eq!(size, 30);
        // The hour is not over.
        assert_eq!(world.sweep(&forever(), NOON + HOUR), 0);
        assert_eq!(world.sweep(&forever(), NOON + 3 * HOUR), 26);
        let kept: Vec<_> = world.runs().into_iter().map(|run| run.trace).collect();
        assert_eq!(kept, ["t-29", "t-17", "t-01", "t-00"]);
        let owner = world.runs()[0].owner.id;
        let folds = world.store().folds(owner).unwrap();
        assert_eq!((folds.len(), folds[0].runs, folds[0].took), (1, 26, 26_000));
        assert_eq!(world.found("t-17").id, folds[0].slowest);
        let counted: i64 = world.store().tallies(0, i64::MAX).unwrap().iter().map(|tally| tally.runs).sum();
        assert_eq!(counted, 30);
        let before: Vec<_> = before.into_iter().filter(|(trace, _)| kept.contains(trace)).collect();
        assert_eq!(all_answers(world), before);
        // Once more changes nothing.
        assert_eq!(world.sweep(&forever(), NOON + 4 * HOUR), 0);
        world.restart();
        assert_eq!(all_answers(world), before);
    }

    /// What the versions of all slots say about a run is what its steps were given and answered.
    fn the_state_at_every_run_is_what_the_run_had(world) {
        history(world, 80, 60 * SECOND, 11);
        let store = world.store();
        let mut seen = 0;
        for run in world.runs() {
            let step = store.steps(run.id).unwrap().remove(0);
            let exchange = store.exchange(step.exchange.unwrap()).unwrap().unwrap();
            let (request, response) = (exchange.request.unwrap(), exchange.response.unwrap());
            let mut sides = vec![(Side::Observed, &request.json().unwrap()["observed"])];
            if !run.outcome.is_failure() {
                sides.push((Side::Desired, &response.json().unwrap()["desired"]));
            }
            for (side, state) in sides {
                let mut expected = BTreeMap::new();
                if let Some(composite) = state.pointer("/composite/resource") {
                    expected.insert(String::new(), composite.clone());
                }
                for (name, resource) in state["resources"].as_object().unwrap() {
                    expected.insert(name.clone(), resource["resource"].clone());
                }
                let mut found = BTreeMap::new();
                for slot in store.slots(run.owner.id).unwrap() {
                    let version = store.version_at(slot.id, side, run.id).unwrap();
                    if let Some(body) = version.and_then(|version| version.body) {
                        found.insert(slot.name, store.body(body).unwrap());
                    }
                }
                assert_eq!(found, expected, "{} {side:?}", run.trace);
                seen += found.len();
            }
        }
        assert!(seen > 200, "{seen}");
    }

    fn retention_changes_no_answer_about_what_is_kept(world) {
        for seed in [1, 2] {
            history(world, 60, 600 * SECOND, seed);
        }
        let before = all_answers(world);
        let end = NOON + 60 * 600 * SECOND;
        let mut kept = usize::MAX;
        for hours in [8, 6, 3, 1] {
            let retention = Retention { runs_for: hours * HOUR, ..forever() };
            world.sweep(&retention, end);
            // Content goes in a later hour, when its own is over.
            world.sweep(&retention, end + 1);
            let after = all_answers(world);
            assert!(after.len() < kept && !after.is_empty(), "{hours}: {}", after.len());
            kept = after.len();
            for answer in after {
                assert!(before.contains(&answer), "{hours} h: {}", answer.1);
            }
        }
    }

    fn content_that_nothing_needs_goes(world) {
        history(world, 100, 600 * SECOND, 3);
        world.ledger.append(&[super::world::change(
            biplane_proto::json::from_value(json!({"name": "db", "snapshot": {"text": "y".repeat(5000)}})).unwrap(),
            NOON,
        )]).unwrap();
        let end = NOON + 100 * 600 * SECOND;
        let retention = Retention { runs_for: HOUR, ..forever() };
        world.sweep(&retention, end + 48 * HOUR);
        assert_eq!(world.runs(), []);
        world.sweep(&retention, end + 50 * HOUR);
        // The owners are gone with their slots, and the snapshot is still there.
        let store = world.store();
        let owners = store.objects(Some("Store"), None, None, None).unwrap();
        assert!(owners.iter().all(|owner| store.slots(owner.id).unwrap().is_empty()));
        assert_eq!(store.verify().unwrap()[0].broken, []);
        let changes = Retention { changes_for: HOUR, ..retention };
        world.sweep(&changes, end + 52 * HOUR);
        world.sweep(&changes, end + 54 * HOUR);
        assert_eq!(count(world, "blob"), 0);
        assert_eq!(count(world, "exchange"), 0);
        assert_eq!(count(world, "message"), 0);
        assert_eq!(count(world, "version"), 0);
        // And a new run is stored as if nothing had been.
        world.run(&[simple("new", "eu").at(end + 60 * HOUR)]);
        assert!(answers(world.store(), &world.found("new")).contains("north-1"));
    }

    fn an_owner_keeps_its_last_runs(world) {
        for number in 0..30 {
            let region = format!("r{number}");
            world.record(&[simple(&format!("t-{number:02}"), &region).at(NOON + number * SECOND)]);
            let mut other = simple(&format!("u-{number:02}"), &format!("r{}", number % 2)).at(NOON + number * SECOND);
            other.name = "quiet".into();
            if number < 5 {
                world.record(&[other]);
            }
        }
        world.ledger.close_all().unwrap();
        let before = all_answers(world);
        let retention = Retention { per_owner: 10, ..forever() };
        world.sweep(&retention, NOON + 60 * SECOND);
        let runs = world.runs();
        let of = |prefix: &str| runs.iter().filter(|run| run.trace.starts_with(prefix)).count();
        assert_eq!((of("t-"), of("u-")), (10, 5));
        assert_eq!(runs[0].trace, "t-29");
        for answer in all_answers(world) {
            assert!(before.contains(&answer));
        }
    }

    fn a_store_that_is_too_large_loses_its_oldest_runs(world) {
        history(world, 40, 600 * SECOND, 4);
        let newest = world.runs()[0].trace.clone();
        let retention = Retention { size: 1, ..forever() };
        let swept = world.ledger.sweep(&retention, NOON + 10 * HOUR).unwrap();
        assert!(swept.runs > 0);
        let left = world.runs();
        assert!(left.is_empty() || left[0].trace == newest);
    }
}

fn count(world: &World, table: &str) -> i64 {
    Raw::open(&world.location).number(&format!("SELECT count(*) FROM {table}"))
}

#[test]
fn a_history_is_the_same_for_the_same_seed() {
    let bodies = |seed| {
        let mut world = World::in_a_file();
        history(&mut world, 20, SECOND, seed);
        all_answers(&world)
    };
    assert_eq!(bodies(5), bodies(5));
    assert_ne!(bodies(5), bodies(6));
}
