//! What is found in runs: each planted fault, and nothing in honest runs.

use std::collections::BTreeMap;

use biplane_recorder::query::answer::{Answer, WarningDetail, WarningItem};
use biplane_recorder::query::archive::WarningFilter;
use biplane_recorder::query::ask::{self, Question};
use biplane_recorder::query::print::{self, Options};
use biplane_recorder::store::rows::FindingFilter;
use biplane_recorder::store::{Location, Store};
use serde_json::{Value, json};

use crate::queries::{archive, runs};
use crate::store::world::{Call, NOON, SECOND, World, on_both};
use crate::story::{Honest, Scene, Story, Told, bucket, existing, named, now};

fn list(told: &Told, filter: WarningFilter) -> Vec<WarningItem> {
    let question = Question::Warnings { filter, limit: 100, after: None };
    match told.ask(&question).unwrap() {
        Answer::Warnings(list) => list.warnings,
        other => panic!("{other:?}"),
    }
}

fn detail(told: &Told, id: &str) -> WarningDetail {
    match told.ask(&Question::Warning(id.to_owned())).unwrap() {
        Answer::Warning(warning) => *warning,
        other => panic!("{other:?}"),
    }
}

/// The only thing that is found in a story.
fn only(story: &Story) -> WarningDetail {
    let told = story.told();
    let found = list(&told, WarningFilter::default());
    assert_eq!(found.len(), 1, "{found:#?}");
    detail(&told, &found[0].id)
}

fn facts(warning: &WarningDetail) -> Vec<(&str, &str)> {
    warning.facts.iter().map(|fact| (fact.name.as_str(), fact.value.as_str())).collect()
}

/// A number of runs, each changed a little.
fn many(count: usize, change: impl Fn(usize, &mut Scene)) -> Story {
    let traces: Vec<&'static str> =
        (0..count).map(|n| &*Box::leak(format!("aaaa{n:04}").into_boxed_str())).collect();
    let scene = |(at, trace): (usize, &&'static str)| {
        let observed =
            json!({"bucket": existing("north-1", "eu"), "replica": existing("north-2", "us")});
        let seconds = i64::try_from(at).unwrap() * 60;
        let mut scene = Scene { observed, ..Scene::new(trace, seconds) };
        change(at, &mut scene);
        scene
    };
    let scenes: Vec<Scene> = traces.iter().enumerate().map(scene).collect();
    Story::of(&scenes)
}

#[test]
fn a_field_that_somebody_fights_over_is_found() {
    let story = many(6, |at, scene| {
        if at % 2 == 1 {
            let bucket = &mut scene.observed["bucket"];
            bucket["spec"]["forProvider"]["region"] = "us".into();
            bucket["metadata"]["managedFields"] = json!([
                {"manager": "console", "fieldsV1": {"f:spec": {"f:forProvider": {"f:region": {}}}}},
                {"manager": "apiextensions.crossplane.io/composed/x",
                    "fieldsV1": {"f:spec": {"f:forProvider": {"f:size": {}}}}},
            ]);
        }
    });
    let found = only(&story);
    assert_eq!(
        found.item.sentence,
        "spec.forProvider.region of bucket goes back and forth: the pipeline wants \"eu\", console sets \"us\"."
    );
    let item = &found.item;
    assert_eq!((item.kind.as_str(), item.resource.as_deref()), ("flapping", Some("bucket")));
    assert_eq!((item.first_run.as_str(), item.last_run.as_str()), ("aaaa0003", "aaaa0005"));
    assert_eq!((item.count, item.open), (3, true));
    assert_eq!(
        facts(&found),
        [("desired", "\"eu\""), ("observed", "\"us\""), ("managers", "console")]
    );
    // Whoever wants something else each time does not fight.
    let story = many(8, |at, scene| {
        let region = if at % 2 == 1 { "us" } else { "eu" };
        scene.spec["region"] = region.into();
        scene.desired["bucket"] = bucket(region);
        let before = if at % 2 == 1 { "eu" } else { "us" };
        scene.observed["bucket"]["spec"]["forProvider"]["region"] = before.into();
    });
    assert_eq!(list(&story.told(), WarningFilter::default()), []);
}

