//! Why something is so: a story for each cause, which is named exactly.

use biplane_recorder::query::answer::{Answer, EvidenceKind, Reason, Verb, Why};
use biplane_recorder::query::ask::Question;
use biplane_recorder::query::print::{self, Options};
use serde_json::{Value, json};

use crate::store::world::Call;
use crate::story::{Scene, Story, bucket, entry, existing, named};

fn why(story: &Story, verb: Verb, address: &str, field: Option<&str>) -> Why {
    let question = Question::Why { verb, of: named(address), field: field.map(str::to_owned) };
    match story.ask(&question).unwrap() {
        Answer::Why(why) => *why,
        other => panic!("{other:?}"),
    }
}

fn refused(story: &Story, verb: Verb, address: &str, field: Option<&str>) -> String {
    let question = Question::Why { verb, of: named(address), field: field.map(str::to_owned) };
    story.ask(&question).unwrap_err().to_string()
}

fn scene(trace: &'static str, at: i64) -> Scene {
    let observed =
        json!({"bucket": existing("north-1", "eu"), "replica": existing("north-2", "us")});
    Scene { observed, ..Scene::new(trace, at) }
}

/// A run before, and one that does something else.
fn two(change: impl FnOnce(&mut Scene)) -> Story {
    let mut second = scene("bbbb0000", 60);
    change(&mut second);
    Story::of(&[scene("aaaa0000", 0), second])
}

fn without_replica(scene: &mut Scene) {
    scene.desired = json!({"bucket": bucket("eu")});
}

/// The number of the step, and the evidence of a kind.
fn step(why: &Why) -> Option<(i64, &str)> {
    why.step.as_ref().map(|step| (step.number, step.name.as_str()))
}

fn evidence(why: &Why, kind: EvidenceKind) -> Vec<(String, &str)> {
    let of_kind = why.evidence.iter().filter(|evidence| evidence.kind == kind);
    of_kind
        .map(|evidence| (evidence.address().unwrap_or_default(), evidence.text.as_str()))
        .collect()
}

fn at(address: &str) -> String {
    address.to_owned()
}

#[test]
fn a_resource_is_deleted_because_a_field_of_the_composite_resource_differs() {
    let story = two(|scene| {
        scene.spec["size"] = 1.into();
        without_replica(scene);
    });
    for address in ["Store/north:replica", "Bucket/north-2", "bucket.s3.example.org/north-2"] {
        let why = why(&story, Verb::Deleted, address, None);
        assert_eq!((why.reason, step(&why)), (Reason::InputDiffers, Some((2, "compose"))));
        assert_eq!((why.object.name.as_str(), why.resource.as_str()), ("north-2", "replica"));
        assert_eq!(why.run.as_deref(), Some("bbbb0000"));
        assert_eq!(why.run_before.as_deref(), Some("aaaa0000"));
        assert_eq!(
            why.sentence,
            "Bucket north-2 is not desired since run bbbb0000 (2027-01-15 08:01:00): step 2, compose, no longer desired it. \
             Of what step 2, compose, was given, one input differs: observed composite spec.size 3 -> 1."
        );
        let input = (at("bbbb0000/2"), "observed composite spec.size 3 -> 1");
        assert_eq!(evidence(&why, EvidenceKind::Input), [input]);
    }
}

#[test]
fn a_resource_is_deleted_because_a_required_resource_differs() {
    let story = two(|scene| {
        scene.environment["tier"] = "silver".into();
        without_replica(scene);
    });
    let why = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((why.reason, step(&why)), (Reason::InputDiffers, Some((2, "compose"))));
    assert_eq!(
        why.sentence,
        "Bucket north-2 is not desired since run bbbb0000 (2027-01-15 08:01:00): step 2, compose, no longer desired it. \
         Of what step 2, compose, was given, what earlier steps made differs: context environment.tier gold -> silver. \
         Of what step 1, env, was given, one input differs: required EnvironmentConfig/eu data.tier gold -> silver."
    );
    let required = (at("bbbb0000/1"), "required EnvironmentConfig/eu data.tier gold -> silver");
    assert_eq!(evidence(&why, EvidenceKind::Requirement), [required]);
}

