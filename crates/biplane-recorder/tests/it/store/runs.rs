//! Runs: when they end and how, what is the same, and how they are found.

use std::time::{Duration, Instant};

use biplane_proto::redact::Mode;
use biplane_recorder::store::rows::{After, Found, Outcome, RunFilter, RunFlags, Side};
use biplane_recorder::store::{HalfRecord, SILENCE};
use serde_json::{Value, json};

use super::world::{
    Call, NOON, SECOND, World, bucket, halves, on_both, open, options, redactor, simple, xr,
};

fn result(severity: &str, message: &str) -> Value {
    json!({"results": [{"severity": severity, "message": message}]})
}

fn three(trace: &str) -> Vec<Call> {
    (0..3)
        .map(|index| {
            Call::new(trace, index, json!({}), json!({})).at(NOON + i64::from(index) * 10_000)
        })
        .collect()
}

fn flags(change: impl FnOnce(&mut RunFlags)) -> RunFlags {
    let mut flags = RunFlags::default();
    change(&mut flags);
    flags
}

#[test]
fn numbers_of_steps_that_no_pipeline_has_are_refused() {
    let redactor = redactor(Mode::Deep);
    for index in [1001, i32::MAX] {
        let call = Call::new("trace", index, json!({}), json!({}));
        for emission in call.emissions() {
            let payload = redactor.line_payload(emission.half, &emission.payload, false);
            let half = HalfRecord::new(&emission, payload, NOON, Some(Instant::now()));
            assert!(half.err() == Some(biplane_recorder::store::Unusable::Step), "{index}");
        }
    }
}