#[test]
fn the_same_input_with_another_answer_is_found() {
    let other = |scene: &mut Scene| scene.desired["bucket"] = bucket("random");
    let once = many(8, |at, scene| {
        scene.took = [5, 5, 5];
        if at >= 4 {
            other(scene);
        }
    });
    let found = only(&once);
    assert_eq!(
        found.item.sentence,
        "Step 2, compose, was given the same and answered another bucket, once: same input, different output."
    );
    assert_eq!((found.item.count, found.item.first_run.as_str()), (1, "aaaa0004"));
    assert_eq!(facts(&found)[3], ("runBefore", "aaaa0003"));
    let alternating = many(8, |at, scene| {
        if at % 2 == 1 {
            other(scene);
        }
    });
    let found = only(&alternating);
    assert_eq!(
        found.item.sentence,
        "Step 2, compose, was given the same and answered another bucket, back and forth: same input, different output."
    );
    assert_eq!((found.item.count, found.item.step.as_ref().unwrap().number), (7, 2));
    let random = many(5, |at, scene| scene.desired["bucket"] = bucket(&format!("r{at}")));
    let found = only(&random);
    assert!(found.item.sentence.contains("another bucket, again and again:"), "{found:?}");
    // A new revision of the function may answer something else.
    let replaced = many(8, |at, scene| {
        scene.revision = Some(if at >= 4 { "two" } else { "one" });
        if at >= 4 {
            other(scene);
        }
    });
    assert_eq!(list(&replaced.told(), WarningFilter::default()), []);
    // What returns to an earlier input returns to the earlier answer.
    let returning = many(8, |at, scene| {
        scene.spec["size"] = (at % 2).into();
        scene.desired["bucket"] = bucket(if at % 2 == 1 { "a" } else { "b" });
    });
    assert_eq!(list(&returning.told(), WarningFilter::default()), []);
}

#[test]
fn requirements_that_never_settle_are_found() {
    let mut story = many(3, |_, _| {});
    for run in &mut story.runs {
        run.truncate(1);
        run[0].response = Some(Value::Null);
        run[0].error =
            "requirements didn't stabilize after the maximum number of iterations (5)".into();
    }
    let found = only(&story);
    assert_eq!(
        found.item.sentence,
        "Step 1, env, asked for other resources each time, until the control plane gave up."
    );
    assert_eq!((found.item.count, found.item.open), (3, true));
}

#[test]
fn a_step_that_becomes_slow_is_found_and_ends() {
    let slow = |at: usize, scene: &mut Scene| {
        scene.took[1] = if (20..25).contains(&at) { 2_400_000 } else { 40_000 };
    };
    let found = only(&many(25, slow));
    assert_eq!(found.item.sentence, "Step 2, compose, takes 2.4 s; its median was 40 ms.");
    assert_eq!((found.item.first_run.as_str(), found.item.count), ("aaaa0022", 3));
    assert!(found.item.open);
    assert_eq!(facts(&found), [("took", "2.4 s"), ("median", "40 ms")]);
    let found = only(&many(40, slow));
    assert!(!found.item.open);
    // Once in a while is nothing.
    let now_and_then = many(40, |at, scene| {
        scene.took[1] = if at % 3 == 0 { 2_400_000 } else { 40_000 };
    });
    assert_eq!(list(&now_and_then.told(), WarningFilter::default()), []);
}

#[test]
fn sizes_near_a_limit_are_found() {
    let story = many(2, |_, scene| {
        scene.observed["bucket"]["spec"]["blob"] = "x".repeat(1_300_000).into();
        scene.observed["replica"]["spec"]["blob"] = "x".repeat(1_000_000).into();
    });
    let told = story.told();
    let found = list(&told, WarningFilter::default());
    let sentences: Vec<&str> = found.iter().map(|found| found.sentence.as_str()).collect();
    assert_eq!(sentences, ["bucket has 1.2 MiB of the 1.5 MiB that etcd takes."]);
    let story = many(2, |_, scene| {
        for name in ["bucket", "replica"] {
            scene.observed[name]["spec"]["blob"] = "x".repeat(1_200_000).into();
        }
        scene.input["template"] = "x".repeat(1_000_000).into();
    });
    let found = only(&story);
    assert_eq!(
        found.item.sentence,
        "Step 2, compose, is given 3.2 MiB of the 4.0 MiB that gRPC takes."
    );
    assert_eq!(found.item.kind, "size");
}