#[test]
fn equal_input_is_called_so() {
    let story = two(without_replica);
    let why = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((why.reason, step(&why)), (Reason::SameInput, Some((2, "compose"))));
    assert!(
        why.sentence.ends_with(
            "Step 2, compose, was given the same as before and answered something else: same input, different output."
        ),
        "{}",
        why.sentence
    );
    // An earlier step is named if it is the one.
    let mut story = two(without_replica);
    let context = json!({"environment": {"tier": "iron"}});
    for call in &mut story.runs[1] {
        if call.index > 0 {
            call.request["context"] = context.clone();
        }
        call.response.as_mut().unwrap()["context"] = context.clone();
    }
    let why = self::why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((why.reason, step(&why)), (Reason::SameInput, Some((2, "compose"))));
    assert!(
        why.sentence.ends_with(
            "Step 1, env, was given the same as before and answered something else: same input, different output."
        ),
        "{}",
        why.sentence
    );
}

#[test]
fn a_resource_is_deleted_because_the_composition_or_a_function_was_replaced() {
    let story = two(|scene| {
        scene.input["kind"] = "Fewer".into();
        without_replica(scene);
    });
    let found = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((found.reason, step(&found)), (Reason::CompositionChanged, Some((2, "compose"))));
    let want = "The Composition changed: step 2 compose, input kind Resources -> Fewer.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);

    let mut story = two(without_replica);
    for call in &mut story.runs[1] {
        call.composition = "fewer".into();
    }
    let found = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!(found.reason, Reason::CompositionChanged);
    let want = "The Composition changed: composition stores -> fewer.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);

    let mut story = two(without_replica);
    story.runs[1][1].function = "function-other".into();
    let found = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!(found.reason, Reason::CompositionChanged);
    let want =
        "The Composition changed: function of step compose: function-compose -> function-other.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);

    let mut first = scene("aaaa0000", 0);
    first.revision = Some("compose-1");
    let mut second = scene("bbbb0000", 60);
    second.revision = Some("compose-2");
    without_replica(&mut second);
    let found = why(&Story::of(&[first, second]), Verb::Deleted, "Store/north:replica", None);
    assert_eq!(found.reason, Reason::FunctionReplaced);
    let want = "Step 2, compose, was given the same as before. function-compose was replaced: revision compose-1 -> compose-2.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
}