on_both! {
    /// Times and durations come from outside.
    fn the_largest_numbers_are_endured(world) {
        let mut calls = three("trace");
        calls[0].took = i64::MAX;
        calls[1].at = i64::MAX / 2;
        calls[2].at = 0;
        let run = world.run(&calls);
        assert!(!run.open && run.took >= 0, "{run:?}");
        world.restart();
        assert!(world.store().run_by_id(run.id).unwrap().is_some());
    }

    /// INS-N3
    fn the_outcome_is_the_worst_of_the_steps(world) {
        let mut number = 0;
        let mut outcome = |world: &mut World, change: &dyn Fn(&mut Vec<Call>)| {
            number += 1;
            let mut calls = three(&format!("trace-{number}"));
            for call in &mut calls {
                call.name = format!("xr-{number}");
            }
            change(&mut calls);
            let run = world.run(&calls);
            assert!(!run.open);
            (run.outcome, run.flags)
        };
        let none = RunFlags::default();
        assert_eq!(outcome(world, &|_| {}), (Outcome::Ok, none));
        let warning = |calls: &mut Vec<Call>| calls[1].response = Some(result("SEVERITY_WARNING", "w"));
        assert_eq!(outcome(world, &warning), (Outcome::Warning, none));
        let fatal = |calls: &mut Vec<Call>| {
            calls[1].response = Some(result("SEVERITY_FATAL", "f"));
            calls.truncate(2);
        };
        assert_eq!(outcome(world, &fatal), (Outcome::Fatal, none));
        let error = |calls: &mut Vec<Call>| {
            calls[1].response = Some(Value::Null);
            calls[1].error = "it did not answer".into();
            calls.truncate(2);
        };
        assert_eq!(outcome(world, &error), (Outcome::Error, none));
        let no_answer = |calls: &mut Vec<Call>| {
            calls[1].response = None;
            calls.truncate(2);
        };
        let expected = (Outcome::Incomplete, flags(|f| f.no_answer = true));
        assert_eq!(outcome(world, &no_answer), expected);
        let gap = |calls: &mut Vec<Call>| drop(calls.remove(1));
        assert_eq!(outcome(world, &gap), (Outcome::Incomplete, flags(|f| f.gap = true)));
    }

    fn a_run_ends_with_its_last_step_once_the_pipeline_is_known(world) {
        world.record(&three("a")[..2]);
        assert!(world.found("a").open);
        world.record(&three("a")[2..]);
        // It could have more steps.
        assert!(world.found("a").open);
        // The next run ends it.
        world.record(&three("b")[..1]);
        let run = world.found("a");
        assert_eq!((run.open, run.outcome, run.steps, run.took), (false, Outcome::Ok, 3, 21_000));
        assert!(world.found("b").open);
        world.record(&three("b")[1..]);
        let run = world.found("b");
        assert_eq!((run.open, run.outcome, run.same), (false, Outcome::Ok, true));
        let steps = world.store().steps(run.id).unwrap();
        let names: Vec<_> = steps.iter().map(|s| (s.step.as_str(), s.function.as_str())).collect();
        assert_eq!(names, [("step-0", "function-0"), ("step-1", "function-1"), ("step-2", "function-2")]);
        assert_eq!((steps[1].took, steps[1].exact, steps[1].nanos), (Some(1000), true, 7));
        assert_eq!((steps[1].started, steps[1].span.as_str()), (NOON + 10_000, "b-1"));
    }

    fn a_run_that_is_silent_for_long_ends(world) {
        world.record(&three("a")[..1]);
        let begun = Instant::now();
        world.ledger.close_silent(begun + SILENCE / 2).unwrap();
        assert!(world.found("a").open);
        world.ledger.close_silent(begun + SILENCE + Duration::from_secs(10)).unwrap();
        assert!(!world.found("a").open);
        // What comes late opens it again.
        world.record(&three("a")[1..]);
        world.ledger.close_all().unwrap();
        let run = world.found("a");
        assert_eq!((run.open, run.outcome, run.steps), (false, Outcome::Ok, 3));
        let counted: i64 =
            world.store().tallies(0, i64::MAX).unwrap().iter().map(|tally| tally.runs).sum();
        assert_eq!(counted, 1);
    }

    fn the_steps_that_were_not_reached_are_known(world) {
        world.run(&three("a"));
        let mut calls = three("b");
        calls[1].response = Some(result("SEVERITY_FATAL", "it broke"));
        world.record(&calls[..2]);
        let run = world.found("b");
        assert_eq!((run.open, run.outcome, run.steps), (false, Outcome::Fatal, 3));
        assert_eq!(world.store().steps(run.id).unwrap().len(), 2);
        let pipeline = world.store().pipeline(run.pipeline).unwrap();
        assert_eq!(pipeline[2].step, "step-2");
        let exchange = world.store().steps(run.id).unwrap()[1].exchange.unwrap();
        let exchange = world.store().exchange(exchange).unwrap().unwrap();
        assert_eq!((exchange.severity, exchange.results[0].message.as_str()), (1, "it broke"));
        // Words are found on both databases.
        let words = world.store().search_words("broke it");
        let filter = RunFilter { words: Some(words), ..RunFilter::default() };
        let found = world.store().runs(&filter, 10, None).unwrap();
        assert_eq!(found.iter().map(|run| run.trace.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(world.store().messages("broke", 10).unwrap(), ["it broke"]);
    }

    fn a_run_that_stops_early_is_incomplete_and_a_pipeline_may_become_shorter(world) {
        world.run(&three("a"));
        let short = |trace: &str| three(trace)[..2].to_vec();
        let run = world.run(&short("b"));
        assert_eq!((run.outcome, run.steps), (Outcome::Incomplete, 3));
        assert_eq!(run.flags, flags(|f| f.gap = true));
        let run = world.run(&short("c"));
        assert_eq!((run.outcome, run.steps), (Outcome::Ok, 2));
        world.record(&short("d"));
        let run = world.found("d");
        assert_eq!((run.open, run.same, run.steps), (false, true, 2));
    }

    fn halves_come_in_any_order_and_in_batches_of_their_own(world) {
        let mut all = halves(&three("a"));
        all.swap(0, 1);
        all.swap(2, 5);
        for half in all {
            world.ledger.record(&[half], Instant::now()).unwrap();
        }
        world.ledger.close_all().unwrap();
        let run = world.found("a");
        assert_eq!((run.outcome, run.flags), (Outcome::Ok, RunFlags::default()));
        // The same exchanges as those of a run that came in one piece.
        let again = world.run(&three("b"));
        assert!(again.same);
    }

    fn a_response_without_a_request_is_told(world) {
        let all = halves(&three("a")[..1]);
        world.ledger.record(&all[1..], Instant::now()).unwrap();
        world.ledger.close_all().unwrap();
        let run = world.found("a");
        assert_eq!(run.outcome, Outcome::Incomplete);
        assert_eq!(run.flags, flags(|f| f.no_request = true));
        let step = world.store().steps(run.id).unwrap().remove(0);
        let exchange = world.store().exchange(step.exchange.unwrap()).unwrap().unwrap();
        assert_eq!(exchange.request, None);
        assert_eq!(exchange.response.unwrap().json(), Some(&json!({})));
    }

    fn a_restart_closes_what_was_open_and_what_comes_late_is_added(world) {
        let mut calls = three("a");
        let answer = calls[1].response.take();
        world.record(&calls[..2]);
        world.restart();
        let run = world.found("a");
        assert_eq!((run.open, run.outcome), (false, Outcome::Incomplete));
        assert_eq!(run.flags, flags(|f| { f.no_answer = true; f.cut_off = true; }));
        calls[1].response = answer;
        let late = halves(&calls[1..2]).remove(1);
        world.ledger.record(&[late], Instant::now()).unwrap();
        world.record(&calls[2..]);
        world.ledger.close_all().unwrap();
        let run = world.found("a");
        assert_eq!((run.outcome, run.flags.no_answer), (Outcome::Ok, false));
        let step = &world.store().steps(run.id).unwrap()[1];
        let exchange = world.store().exchange(step.exchange.unwrap()).unwrap().unwrap();
        assert!(exchange.request.is_some() && exchange.response.is_some());
    }

    fn lost_events_of_a_run_are_told(world) {
        world.record(&three("a")[..2]);
        world.ledger.lost_of("a", Instant::now()).unwrap();
        let run = world.found("a");
        assert_eq!((run.outcome, run.flags), (Outcome::Incomplete, flags(|f| f.gap = true)));
        world.ledger.lost_of("unknown", Instant::now()).unwrap();
        world.ledger.lose((NOON, NOON + SECOND), "queue full", 3, 900).unwrap();
        let losses = world.store().losses(NOON, NOON + 1).unwrap();
        assert_eq!(losses.len(), 1);
        assert_eq!((losses[0].emissions, losses[0].bytes, losses[0].reason.as_str()), (3, 900, "queue full"));
        assert_eq!(world.store().losses(NOON + 2 * SECOND, i64::MAX).unwrap(), []);
    }

    fn versions_fields_and_links_follow_what_changes(world) {
        let observed = |region: &str, resources: Value| json!({
            "observed": {
                "composite": {"resource": {
                    "apiVersion": "example.org/v1", "kind": "Store",
                    "metadata": {
                        "name": "north", "namespace": "shop", "uid": "uid-north",
                        "labels": {"team": "a", "crossplane.io/claim-name": "my"},
                        "ownerReferences": [{"apiVersion": "example.org/v1", "kind": "Mall", "name": "big", "uid": "u", "controller": true}],
                    },
                    "spec": {"region": region, "claimRef": {"apiVersion": "example.org/v1", "kind": "StoreClaim", "namespace": "shop", "name": "my"}},
                }},
                "resources": resources,
            },
            "requiredResources": {"config": {"items": [{"resource": {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "eu", "namespace": "shop"},
            }}]}, "nothing": {}},
        });
        let desired = |region: &str| json!({"desired": {"resources": {"bucket": {"resource": bucket("north-1", region)}}}});
        world.run(&[Call::new("a", 0, observed("eu", json!({})), desired("eu"))]);
        let there = json!({"bucket": {"resource": bucket("north-1", "eu")}});
        let second = world.run(&[Call::new("b", 0, observed("us", there.clone()), desired("us")).at(NOON + SECOND)]);
        world.run(&[Call::new("c", 0, observed("us", there), json!({})).at(NOON + 2 * SECOND)]);

        let store = world.store();
        let owner = store.objects(Some("store"), None, Some("shop"), Some("north")).unwrap().remove(0);
        assert_eq!((owner.uid.as_str(), owner.group.as_str()), ("uid-north", "example.org"));
        assert_eq!(store.object(owner.parent.unwrap()).unwrap().unwrap().kind, "Mall");
        assert_eq!(store.object(owner.claim.unwrap()).unwrap().unwrap().kind, "StoreClaim");
        assert_eq!(store.labels(owner.id).unwrap()[1], ("team".to_owned(), "a".to_owned()));
        let slots = store.slots(owner.id).unwrap();
        assert_eq!(slots.iter().map(|slot| slot.name.as_str()).collect::<Vec<_>>(), ["", "bucket"]);
        let bucket_object = store.object_by_uid("uid-north-1").unwrap().unwrap();
        assert_eq!(slots[1].object, Some(bucket_object.id));
        assert_eq!(bucket_object.parent, Some(owner.id));
        assert_eq!(store.slots_of_object(bucket_object.id).unwrap(), [slots[1].clone()]);

        let versions = store.versions(slots[1].id, Side::Desired).unwrap();
        assert_eq!(versions.iter().map(|v| v.body.is_some()).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(store.body(versions[1].body.unwrap()).unwrap(), bucket("north-1", "us"));
        assert_eq!(store.versions(slots[1].id, Side::Observed).unwrap().len(), 1);
        let fields = store.fields_of_run(second.id).unwrap();
        let fields: Vec<_> = fields
            .iter()
            .map(|f| (f.slot, f.side, f.path.as_str(), f.before.as_deref(), f.after.as_deref()))
            .collect();
        assert_eq!(fields, [(slots[1].id, Side::Desired, "spec.forProvider.region", Some("\"eu\""), Some("\"us\""))]);
        let needs = store.needs(owner.id).unwrap();
        assert_eq!((needs.len(), needs[0].name.as_str(), needs[0].object.name.as_str()), (1, "config", "eu"));
        assert_eq!(store.needed_by(needs[0].object.id).unwrap()[0].owner, owner.id);
    }

    fn lists_are_filtered_and_continue_by_key(world) {
        for number in 0..20 {
            let mut call = simple(&format!("t-{number:02}"), &format!("r{}", number % 7)).at(NOON + number * SECOND);
            if number % 5 == 0 {
                call.response = Some(result("SEVERITY_FATAL", "no"));
            }
            call.name = format!("xr-{}", number % 2);
            world.run(&[call]);
        }
        let store = world.store();
        let traces = |filter: &RunFilter, limit, after| {
            let runs = store.runs(filter, limit, after).unwrap();
            (runs.iter().map(|run| run.trace.clone()).collect::<Vec<_>>(), runs)
        };
        let (all, _) = traces(&RunFilter::default(), 100, None);
        let expected: Vec<String> = (0..20).rev().map(|n| format!("t-{n:02}")).collect();
        assert_eq!(all, expected);
        for filter in [
            RunFilter::default(),
            RunFilter { kind: Some("store".into()), ..RunFilter::default() },
            RunFilter { function: Some("function-0".into()), ..RunFilter::default() },
            RunFilter { composition: Some("stores".into()), namespace: Some("shop".into()), ..RunFilter::default() },
        ] {
            let mut paged = Vec::new();
            let mut after = None;
            loop {
                let (page, rows) = traces(&filter, 3, after);
                let Some(last) = rows.last() else { break };
                after = Some(After { at: last.started, id: last.id });
                paged.extend(page);
            }
            assert_eq!(paged, expected, "{filter:?}");
        }
        let failed = RunFilter { outcomes: vec![Outcome::Fatal], ..RunFilter::default() };
        assert_eq!(traces(&failed, 100, None).0, ["t-15", "t-10", "t-05", "t-00"]);
        let one = RunFilter { name: Some("xr-1".into()), since: Some(NOON + 10 * SECOND), until: Some(NOON + 14 * SECOND), ..RunFilter::default() };
        assert_eq!(traces(&one, 100, None).0, ["t-13", "t-11"]);
        let none = RunFilter { kind: Some("Mall".into()), ..RunFilter::default() };
        assert_eq!(traces(&none, 100, None).0, Vec::<String>::new());
        let run = world.found("t-07");
        assert_eq!(store.run_before(&run).unwrap().unwrap().trace, "t-05");
        assert_eq!(store.run_after(&run).unwrap().unwrap().trace, "t-09");
    }

    fn a_run_is_found_by_the_beginning_of_its_trace(world) {
        let first = "a3aba73d-78e3-4933-9791-319f264d679a";
        let second = "a3abffff-78e3-4933-9791-319f264d679a";
        world.run(&[simple(first, "eu")]);
        world.run(&[simple(second, "us")]);
        for prefix in [first, "a3aba", "A3ABA73D78E3"] {
            let Found::One(run) = world.store().run(prefix).unwrap() else { panic!("{prefix}") };
            assert_eq!(run.trace, first);
        }
        let Found::Many(both) = world.store().run("a3ab").unwrap() else { panic!() };
        assert_eq!(both.len(), 2);
        assert_eq!(world.store().run("b").unwrap(), Found::None);
        assert_eq!(world.store().run("north").unwrap(), Found::None);
    }

    fn runs_that_did_not_fail_can_be_left_out(world) {
        let mut options = options();
        options.failures_only = true;
        world.ledger = open(&world.location, options);
        world.record(&[simple("a", "eu")]);
        world.record(&[simple("b", "eu")]);
        let mut call = simple("c", "us");
        call.response = Some(result("SEVERITY_FATAL", "no"));
        world.record(&[call]);
        world.ledger.close_all().unwrap();
        let traces: Vec<_> = world.runs().into_iter().map(|run| run.trace).collect();
        assert_eq!(traces, ["c"]);
        let counted: i64 =
            world.store().tallies(0, i64::MAX).unwrap().iter().map(|tally| tally.runs).sum();
        assert_eq!(counted, 3);
    }

    /// A text that PostgreSQL cannot have must not lose the rest.
    fn strange_texts_are_stored(world) {
        let message = "a\0b \u{1f600} \u{202e}";
        let request = json!({"observed": {"composite": {"resource": xr("north", &json!({"t": message}))}}});
        let run = world.run(&[Call::new("a", 0, request.clone(), result("SEVERITY_NORMAL", message))]);
        let step = world.store().steps(run.id).unwrap().remove(0);
        let exchange = world.store().exchange(step.exchange.unwrap()).unwrap().unwrap();
        assert_eq!(exchange.request.unwrap().json(), Some(&request));
        assert!(exchange.results[0].message.contains('\u{1f600}'));
    }
}