#[test]
fn warnings_are_chosen_and_read_page_by_page() {
    let mut story = many(8, |at, scene| {
        if at % 2 == 1 {
            scene.desired["bucket"] = bucket("random");
        }
    });
    let mut south = many(3, |_, _| {});
    for call in south.runs.iter_mut().flatten() {
        call.name = "south".into();
        call.trace = call.trace.replace("aaaa", "bbbb");
        call.at += 3600 * SECOND;
        call.error =
            "requirements didn't stabilize after the maximum number of iterations (5)".into();
        call.response = Some(Value::Null);
    }
    for run in &mut south.runs {
        run.truncate(1);
    }
    story.runs.extend(south.runs);
    let told = story.told();
    let kinds = |filter: WarningFilter| -> Vec<String> {
        list(&told, filter).into_iter().map(|warning| warning.kind).collect()
    };
    let all = WarningFilter::default;
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(kinds(all()), ["unstable-requirements", "same-input"]);
    assert_eq!(kinds(WarningFilter { name: text("south"), ..all() }), ["unstable-requirements"]);
    assert_eq!(kinds(WarningFilter { kind: text("store"), open: true, ..all() }).len(), 2);
    assert_eq!(kinds(WarningFilter { namespace: text("other"), ..all() }).len(), 0);
    assert_eq!(kinds(WarningFilter { found: text("same-input"), ..all() }), ["same-input"]);
    let question = |limit, after| Question::Warnings { filter: all(), limit, after };
    let Answer::Warnings(first) = told.ask(&question(1, None)).unwrap() else { panic!() };
    assert_eq!(first.sentence, "1 warning and more, 1 of which goes on.");
    let Answer::Warnings(second) = told.ask(&question(1, first.more)).unwrap() else { panic!() };
    assert_eq!((second.warnings[0].kind.as_str(), second.more), ("same-input", None));
    let wrong = WarningFilter { found: text("slow"), ..all() };
    let refused = told.ask(&Question::Warnings { filter: wrong, limit: 1, after: None });
    assert_eq!(
        refused.unwrap_err().to_string(),
        "expected one of flapping, same-input, unstable-requirements, slow-step, size but got \"slow\""
    );
    let missing = told.ask(&Question::Warning("99".to_owned())).unwrap_err();
    assert_eq!(missing.to_string(), "there is no warning 99");
    let mut settings = insta::Settings::clone_current();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, question) in
        [("warnings", question(10, None)), ("warning", Question::Warning("1".to_owned()))]
    {
        let answer = told.ask(&question).unwrap();
        for form in ["table", "wide", "json", "yaml", "name", "md"] {
            let options = Options { format: form.parse().unwrap(), bookkeeping: false };
            let printed = print::print(&answer, options);
            settings.bind(|| insta::assert_snapshot!(format!("{name}.{form}"), printed));
        }
    }
}

/// The recordings of upstream's controller have one fault, which was planted.
#[test]
fn the_recordings_have_unstable_requirements_alone() {
    let archive = archive(&runs());
    let question = Question::Warnings { filter: WarningFilter::default(), limit: 100, after: None };
    let Answer::Warnings(found) = ask::answer(&archive, &question, now()).unwrap() else {
        panic!()
    };
    let found: Vec<_> = found
        .warnings
        .iter()
        .map(|w| (w.kind.as_str(), w.count, w.owner.api_version.as_str()))
        .collect();
    assert_eq!(found, [("unstable-requirements", 3, "unstable-requirements.insp.example.org/v1")]);
}

fn honest(world: &mut World, owners: u64, runs: u64) -> BTreeMap<&'static str, usize> {
    let mut all: Vec<(String, Honest)> =
        (0..owners).map(|n| (format!("store-{n}"), Honest::new(n + 1))).collect();
    let mut found = BTreeMap::new();
    for number in 0..runs {
        let calls: Vec<Call> =
            all.iter_mut().flat_map(|(name, honest)| honest.run(name, number)).collect();
        world.record(&calls);
        world.ledger.close_all().unwrap();
        for kind in world.ledger.take_found() {
            *found.entry(kind.name()).or_default() += 1;
        }
    }
    found
}

#[test]
fn ten_thousand_honest_runs_have_no_warning() {
    let mut world = World::in_a_file();
    let found = honest(&mut world, 50, 200);
    assert_eq!(
        world.store().tallies(0, i64::MAX).unwrap().iter().map(|t| t.runs).sum::<i64>(),
        10_000
    );
    assert_eq!(found, BTreeMap::new());
    let none = world.store().findings(&FindingFilter::default(), 10, None).unwrap();
    assert_eq!(none, []);
}