/// Puts a step between the second and the last. It desires more, or nothing more.
fn with_step(calls: &mut Vec<Call>, name: &str, more: Option<Value>) {
    let given = calls[1].response.as_ref().unwrap()["desired"].clone();
    let mut answered = given.clone();
    if let Some(more) = more {
        answered["resources"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    }
    let mut extra = calls[1].clone();
    extra.index = 2;
    extra.step = name.into();
    extra.function = format!("function-{name}");
    extra.request["desired"] = given;
    extra.response = Some(json!({"desired": answered, "context": extra.request["context"]}));
    calls[2].index = 3;
    calls[2].request["desired"] = answered.clone();
    calls[2].response.as_mut().unwrap()["desired"] = answered;
    calls.insert(2, extra);
}

#[test]
fn a_step_that_is_gone_desires_nothing() {
    let mut first = scene("aaaa0000", 0);
    without_replica(&mut first);
    let mut second = scene("bbbb0000", 60);
    without_replica(&mut second);
    let mut story = Story::of(&[first, second]);
    let replica = json!({"replica": {"resource": bucket("us")}});
    with_step(&mut story.runs[0], "replicate", Some(replica));
    with_step(&mut story.runs[1], "audit", None);
    let why = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((why.reason, step(&why)), (Reason::CompositionChanged, None));
    assert_eq!(
        why.sentence,
        "Bucket north-2 is not desired since run bbbb0000 (2027-01-15 08:01:00): step 3, replicate, had desired it. \
         The Composition changed: step audit is new."
    );
}

#[test]
fn a_later_step_removes_a_resource() {
    let mut story = two(|_| {});
    let ready = &mut story.runs[1][2];
    let response = ready.response.as_mut().unwrap();
    response["desired"]["resources"].as_object_mut().unwrap().remove("replica");
    let why = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!((why.reason, step(&why)), (Reason::SameInput, Some((3, "ready"))));
    assert!(why.sentence.contains("step 3, ready, removed it"), "{}", why.sentence);
}

#[test]
fn a_provider_carries_out_a_deletion() {
    let mut story = two(|scene| {
        scene.spec["size"] = 1.into();
        without_replica(scene);
    });
    story.changes.push(entry("north-2", 63, "DELETE", Some("bucket\nis not empty")));
    let found = why(&story, Verb::Deleted, "Bucket/north-2", None);
    let want = "Provider provider-s3:v1 could not delete it: bucket is not empty.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
    story.changes.push(entry("north-2", 70, "DELETE", None));
    let found = why(&story, Verb::Deleted, "Bucket/north-2", None);
    assert!(found.sentence.ends_with("Provider provider-s3:v1 deleted it."), "{}", found.sentence);
    let changes = evidence(&found, EvidenceKind::Change);
    assert_eq!(
        changes,
        [
            (at("2"), "2027-01-15 08:01:10 provider-s3:v1: delete, ok"),
            (at("1"), "2027-01-15 08:01:03 provider-s3:v1: delete, failed: bucket is not empty"),
        ]
    );
}

#[test]
fn what_is_desired_was_deleted_by_somebody_else_or_with_its_owner() {
    let story = two(|scene| {
        scene.observed.as_object_mut().unwrap().remove("replica");
    });
    let found = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!(found.reason, Reason::SomebodyElse);
    assert_eq!(
        found.sentence,
        "Bucket north-2 was observed in run aaaa0000 and no longer in run bbbb0000 (2027-01-15 08:01:00), \
         though Store north still desires it: somebody else deleted it."
    );
    let story = two(|scene| {
        scene.observed["replica"]["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:30Z".into();
        scene.observed["replica"]["metadata"]["finalizers"] = json!(["keep.example.org"]);
    });
    let found = why(&story, Verb::Deleted, "Bucket/north-2", None);
    assert_eq!(found.reason, Reason::SomebodyElse);
    assert_eq!(
        found.sentence,
        "Somebody else deleted Bucket north-2 at 2027-01-15 08:00:30; Store north still desires it. \
         It is held by keep.example.org."
    );
    // The composite resource was deleted.
    let mut story = two(|_| {});
    for call in &mut story.runs[1] {
        let composite = &mut call.request["observed"]["composite"]["resource"];
        composite["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:45Z".into();
    }
    let found = why(&story, Verb::Deleted, "Bucket/north-2", None);
    assert_eq!(found.reason, Reason::OwnerDeleted);
    assert_eq!(
        found.sentence,
        "Somebody deleted Store north at 2027-01-15 08:00:45, and its composed resources go with it."
    );
    let found = why(&story, Verb::Deleted, "Store/north", None);
    assert_eq!(found.reason, Reason::OwnerDeleted);
    // A control plane runs no pipeline of a composite resource that is deleted.
    let mut story = two(|_| {});
    story.changes.push(entry("north-2", 300, "DELETE", None));
    let found = why(&story, Verb::Deleted, "Bucket/north-2", None);
    assert_eq!(found.reason, Reason::OwnerDeleted);
    assert_eq!(
        found.sentence,
        "Provider provider-s3:v1 deleted Bucket north-2 at 2027-01-15 08:05:00. The last run of Store north, \
         run bbbb0000 (2027-01-15 08:01:00), still desired it, and no run followed: likely Store north was deleted."
    );
    // Nobody deleted it.
    let found = why(&two(|_| {}), Verb::Deleted, "Bucket/north-2", None);
    assert_eq!(found.reason, Reason::NotSo);
    let want = "Bucket north-2 is not deleted: run bbbb0000 (2027-01-15 08:01:00) desires it.";
    assert_eq!(found.sentence, want);
}

#[test]
fn a_resource_is_created() {
    let mut first = scene("aaaa0000", 0);
    without_replica(&mut first);
    let mut second = scene("bbbb0000", 60);
    second.spec["size"] = 5.into();
    let mut story = Story::of(&[first, second, scene("cccc0000", 120)]);
    story.changes.push(entry("north-2", 61, "CREATE", None));
    let found = why(&story, Verb::Created, "Bucket/north-2", None);
    assert_eq!((found.reason, step(&found)), (Reason::InputDiffers, Some((2, "compose"))));
    assert_eq!(
        found.sentence,
        "Bucket north-2 is desired since run bbbb0000 (2027-01-15 08:01:00): step 2, compose, created it. \
         Of what step 2, compose, was given, one input differs: observed composite spec.size 3 -> 5. \
         Provider provider-s3:v1 created it."
    );
    let found = why(&story, Verb::Created, "Bucket/north-1", None);
    assert_eq!((found.reason, found.run.as_deref()), (Reason::FirstRun, Some("aaaa0000")));
    assert_eq!(
        found.sentence,
        "Bucket north-1 is desired since run aaaa0000 (2027-01-15 08:00:00): step 2, compose, created it. \
         Of Store north, no older run is kept."
    );
    let found = why(&story, Verb::Created, "aaaa0000:replica", None);
    assert_eq!(found.reason, Reason::NotSo);
}

#[test]
fn a_field_changed_because_another_did() {
    let mut story = two(|scene| {
        scene.spec["region"] = "ap".into();
        scene.desired["bucket"] = bucket("ap");
    });
    story.changes.push(entry("north-1", 61, "UPDATE", None));
    let field = Some("spec.forProvider.region");
    for field in [field, Some(".spec.forProvider"), Some("spec")] {
        let found = why(&story, Verb::Changed, "Bucket/north-1", field);
        assert_eq!((found.reason, step(&found)), (Reason::InputDiffers, Some((2, "compose"))));
        assert_eq!(
            found.sentence,
            "spec.forProvider.region of Bucket north-1 is ap instead of eu since run bbbb0000 (2027-01-15 08:01:00). \
             Step 2, compose, set it. \
             Of what step 2, compose, was given, one input differs: observed composite spec.region eu -> ap."
        );
        let output = &found.evidence[0];
        assert_eq!(output.same_value.as_deref(), Some("observed composite spec.region"));
        assert_eq!(
            output.text,
            "spec.forProvider.region eu -> ap, same value: observed composite spec.region"
        );
        let change = (at("1"), "2027-01-15 08:01:01 provider-s3:v1: update, ok");
        assert_eq!(evidence(&found, EvidenceKind::Change), [change]);
    }
    let found = why(&story, Verb::Changed, "Bucket/north-1", None);
    assert_eq!(
        found.sentence,
        "Bucket north-1 is desired otherwise since run bbbb0000 (2027-01-15 08:01:00): 1 field differs: \
         spec.forProvider.region eu -> ap. Step 2, compose, set it. \
         Of what step 2, compose, was given, one input differs: observed composite spec.region eu -> ap."
    );
    let found = why(&story, Verb::Changed, "Bucket/north-2", field);
    assert_eq!(found.reason, Reason::FirstRun);
    let message = refused(&story, Verb::Changed, "Bucket/north-2", Some("spec.other"));
    assert_eq!(message, "no kept run of Store north has another value of spec.other");
    let message = refused(&story, Verb::Deleted, "Bucket/north-2", Some("spec.other"));
    assert_eq!(message, "a field can have changed, but not be deleted");
}

/// Of several inputs that differ, the one that had the same values is the likeliest.
#[test]
fn the_same_values_tell_which_input_it_was() {
    let story = two(|scene| {
        scene.spec["size"] = 9.into();
        scene.environment["tier"] = "ap".into();
        scene.desired["bucket"]["spec"]["forProvider"]["tier"] = "ap".into();
    });
    let found = why(&story, Verb::Changed, "Bucket/north-1", Some("spec.forProvider.tier"));
    assert_eq!(found.reason, Reason::InputDiffers);
    let want = "spec.forProvider.tier of Bucket north-1 is set, to ap, since run bbbb0000 (2027-01-15 08:01:00). \
        Step 2, compose, set it. Of what step 2, compose, was given, 2 inputs differ, the likeliest: \
        observed composite spec.size 3 -> 9.";
    assert_eq!(found.sentence, want);
    let mut first = scene("aaaa0000", 0);
    first.desired["bucket"]["spec"]["forProvider"]["tier"] = "gold".into();
    let mut second = scene("bbbb0000", 60);
    second.spec["size"] = 9.into();
    second.environment["tier"] = "ap".into();
    second.desired["bucket"]["spec"]["forProvider"]["tier"] = "ap".into();
    let story = Story::of(&[first, second]);
    let found = why(&story, Verb::Changed, "Bucket/north-1", Some("spec.forProvider.tier"));
    let want = "Of what step 2, compose, was given, what earlier steps made differs: \
        context environment.tier gold -> ap. Of what step 1, env, was given, 2 inputs differ, the likeliest: \
        required EnvironmentConfig/eu data.tier gold -> ap.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
}

#[test]
fn a_field_that_is_gone_was_not_set_again() {
    let mut first = scene("aaaa0000", 0);
    first.desired["bucket"]["spec"]["forProvider"]["acl"] = "private".into();
    let mut second = scene("bbbb0000", 60);
    second.spec["size"] = 1.into();
    let story = Story::of(&[first, second]);
    let found = why(&story, Verb::Changed, "Bucket/north-1", Some("spec.forProvider.acl"));
    assert_eq!((found.reason, step(&found)), (Reason::InputDiffers, Some((2, "compose"))));
    let want = "spec.forProvider.acl of Bucket north-1, private before, is not set since run bbbb0000 (2027-01-15 08:01:00). \
        Step 2, compose, no longer set it.";
    assert!(found.sentence.starts_with(want), "{}", found.sentence);
}

#[test]
fn what_no_step_sets_was_changed_by_its_manager() {
    let story = two(|scene| {
        let bucket = &mut scene.observed["bucket"];
        bucket["spec"]["forProvider"]["acl"] = "public".into();
        bucket["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit", "operation": "Update",
            "fieldsV1": {"f:spec": {"f:forProvider": {"f:acl": {}}}}}]);
    });
    let found = why(&story, Verb::Changed, "Bucket/north-1", Some("spec.forProvider.acl"));
    assert_eq!((found.reason, step(&found)), (Reason::SomebodyElse, None));
    assert_eq!(
        found.sentence,
        "Bucket north-1 was observed otherwise in run bbbb0000 (2027-01-15 08:01:00): \
         spec.forProvider.acl public (added); no step of the pipeline sets it; its manager is kubectl-edit."
    );
    let manager = (at("bbbb0000:bucket"), "kubectl-edit");
    assert_eq!(evidence(&found, EvidenceKind::Manager), [manager]);
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[test]
fn a_resource_is_not_ready() {
    let words = |change: &dyn Fn(&mut Scene)| {
        let mut only = scene("aaaa0000", 0);
        change(&mut only);
        let story = Story::of(&[only]);
        let found = why(&story, Verb::NotReady, "Store/north:bucket", None);
        (found.reason, step(&found).map(|(number, _)| number), found.sentence)
    };
    let run = "Bucket north-1 is not ready in run aaaa0000 (2027-01-15 08:00:00):";
    let found = words(&|scene| scene.ready = vec![("bucket", false)]);
    let want = format!("{run} step 3, ready, said so.");
    assert_eq!(found, (Reason::StepSaysNotReady, Some(3), want));
    let found = words(&|scene| scene.ready = Vec::new());
    let want = format!("{run} no step said whether it is ready.");
    assert_eq!(found, (Reason::NobodySaysReady, None, want));
    let found = words(&|scene| {
        scene.ready = vec![("bucket", false)];
        scene.observed["bucket"]["status"]["conditions"] = json!([
            condition("Ready", "False", "Creating", ""),
            condition("Tested", "True", "", ""),
            condition("Synced", "False", "ReconcileError", "cannot create:\n AccessDenied"),
        ]);
    });
    let want = format!(
        "{run} Synced is False, ReconcileError: cannot create: AccessDenied; Ready is False, Creating."
    );
    assert_eq!(found, (Reason::Condition, Some(3), want));
    let found = words(&|scene| {
        scene.ready = vec![("bucket", false)];
        scene.observed = json!({});
    });
    let want =
        "Bucket bucket is not ready in run aaaa0000 (2027-01-15 08:00:00): it does not exist yet.";
    assert_eq!(found, (Reason::NotCreated, Some(3), want.to_owned()));
    let found = words(&|_| {});
    let want = "Bucket north-1 is ready: step 3, ready, said so.";
    assert_eq!(found, (Reason::NotSo, Some(3), want.to_owned()));
}

#[test]
fn a_composite_resource_is_not_ready_while_its_resources_are_not() {
    let mut only = scene("aaaa0000", 0);
    only.ready = vec![("bucket", true), ("replica", false)];
    only.observed["replica"]["status"]["conditions"] =
        json!([condition("Ready", "False", "Creating", "soon")]);
    let story = Story::of(&[only]);
    let found = why(&story, Verb::NotReady, "Store/north", None);
    assert_eq!(found.reason, Reason::ResourcesNotReady);
    assert_eq!(
        found.sentence,
        "Store north is not ready in run aaaa0000 (2027-01-15 08:00:00): 1 of 2 composed resources is not. \
         replica: Ready is False, Creating: soon."
    );
    let found = why(&two(|_| {}), Verb::NotReady, "Store/north", None);
    let want = "Store north is ready in run bbbb0000 (2027-01-15 08:01:00): all of its 2 composed resources are.";
    assert_eq!((found.reason, found.sentence.as_str()), (Reason::NotSo, want));
}

/// A story whose last run fails in its second step.
fn failing(change: impl FnOnce(&mut Scene), response: Value, error: &str) -> Story {
    let mut story = two(change);
    let run = &mut story.runs[1];
    run.truncate(2);
    run[1].response = Some(response);
    run[1].error = error.into();
    story
}

fn fatal(message: &str) -> Value {
    json!({"results": [{"severity": "SEVERITY_FATAL", "message": message}]})
}

#[test]
fn a_run_failed() {
    let story = failing(|scene| scene.spec["size"] = 5.into(), fatal("size 5 is too much"), "");
    let found = why(&story, Verb::Failed, "Store/north", None);
    assert_eq!((found.reason, step(&found)), (Reason::FatalResult, Some((2, "compose"))));
    assert_eq!(
        found.sentence,
        "Step 2 of 3, compose, returned a fatal result after 40 ms: \"size 5 is too much\". \
         Step 3, ready, was not reached. Run aaaa0000 succeeded before. \
         Of what step 2, compose, was given, one input differs: observed composite spec.size 3 -> 5."
    );
    assert_eq!(evidence(&found, EvidenceKind::Result), [(at("bbbb0000/2"), "size 5 is too much")]);
    // Readiness is not known then.
    let ready = why(&story, Verb::NotReady, "Store/north", None);
    assert_eq!(ready.reason, Reason::RunFailed);
    assert!(ready.sentence.contains("size 5 is too much"), "{}", ready.sentence);

    let story = failing(|_| {}, fatal("the moon is full"), "");
    let found = why(&story, Verb::Failed, "Store/north", None);
    let want = "same input, different output.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);

    let late = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    let story = failing(|_| {}, Value::Null, late);
    let found = why(&story, Verb::Failed, "bbbb0000", None);
    assert_eq!((found.reason, step(&found)), (Reason::Timeout, Some((2, "compose"))));
    let refused = "cannot connect: connection refused";
    let story = failing(|_| {}, Value::Null, refused);
    let found = why(&story, Verb::Failed, "bbbb0000/2", None);
    assert_eq!(found.reason, Reason::CallFailed);
    assert!(found.sentence.contains(refused), "{}", found.sentence);

    // It may have failed before, and no longer.
    let mut story = failing(|_| {}, fatal("the moon is full"), "");
    let again = story.runs[1].iter().cloned().map(|mut call| {
        call.trace = "cccc0000".into();
        call.at += 60_000_000;
        call
    });
    story.runs.push(again.collect());
    let found = why(&story, Verb::Failed, "Store/north", None);
    assert_eq!(found.run.as_deref(), Some("cccc0000"));
    let want = "It is failure 2 in a row, since run bbbb0000 (2027-01-15 08:01:00).";
    assert!(found.sentence.contains(want), "{}", found.sentence);
    story.runs.push(scene("dddd0000", 180).calls());
    let found = why(&story, Verb::Failed, "Store/north", None);
    assert_eq!((found.reason, found.run.as_deref()), (Reason::FatalResult, Some("cccc0000")));
    let want = "Since run dddd0000 (2027-01-15 08:03:00), it succeeds.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
    let found = why(&story, Verb::Failed, "dddd0000", None);
    assert_eq!(found.reason, Reason::NotSo);
}

#[test]
fn a_provider_failed() {
    let mut story = two(|_| {});
    story.changes.push(entry("north-1", 61, "UPDATE", Some("AccessDenied")));
    let found = why(&story, Verb::Failed, "Bucket/north-1", None);
    assert_eq!(found.reason, Reason::ProviderFailed);
    let want =
        "provider-s3:v1 failed to update Bucket north-1 at 2027-01-15 08:01:01: AccessDenied.";
    assert!(found.sentence.starts_with(want), "{}", found.sentence);
    story.changes.push(entry("north-1", 66, "UPDATE", None));
    let found = why(&story, Verb::Failed, "Bucket/north-1", None);
    assert!(found.sentence.ends_with("Since then, it succeeded."), "{}", found.sentence);
    let found = why(&story, Verb::Failed, "Bucket/north-2", None);
    assert_eq!(found.reason, Reason::NotSo);
}

#[test]
fn a_run_is_slow() {
    let traces = ["aaaa0000", "aaaa0001", "aaaa0002", "aaaa0003", "bbbb0000"];
    let mut scenes: Vec<Scene> =
        traces.iter().zip(0..).map(|(trace, at)| scene(trace, at * 60)).collect();
    scenes[2].took = [5_000, 2_400_000, 2_000];
    let story = Story::of(&scenes);
    let found = why(&story, Verb::Slow, "Store/north", None);
    assert_eq!((found.reason, step(&found)), (Reason::SlowStep, Some((2, "compose"))));
    assert_eq!(found.run.as_deref(), Some("aaaa0002"));
    let want = "Step 2, compose, took 2.4 s of it; its median in 4 other runs is 40 ms. \
        It was given the same as in the run before: same input, other duration.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
    let durations = evidence(&found, EvidenceKind::Duration);
    assert_eq!(
        durations,
        [
            (at("aaaa0002/1"), "5 ms, median 5 ms"),
            (at("aaaa0002/2"), "2.4 s, median 40 ms"),
            (at("aaaa0002/3"), "2 ms, median 2 ms"),
        ]
    );
    let found = why(&story, Verb::Slow, "bbbb0000", None);
    assert_eq!((found.reason, step(&found)), (Reason::BetweenSteps, None));
}

#[test]
fn what_is_not_known_is_said() {
    let story = two(without_replica);
    for (verb, address, want) in [
        (
            Verb::Deleted,
            "Store/north:other",
            "no kept run of Store north desired a resource \"other\"",
        ),
        (Verb::Deleted, "Bucket/other", "no run of Bucket/other is kept"),
        (Verb::Slow, "Store/south", "no run of Store/south is kept"),
        (Verb::Created, "bbbb0000/2", "expected a resource or a run, not a step"),
    ] {
        assert_eq!(refused(&story, verb, address, None), want);
    }
    // Redacted values may be what differs.
    let secret = |scene: &mut Scene, word: &str| {
        scene.observed["login"] = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "login"}, "data": {"password": word}});
    };
    let mut first = scene("aaaa0000", 0);
    secret(&mut first, "b25l");
    let mut second = scene("bbbb0000", 60);
    secret(&mut second, "dHdv");
    without_replica(&mut second);
    let mut story = Story::of(&[first, second]);
    for (run, tag) in story.runs.iter_mut().zip(["one", "two"]) {
        for call in run {
            call.request["meta"] = json!({"tag": tag});
        }
    }
    let found = why(&story, Verb::Deleted, "Store/north:replica", None);
    assert_eq!(found.reason, Reason::Unknown);
    let want = "As far as is known, step 2, compose, was given the same as before; whether redacted values differ is unknown.";
    assert!(found.sentence.ends_with(want), "{}", found.sentence);
    let printed = print::value(&Answer::Why(Box::new(found))).to_string();
    assert!(!printed.contains("b25l") && !printed.contains("dHdv"), "{printed}");
}

/// Answers in all forms, as they are written down.
#[test]
fn reasons_read_as_they_are_written_down() {
    let mut story = two(|scene| {
        scene.spec["region"] = "ap".into();
        scene.environment["tier"] = "silver".into();
        scene.desired = json!({"bucket": bucket("ap")});
        scene.ready = vec![("bucket", false)];
    });
    story.changes.push(entry("north-2", 62, "DELETE", None));
    let mut settings = insta::Settings::clone_current();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers");
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (verb, address, field) in [
        (Verb::Deleted, "Bucket/north-2", None),
        (Verb::Created, "Bucket/north-1", None),
        (Verb::Changed, "Bucket/north-1", Some("spec.forProvider.region")),
        (Verb::NotReady, "Store/north", None),
        (Verb::Failed, "Store/north", None),
        (Verb::Slow, "bbbb0000", None),
    ] {
        let answer = Answer::Why(Box::new(why(&story, verb, address, field)));
        for form in ["table", "wide", "json", "yaml", "name", "md"] {
            let options = Options { format: form.parse().unwrap(), bookkeeping: false };
            let printed = print::print(&answer, options);
            let name = format!("why-{}.{form}", verb.name());
            settings.bind(|| insta::assert_snapshot!(name, printed));
        }
    }
}
