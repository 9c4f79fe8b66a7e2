//! What was the case at a time, and what differs between two times.

use std::collections::BTreeMap;

use biplane_recorder::query::answer::{Answer, At, AtItem, Diff};
use biplane_recorder::query::archive::{Archive, ChangeFilter, RunFilter};
use biplane_recorder::query::ask::{self, Question};
use biplane_recorder::query::print::{self, Options};
use biplane_recorder::query::record::Head;
use biplane_recorder::query::stored::Stored;
use biplane_recorder::store::Retention;
use serde_json::{Value, json};

use crate::store::world::{Call, NOON, SECOND, forever, on_both};
use crate::story::{Honest, Scene, Story, Told, bucket, entry, existing, named, now};

fn time(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

/// A store whose bucket is created, found, moved, and then a run fails.
fn story() -> Story {
    let first = Scene { ready: Vec::new(), ..Scene::new("aaaa0000", 0) };
    let observed =
        json!({"bucket": existing("north-1", "eu"), "replica": existing("north-2", "us")});
    let second = Scene { observed: observed.clone(), ..Scene::new("bbbb0000", 60) };
    let mut third = Scene { observed: observed.clone(), ..Scene::new("cccc0000", 120) };
    third.spec["region"] = "ap".into();
    third.desired = json!({"bucket": bucket("ap")});
    let mut fourth = Scene { observed, ..Scene::new("dddd0000", 180) };
    fourth.spec["region"] = "moon".into();
    fourth.observed = json!({"bucket": existing("north-1", "ap")});
    let mut story = Story::of(&[first, second, third, fourth]);
    story.runs[3].truncate(2);
    story.runs[3][1].response =
        Some(json!({"results": [{"severity": "SEVERITY_FATAL", "message": "no such region"}]}));
    story.changes.push(entry("north-1", 5, "CREATE", None));
    story.changes.push(entry("north-1", 125, "UPDATE", Some("AccessDenied")));
    story
}

fn at(told: &Told, when: &str) -> At {
    let question = Question::At { of: named("Store/north"), at: time(when) };
    match told.ask(&question).unwrap() {
        Answer::At(at) => *at,
        other => panic!("{other:?}"),
    }
}

fn diff(told: &Told, from: &str, to: &str, observed: bool) -> Diff {
    let of = named("Store/north");
    let question = Question::DiffAt { of, from: time(from), to: time(to), observed };
    match told.ask(&question).unwrap() {
        Answer::Diff(diff) => diff,
        other => panic!("{other:?}"),
    }
}

/// Name, whether it is observed and desired, its readiness, and how many fields differ.
fn rows(at: &At) -> Vec<(&str, bool, bool, &str, usize)> {
    let row = |item: &AtItem| (item.observed.is_some(), item.desired.is_some());
    at.resources
        .iter()
        .map(|item| {
            let (observed, desired) = row(item);
            (item.label(), observed, desired, item.ready.as_str(), item.differs.len())
        })
        .collect()
}

#[test]
fn the_state_at_a_time_is_that_of_the_last_run_before() {
    let told = story().told();
    let found = at(&told, "2027-01-15T08:00:30Z");
    assert_eq!(found.run.run, "aaaa0000");
    assert_eq!(
        rows(&found),
        [
            ("composite", true, false, "", 0),
            ("bucket", false, true, "unspecified", 0),
            ("replica", false, true, "unspecified", 0),
        ]
    );
    assert_eq!(
        found.sentence,
        "2 composed resources desired, 0 observed, 0 ready, as run aaaa0000 of 2027-01-15 08:00:00 tells. \
         The next run was bbbb0000 at 2027-01-15 08:01:00."
    );
    assert_eq!(found.resources[1].last_change.as_ref().map(|c| c.id.as_str()), None);

    let found = at(&told, "2027-01-15T08:01:59.9Z");
    assert_eq!(found.run.run, "bbbb0000");
    let bucket = &found.resources[1];
    assert_eq!(bucket.object.name, "north-1");
    assert_eq!(bucket.observed_since.as_ref().unwrap().run, "bbbb0000");
    assert_eq!(bucket.desired_since.as_ref().unwrap().run, "aaaa0000");
    assert_eq!(bucket.last_change.as_ref().unwrap().operation, "create");
    assert_eq!(bucket.ready, "true");

    // A run that failed observed something; what is desired is older.
    let found = at(&told, "2027-01-15T09:00:00Z");
    assert_eq!(
        (found.run.run.as_str(), found.desired_run.as_deref()),
        ("dddd0000", Some("cccc0000"))
    );
    assert_eq!(
        rows(&found),
        [("composite", true, false, "", 0), ("bucket", true, true, "true", 0)]
    );
    assert_eq!(
        found.sentence,
        "1 composed resource desired, 1 observed, 1 ready, as run dddd0000 of 2027-01-15 08:03:00 tells. \
         That run did not get to its end; what was desired is as in run cccc0000 of 2027-01-15 08:02:00."
    );
    let bucket = &found.resources[1];
    assert_eq!(bucket.last_change.as_ref().unwrap().error.as_deref(), Some("AccessDenied"));

    // What is desired and not yet so.
    let found = at(&told, "2027-01-15T08:02:01Z");
    let differs: Vec<_> = found.resources[1].differs.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(differs, ["spec.forProvider.region"]);

    let question = Question::At { of: named("Store/north"), at: time("2027-01-15T07:00:00Z") };
    let want = "no run of Store/north is kept that had begun at 2027-01-15T07:00:00Z";
    assert_eq!(told.ask(&question).unwrap_err().to_string(), want);
    let question = Question::At { of: named("aaaa0000"), at: time("2027-01-15T07:00:00Z") };
    let want = "expected a composite resource such as Store/north, not a run";
    assert_eq!(told.ask(&question).unwrap_err().to_string(), want);
}

#[test]
fn two_times_are_compared() {
    let told = story().told();
    let (first, later) = ("2027-01-15T08:00:01Z", "2027-01-15T09:00:00Z");
    let found = diff(&told, first, later, false);
    assert!(found.differs);
    assert_eq!(found.before, "2027-01-15 08:00:01 (aaaa0000)");
    assert_eq!(found.after, "2027-01-15 09:00:00 (cccc0000)");
    assert_eq!(found.sentence, "Changed bucket (1 field), removed replica.");
    let found = diff(&told, first, later, true);
    assert_eq!(found.after, "2027-01-15 09:00:00 (dddd0000)");
    assert_eq!(found.sentence, "Changed composite (1 field), added bucket.");
    assert!(!diff(&told, later, later, false).differs);
}

#[test]
fn times_read_as_they_are_written_down() {
    let told = story().told();
    let mut settings = insta::Settings::clone_current();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let (first, later) = ("2027-01-15T08:02:01Z", "2027-01-15T09:00:00Z");
    for (name, answer) in [
        ("at", Answer::At(Box::new(at(&told, first)))),
        ("diff-at", Answer::Diff(diff(&told, first, later, true))),
    ] {
        for form in ["table", "wide", "json", "yaml", "name", "md"] {
            let options = Options { format: form.parse().unwrap(), bookkeeping: false };
            let printed = print::print(&answer, options);
            settings.bind(|| insta::assert_snapshot!(format!("{name}.{form}"), printed));
        }
    }
}

/// The resources of a state by name, without what else a state says of them.
fn bodies(state: &Value) -> BTreeMap<String, Value> {
    let composite = state.get("composite").map(|slot| (String::new(), slot));
    let composed = state.get("resources").and_then(Value::as_object);
    let composed = composed.into_iter().flatten().map(|(name, slot)| (name.clone(), slot));
    let all = composite.into_iter().chain(composed);
    let body = |slot: &Value| whole(slot["resource"].clone());
    all.map(|(name, slot)| (name, body(slot))).collect()
}

/// A document whose numbers are all floating point.
pub(crate) fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, whole(value))).collect()
        }
        value => value,
    }
}