on_both! {
    /// Findings survive a restart, and go with their owner.
    fn findings_are_kept_as_long_as_their_owner(world) {
        let story = many(4, |at, scene| {
            if at % 2 == 1 {
                scene.desired["bucket"] = bucket("random");
            }
        });
        story.tell(world);
        assert_eq!(world.ledger.take_found().len(), 1);
        let found = world.store().findings(&FindingFilter::default(), 10, None).unwrap();
        assert_eq!((found.len(), found[0].count, found[0].open), (1, 3, true));
        world.restart();
        // What was seen goes on after a restart, and is not new.
        let more = many(6, |at, scene| {
            if at % 2 == 1 {
                scene.desired["bucket"] = bucket("random");
            }
        });
        Story { runs: more.runs[4..].to_vec(), ..Story::default() }.tell(world);
        assert_eq!(world.ledger.take_found(), []);
        let found = world.store().findings(&FindingFilter::default(), 10, None).unwrap();
        assert_eq!((found.len(), found[0].count), (1, 5));
        // A half that comes twice counts once.
        Story { runs: more.runs[4..].to_vec(), ..Story::default() }.tell(world);
        let found = world.store().findings(&FindingFilter::default(), 10, None).unwrap();
        assert_eq!((found.len(), found[0].count), (1, 5));
        let short = biplane_recorder::store::Retention {
            runs_for: SECOND,
            ..crate::store::world::forever()
        };
        world.sweep(&short, NOON + 86_400 * SECOND);
        assert_eq!(world.store().findings(&FindingFilter::default(), 10, None).unwrap(), []);
    }

    /// A store that an older program made gets the columns of findings, and keeps its runs.
    fn an_older_store_is_brought_up_to_date(world) {
        let story = many(4, |at, scene| {
            if at % 2 == 1 {
                scene.desired["bucket"] = bucket("random");
            }
        });
        Story { runs: story.runs[..1].to_vec(), ..Story::default() }.tell(world);
        let version = match world.location {
            Location::Server(_) => "'1'::bytea",
            _ => "CAST('1' AS BLOB)",
        };
        let sql = format!(
            "DROP INDEX finding_owner; DROP INDEX finding_last; \
                ALTER TABLE finding DROP COLUMN step; ALTER TABLE finding DROP COLUMN idx; \
                ALTER TABLE finding DROP COLUMN first_run; ALTER TABLE finding DROP COLUMN last_run; \
                ALTER TABLE finding DROP COLUMN detail; \
                UPDATE meta SET value = {version} WHERE key = 'version';"
        );
        match &world.location {
            Location::Server(server) => crate::postgres::batch(server, &sql),
            Location::File(path) => {
                rusqlite::Connection::open(path).unwrap().execute_batch(&sql).unwrap();
            }
            Location::Memory => {}
        }
        let old = Store::open_existing(&world.location).unwrap_err().to_string();
        assert!(old.contains("start the recorder to bring it up to date"), "{old}");
        world.restart();
        Story { runs: story.runs[1..].to_vec(), ..Story::default() }.tell(world);
        assert_eq!(world.runs().len(), 4);
        let found = world.store().findings(&FindingFilter::default(), 10, None).unwrap();
        assert_eq!((found.len(), found[0].count), (1, 3));
    }
}

/// Nothing that is redacted is in a warning.
#[test]
fn secrets_are_in_no_warning() {
    let story = many(6, |at, scene| {
        let word = if at % 2 == 1 { "UExBTlRFRC0x" } else { "UExBTlRFRC0y" };
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "data": {"password": word}});
        scene.observed["login"] = secret.clone();
        scene.desired["login"] =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "UExBTlRFRC0x"}});
        scene.desired["bucket"] = bucket(if at % 2 == 1 { "a" } else { "b" });
    });
    let told = story.told();
    for found in list(&told, WarningFilter::default()) {
        let printed =
            print::value(&Answer::Warning(Box::new(detail(&told, &found.id)))).to_string();
        assert!(!printed.contains("UExBTlRFRC"), "{printed}");
    }
    for address in ["Store/north:login", "Secret/login"] {
        let of = named(address);
        let question = Question::Why {
            verb: biplane_recorder::query::answer::Verb::Changed,
            of,
            field: Some("data.password".to_owned()),
        };
        if let Ok(answer) = told.ask(&question) {
            let printed = print::value(&answer).to_string();
            assert!(!printed.contains("UExBTlRFRC"), "{printed}");
        }
    }
}