/// What can be asked about the kept runs of an owner, by run.
fn answers(store: &Stored, owner: &str) -> BTreeMap<String, Vec<Value>> {
    let filter = RunFilter { name: Some(owner.to_owned()), ..RunFilter::default() };
    let heads = store.runs(&filter, 1000, None).unwrap();
    let ask = |question: Question| print::value(&ask::answer(store, &question, now()).unwrap());
    let mut found = BTreeMap::new();
    for head in &heads {
        let of = named(&format!("Store/{owner}"));
        let mut at = ask(Question::At { of, at: head.started });
        // Which runs are beside it is what may differ.
        at.as_object_mut().unwrap().retain(|key, _| key == "resources");
        let steps = ask(Question::Steps(named(&head.trace)));
        let blame = ask(Question::Blame(named(&head.trace)));
        found.insert(head.trace.clone(), vec![at, steps, blame]);
    }
    found
}

/// An answer in which nothing is older than what is kept: ages that end at its beginning are `earlier`.
/// `observed` and `desired` are the oldest kept run, and the oldest that got to its end.
fn within(value: &Value, [observed, desired]: [jiff::Timestamp; 2]) -> Value {
    let age = |name: &str, since: &Value| {
        let oldest = if name == "observedSince" { observed } else { desired };
        let is_earlier =
            since["orEarlier"] == true || time(since["at"].as_str().unwrap()) <= oldest;
        if is_earlier { json!("earlier") } else { since.clone() }
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let is_age = ["since", "observedSince", "desiredSince"].contains(&name.as_str());
                let kept = [observed, desired];
                (name.clone(), if is_age { age(name, value) } else { within(value, kept) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| within(item, [observed, desired])).collect(),
        value => value.clone(),
    }
}

/// How many ages are known to begin earlier than what is kept.
fn count_earlier(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            usize::from(value["orEarlier"] == true)
                + fields.values().map(count_earlier).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(count_earlier).sum(),
        _ => 0,
    }
}

on_both! {
    /// Retention changes no answer about what is kept, but that it says where its knowledge ends.
    fn retention_changes_no_answer_about_what_is_kept(world) {
        let mut honest = Honest::new(21);
        let runs = (0..60).map(|number| honest.run("one", number)).collect();
        let store = Story { runs, ..Story::default() }.tell(world);
        let before = answers(&store, "one");
        let end = NOON + 60 * 60 * SECOND;
        for minutes in [40, 20, 5] {
            let retention = Retention { runs_for: minutes * 60 * SECOND, ..forever() };
            world.sweep(&retention, end);
            let after = answers(&store, "one");
            assert!(!after.is_empty() && after.len() < before.len());
            let filter = RunFilter { name: Some("one".to_owned()), ..RunFilter::default() };
            let heads = store.runs(&filter, 1000, None).unwrap();
            let oldest = |heads: &mut dyn Iterator<Item = &Head>| heads.map(|h| h.started).min();
            let observed = oldest(&mut heads.iter()).unwrap();
            let ended = oldest(&mut heads.iter().filter(|head| !head.outcome.is_failure()));
            let kept = [observed, ended.unwrap_or(observed)];
            let mut earlier = 0;
            for (trace, answers) in &after {
                for (after, before) in answers.iter().zip(&before[trace]) {
                    assert_eq!(within(after, kept), within(before, kept), "{trace}");
                    assert_eq!(count_earlier(before), 0, "{trace}");
                    earlier += count_earlier(after);
                }
            }
            assert!(earlier > 0);
        }
    }

    /// A run that is older than what is kept has decided what a provider did.
    fn a_change_that_belongs_to_no_kept_run_is_not_linked(world) {
        let first = Scene::new("aaaa0000", 0);
        let mut second = Scene::new("bbbb0000", 60);
        second.spec["note"] = "something else".into();
        let observed = json!({"bucket": existing("north-1", "eu")});
        let scenes = [first, second].map(|scene| Scene { observed: observed.clone(), ..scene });
        let mut story = Story::of(&scenes);
        story.changes.push(entry("north-1", 5, "CREATE", None));
        story.changes.push(entry("north-1", 130, "UPDATE", None));
        let store = story.tell(world);
        let linked = || {
            let changes = store.changes(&ChangeFilter::default(), 10, None).unwrap();
            let items = ask::change_items(&store, &changes).unwrap();
            items.into_iter().map(|item| item.link.map(|link| link.run)).collect::<Vec<_>>()
        };
        assert_eq!(linked(), [None, Some("aaaa0000".to_owned())]);
        let retention = Retention { runs_for: 30 * SECOND, ..forever() };
        world.sweep(&retention, NOON + 80 * SECOND);
        assert_eq!(world.runs().len(), 1);
        assert_eq!(linked(), [None, None]);
    }

    /// At each time, what is told is what the last run before had; folding changes nothing of it.
    fn the_state_at_every_run_is_what_the_run_had(world) {
        let mut told: Vec<Vec<Call>> = Vec::new();
        for (name, seed) in [("one", 11), ("two", 12)] {
            let mut honest = Honest::new(seed);
            told.extend((0..90).map(|number| honest.run(name, number)));
        }
        let story = Story { runs: told.clone(), ..Story::default() };
        let store = story.tell(world);
        let mut desired: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
        for calls in &told {
            let (first, last) = (&calls[0], calls.last().unwrap());
            let answered = last.response.as_ref().unwrap();
            if calls.len() == 3 {
                desired.insert(first.name.clone(), bodies(&answered["desired"]));
            }
            let of = named(&format!("Store/{}", first.name));
            let at = jiff::Timestamp::from_microsecond(first.at).unwrap();
            let question = Question::At { of, at };
            let Answer::At(found) = ask::answer(&store, &question, now()).unwrap() else { panic!() };
            assert_eq!(found.run.run, first.trace);
            let mut observed = BTreeMap::new();
            let mut wanted = BTreeMap::new();
            for item in &found.resources {
                let name = item.resource.clone();
                observed.extend(item.observed.clone().map(|body| (name.clone(), whole(body))));
                wanted.extend(item.desired.clone().map(|body| (name, whole(body))));
            }
            assert_eq!(observed, bodies(&first.request["observed"]), "{}", first.trace);
            let none = BTreeMap::new();
            assert_eq!(&wanted, desired.get(&first.name).unwrap_or(&none), "{}", first.trace);
        }
        let before: Vec<_> = ["one", "two"].map(|owner| answers(&store, owner)).into();
        assert!(world.sweep(&forever(), NOON + 86_400 * SECOND) > 20);
        let after: Vec<_> = ["one", "two"].map(|owner| answers(&store, owner)).into();
        for (before, after) in before.iter().zip(&after) {
            assert!(after.len() < before.len());
            for (trace, kept) in after {
                assert_eq!(Some(kept), before.get(trace), "{trace}");
            }
        }
    }
}
