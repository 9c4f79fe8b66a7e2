//! Tests of the revisions of Compositions and of the check of their pipelines.

use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::memory::{Answer, ApiServer, Entry, Fault, When};
use biplane_cluster::{Cluster as _, Delete, Part, Patch, ReadError, Write};
use biplane_engine::failure::Class;
use biplane_engine::{Requeue, pipeline_check, revision};
use biplane_model::{Object, Value, composition};
use biplane_testkit::Recording;
use serde_json::json;

use crate::claim_world::{TestClock, clock, context, object, objects, shown, soon};
use crate::disturbed::{Disturbed, Reads};

/// The reconcilers of Compositions and of their revisions.
struct Plane {
    server: Arc<ApiServer>,
    clock: Arc<TestClock>,
    compositions: revision::Reconciler,
    checks: pipeline_check::Reconciler,
}

impl Plane {
    fn new() -> Self {
        Self::start(Arc::default(), clock())
    }

    fn start(server: Arc<ApiServer>, clock: Arc<TestClock>) -> Self {
        let (context, _) = context(&server, &clock);
        let compositions = revision::Reconciler::new(context.clone());
        Self { server, clock, compositions, checks: pipeline_check::Reconciler::new(context) }
    }

    /// Starts the control plane anew: what it remembered is gone.
    fn restart(&mut self) {
        self.server.restart();
        let limit = self.compositions.history_limit;
        *self = Self::start(self.server.clone(), self.clock.clone());
        self.compositions.history_limit = limit;
    }

    fn all(&self, kind: &str) -> Vec<Object> {
        self.server.objects().into_iter().filter(|object| object.kind() == kind).collect()
    }

    /// `name: number` of each revision, by number, with the hash left out of the name.
    fn numbers(&self) -> Vec<(i64, String)> {
        let show = |r: &Object| (composition::number(r), r.str_at(&["spec", "mode"]).to_owned());
        let mut all: Vec<_> = self.all("CompositionRevision").iter().map(show).collect();
        all.sort();
        all
    }

    async fn reconcile(&self) -> Result<Requeue, biplane_engine::ReconcileError> {
        self.compositions.reconcile("", "comp").await
    }

    async fn check(&self) {
        for revision in self.all("CompositionRevision") {
            self.checks.reconcile("", revision.name()).await.unwrap();
        }
    }

    async fn patch(&self, object: &Object, changes: Value) {
        let (how, patch) = (Write::by("user"), Patch::Merge(changes));
        self.server.patch(&object.id(), Part::Main, &patch, &how, soon()).await.unwrap();
    }

    /// The Composition in the state that `mode` stands for, reconciled.
    async fn becomes(&self, mode: &str) {
        self.server.seed([composition(mode)]);
        self.reconcile().await.unwrap();
    }

    fn events(&self) -> Vec<String> {
        let show = |entry| match entry {
            Entry::Event(event) => {
                Some(format!("{} {}: {}", event.r#type.as_str(), event.reason, event.message))
            }
            Entry::Write { .. } => None,
        };
        self.server.journal().into_iter().filter_map(show).collect()
    }

    /// Reconciles again and checks that nothing was written or told.
    async fn is_quiet(&self) {
        let before = self.server.journal_len();
        for _ in 0..2 {
            let _ = self.reconcile().await;
            self.check().await;
        }
        assert_eq!(self.server.journal()[before..], []);
    }
}

fn composition(mode: &str) -> Object {
    object(json!({
        "apiVersion": composition::API_VERSION, "kind": "Composition",
        "metadata": {"name": "comp", "uid": "comp-uid", "labels": {"channel": "dev"}},
        "spec": {
            "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "Thing"}, "mode": mode,
            "pipeline": [{"step": "one", "functionRef": {"name": "f"}}],
        },
    }))
}

#[test]
fn hashes_are_the_recorded_ones() {
    // REV-1, REV-4: the revision has everything that was hashed.
    let recording = Recording::load("live-revisions", "all-scenarios");
    let revisions = objects(&recording, "revisions.json");
    assert_eq!(revisions.len(), 49);
    for revision in revisions {
        let mut original = revision.clone();
        let label = "crossplane.io/composition-hash";
        let hash = revision.label(label).to_owned();
        let name = revision.label("crossplane.io/composition-name").to_owned();
        for own in [label, "crossplane.io/composition-name"] {
            original.remove_at(&["metadata", "labels", own]);
        }
        if original.at(&["metadata", "labels"]) == Some(&json!({})) {
            original.remove_at(&["metadata", "labels"]);
        }
        original.remove_at(&["spec", "revision"]);
        original.set_meta("name", &name);
        let computed = composition::hash(&original);
        assert_eq!(composition::label_of(&computed), hash, "{}", revision.name());
        let again = composition::revision(&original, &computed, composition::number(&revision));
        assert_eq!(again.name(), revision.name());
        assert_eq!(again.get("spec"), revision.get("spec"), "{}", revision.name());
    }
}

#[tokio::test]
async fn revisions_are_made_and_numbered_as_recorded() {
    // REV-1 to REV-4, VP-2, cases 29 and 30
    for (case, stages) in [
        ("update-automatic", &["1-first", "2-second", "3-back"][..]),
        ("update-manual", &["1-first", "2-still-first", "3-moved"]),
        ("default-revision-selector", &["1-ready"]),
    ] {
        let recording = Recording::load("live-revisions", case);
        let plane = Plane::new();
        for stage in stages {
            let composition = objects(&recording, &format!("{stage}/composition.json")).remove(0);
            plane.server.seed([composition.clone()]);
            plane.compositions.reconcile("", composition.name()).await.unwrap();
            plane.check().await;
            let comparable = |mut revision: Object| {
                for key in ["creationTimestamp", "resourceVersion", "uid", "managedFields"] {
                    revision.remove_at(&["metadata", key]);
                }
                let text = revision.into_value().to_string();
                let time = without_times("\"lastTransitionTime\":\"", &text);
                serde_json::from_str::<Value>(&time).unwrap()
            };
            let ours = plane.all("CompositionRevision");
            let theirs = objects(&recording, &format!("{stage}/compositionrevision.json"));
            // The recording of the selector begins after another Composition was replaced.
            let current = composition::label_of(&composition::hash(&composition)).to_owned();
            let is_compared = |revision: &Object| {
                stages.len() > 1 || revision.label("crossplane.io/composition-hash") == current
            };
            let mut want: Vec<_> = theirs.into_iter().filter(is_compared).map(comparable).collect();
            let mut got: Vec<_> = ours.into_iter().map(comparable).collect();
            if stages.len() == 1 {
                for revision in want.iter_mut().chain(&mut got) {
                    revision["spec"]["revision"] = json!("any");
                }
            }
            assert_eq!(got, want, "{case} {stage}");
            let before = plane.server.journal_len();
            plane.compositions.reconcile("", composition.name()).await.unwrap();
            plane.check().await;
            assert_eq!(plane.server.journal_len(), before, "{case} {stage} is not quiet");
        }
    }
}

/// Replaces what follows each `prefix` up to the next quote.
fn without_times(prefix: &str, text: &str) -> String {
    let mut parts = text.split(prefix);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(prefix);
        out.push_str(&part[part.find('"').unwrap()..]);
    }
    out
}

#[tokio::test]
async fn a_state_that_comes_back_gets_a_new_number() {
    // REV-3, case 30
    let plane = Plane::new();
    for mode in ["a", "b", "a"] {
        plane.becomes(mode).await;
    }
    assert_eq!(plane.numbers(), [(2, "b".into()), (3, "a".into())]);
    let created = "Normal CreateRevision: Created new revision";
    assert_eq!(plane.events(), [created; 2], "once for each revision");
    plane.check().await;
    plane.is_quiet().await;
    // Each revision can be told by its labels and belongs to the Composition.
    for revision in plane.all("CompositionRevision") {
        assert_eq!(revision.label("channel"), "dev");
        let owner = &revision.at(&["metadata", "ownerReferences"]).unwrap()[0];
        assert_eq!((&owner["uid"], &owner["kind"]), (&json!("comp-uid"), &json!("Composition")));
    }
}

#[tokio::test]
async fn an_annotation_alone_makes_a_revision() {
    // case 31
    let plane = Plane::new();
    plane.becomes("a").await;
    let mut changed = composition("a");
    changed.add_texts("annotations", [("note", "n")]);
    plane.server.seed([changed]);
    plane.reconcile().await.unwrap();
    let newest = plane.all("CompositionRevision").into_iter().max_by_key(composition::number);
    assert_eq!(newest.unwrap().annotation("note"), "n");
    assert_eq!(plane.numbers().len(), 2);
}

#[tokio::test]
async fn restored_revisions_get_their_owner_back_and_keep_their_numbers() {
    // REV-2, case 32
    let plane = Plane::new();
    for mode in ["a", "b", "c"] {
        plane.becomes(mode).await;
    }
    for revision in plane.all("CompositionRevision") {
        plane.patch(&revision, json!({"metadata": {"ownerReferences": null}})).await;
    }
    let numbers = plane.numbers();
    plane.reconcile().await.unwrap();
    assert_eq!(plane.numbers(), numbers);
    for revision in plane.all("CompositionRevision") {
        assert!(composition::is_revision_of(&revision, "comp-uid"));
    }
    plane.check().await;
    plane.is_quiet().await;

    let revision = plane.all("CompositionRevision").remove(0);
    let other =
        json!([{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": true}]);
    plane.patch(&revision, json!({"metadata": {"ownerReferences": other}})).await;
    let error = plane.reconcile().await.unwrap_err();
    let text = format!("{} is already controlled by K n (UID u)", revision.name());
    assert_eq!(error.text, format!("cannot own CompositionRevision: {text}"));
    assert_eq!(plane.events().pop().unwrap(), format!("Warning UpdateRevision: {text}"));
}

#[tokio::test]
async fn failures_are_told_in_crossplane_s_words() {
    // REV-6
    for (call, answer, want, event) in [
        (
            1,
            Answer::Unavailable,
            "cannot list CompositionRevisions: ",
            Some("CreateRevision: cannot list"),
        ),
        (2, Answer::Unavailable, "cannot create CompositionRevision: ", Some("CreateRevision: ")),
        (0, Answer::Unavailable, "cannot get Composition: ", None),
    ] {
        let plane = Plane::new();
        plane.server.seed([composition("a")]);
        plane.server.inject(Fault { call, when: When::Before, crash: false, answer });
        let error = plane.reconcile().await.unwrap_err();
        assert!(error.text.starts_with(want), "{error}");
        assert_eq!(error.class, Class::Unavailable);
        let told = plane.events();
        match event {
            Some(event) => assert!(told[0].starts_with(&format!("Warning {event}")), "{told:?}"),
            None => assert_eq!(told, Vec::<String>::new()),
        }
    }
    let plane = Plane::new();
    plane.becomes("a").await;
    plane.becomes("b").await;
    plane.server.seed([composition("a")]);
    plane.server.restart();
    let fault = |answer| Fault { call: 2, when: When::Before, crash: false, answer };
    plane.server.inject(fault(Answer::Conflict));
    assert_eq!(plane.reconcile().await, Ok(Requeue::Now));
    plane.server.restart();
    plane.server.inject(fault(Answer::Unavailable));
    let error = plane.reconcile().await.unwrap_err();
    assert!(error.text.starts_with("cannot update CompositionRevision spec: "), "{error}");
}

#[tokio::test]
async fn a_composition_that_goes_or_is_gone_needs_nothing() {
    // REV-5
    let plane = Plane::new();
    assert_eq!(plane.reconcile().await, Ok(Requeue::No));
    let mut going = composition("a");
    going.set_at_or_ignore(&["metadata", "finalizers"], json!(["example.org/hold"]));
    plane.server.seed([going.clone()]);
    plane.server.delete(&going.id(), &Delete::default(), soon()).await.unwrap();
    assert_eq!(plane.reconcile().await, Ok(Requeue::No));
    assert_eq!(plane.all("CompositionRevision"), []);
}

#[tokio::test]
async fn pipelines_of_incapable_functions_are_refused() {
    // VP-1, VP-2, VP-5, case 33
    let plane = Plane::new();
    plane.becomes("a").await;
    plane.check().await;
    let valid = ["Synced=True/ReconcileSuccess", "ValidPipeline=True/ValidPipeline"];
    let revision = || plane.all("CompositionRevision").remove(0);
    assert_eq!(shown(&revision()), valid);
    let fine = "Normal CheckCapabilities: All functions have required composition capability";
    assert_eq!(plane.events().pop().unwrap(), fine);
    plane.is_quiet().await;

    let installed = |capabilities: Value| {
        object(json!({"apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
            "metadata": {"name": "f-1", "labels": {"pkg.crossplane.io/package": "f"}},
            "spec": {"desiredState": "Active"}, "status": {"capabilities": capabilities}}))
    };
    plane.server.seed([installed(json!(["operation"]))]);
    plane.check().await;
    let text =
        "function \"f\" (active revision \"f-1\") is missing required capabilities: composition";
    assert_eq!(
        shown(&revision()),
        [valid[0].to_owned(), format!("ValidPipeline=False/MissingCapabilities {text}")]
    );
    assert_eq!(plane.events().pop().unwrap(), format!("Warning CheckCapabilities: {text}"));
    plane.is_quiet().await;

    plane.server.seed([installed(json!(["Compo-sition"]))]);
    plane.check().await;
    assert_eq!(shown(&revision()), valid);
    plane.is_quiet().await;

    // What is not known is not false.
    plane.server.restart();
    plane.server.inject(Fault::before(1));
    let error = plane.checks.reconcile("", revision().name()).await.unwrap_err();
    assert!(error.text.starts_with("cannot list FunctionRevisions: "), "{error}");
    assert_eq!(shown(&revision()), valid);
}

/// A composite resource that uses the revision of a state.
fn xr(plane: &Plane, name: &str, mode: &str) -> Object {
    let revisions = plane.all("CompositionRevision");
    let used = revisions.iter().find(|r| r.str_at(&["spec", "mode"]) == mode).unwrap();
    object(json!({"apiVersion": "example.org/v1", "kind": "Thing",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"crossplane": {"compositionRevisionRef": {"name": used.name()}}}}))
}

#[tokio::test]
async fn old_revisions_that_nothing_uses_are_deleted_if_asked_for() {
    let mut plane = Plane::new();
    for mode in ["a", "b", "c", "d", "e"] {
        plane.becomes(mode).await;
    }
    assert_eq!(plane.numbers().len(), 5, "by default all are kept");
    plane.compositions.history_limit = 1;
    plane.server.seed([xr(&plane, "one", "a")]);
    // A claim may ask for a revision that no composite resource uses yet.
    plane.server.seed([
        object(json!({"apiVersion": composition::API_VERSION, "kind": "CompositeResourceDefinition",
            "metadata": {"name": "things.example.org"},
            "spec": {"group": "example.org", "names": {"kind": "Thing"}, "claimNames": {"kind": "Claim"}}})),
    ]);
    let mut claim = xr(&plane, "two", "b");
    let reference = claim.at(&["spec", "crossplane"]).cloned().unwrap();
    claim.set_at_or_ignore(&["kind"], "Claim");
    claim.set_at_or_ignore(&["spec"], reference);
    plane.server.seed([claim.clone()]);
    plane.reconcile().await.unwrap();
    let left =
        |plane: &Plane| plane.numbers().into_iter().map(|(_, mode)| mode).collect::<String>();
    assert_eq!(left(&plane), "abde");
    let told = plane.events().pop().unwrap();
    assert!(told.starts_with("Normal DeleteRevision: Deleted revision that nothing uses: comp-"));

    // Those in use are looked at again later.
    assert_eq!(plane.reconcile().await, Ok(Requeue::After(Duration::from_mins(10))));
    plane.check().await;
    plane.is_quiet().await;
    plane.server.delete(&claim.id(), &Delete::default(), soon()).await.unwrap();
    plane.reconcile().await.unwrap();
    assert_eq!(left(&plane), "ade");
    // An old state that comes back is the newest one, and is kept.
    plane.becomes("d").await;
    assert_eq!(left(&plane), "aed");
}

#[tokio::test]
async fn a_revision_is_kept_if_only_the_server_knows_its_user() {
    for (kind, kept) in [("Thing", true), ("Other", false)] {
        let mut plane = Plane::new();
        for mode in ["a", "b", "c"] {
            plane.becomes(mode).await;
        }
        let mut user = xr(&plane, "one", "a");
        user.set_at_or_ignore(&["kind"], kind);
        plane.server.seed([user]);
        plane.compositions.history_limit = 1;
        plane.compositions.context.cluster = Disturbed::uncached(plane.server.clone(), "Thing");
        plane.reconcile().await.unwrap();
        assert_eq!(plane.numbers().len(), if kept { 3 } else { 2 });
    }
    // While the kind is not served, nothing is known about its users.
    let mut plane = Plane::new();
    for mode in ["a", "b", "c"] {
        plane.becomes(mode).await;
    }
    plane.compositions.history_limit = 1;
    let unknown = || ReadError::UnknownKind("no matches for kind".into());
    let reads: Reads = Box::new(move |gvk, _| (gvk.kind == "Thing").then(unknown));
    let inner = plane.server.clone();
    plane.compositions.context.cluster = Arc::new(Disturbed { inner, reads });
    assert_eq!(plane.reconcile().await, Ok(Requeue::After(Duration::from_mins(10))));
    assert_eq!(plane.numbers().len(), 3);
}

/// What may happen to a Composition and its revisions.
#[derive(Clone, Copy, Debug)]
enum Happens {
    First,
    Next,
    Back,
    Restored,
    Trimmed,
}

async fn prepared(what: Happens) -> Plane {
    let mut plane = Plane::new();
    if !matches!(what, Happens::First) {
        for mode in ["a", "b", "c"] {
            plane.becomes(mode).await;
            plane.check().await;
        }
    }
    match what {
        Happens::First | Happens::Back => plane.server.seed([composition("a")]),
        Happens::Next => plane.server.seed([composition("d")]),
        Happens::Restored => {
            for revision in plane.all("CompositionRevision") {
                plane.patch(&revision, json!({"metadata": {"ownerReferences": null}})).await;
            }
        }
        Happens::Trimmed => {
            plane.becomes("d").await;
            plane.compositions.history_limit = 1;
        }
    }
    plane
}

async fn run(what: Happens, fault: Option<Fault>) -> (Vec<Value>, usize) {
    let mut plane = prepared(what).await;
    plane.restart();
    if let Some(fault) = fault {
        plane.server.inject(fault);
    }
    let mut failed = plane.reconcile().await.is_err();
    for revision in plane.all("CompositionRevision") {
        failed |= plane.checks.reconcile("", revision.name()).await.is_err();
    }
    assert_eq!(failed, fault.is_some(), "{what:?} {fault:?}");
    let calls = plane.server.calls();
    plane.restart();
    for _ in 0..3 {
        plane.reconcile().await.unwrap();
        plane.check().await;
    }
    plane.is_quiet().await;
    let mut objects = plane.server.objects();
    for object in &mut objects {
        for counted in ["resourceVersion", "generation"] {
            object.remove_at(&["metadata", counted]);
        }
    }
    (objects.into_iter().map(Object::into_value).collect(), calls)
}

#[tokio::test]
async fn a_crash_at_any_call_changes_nothing() {
    use Happens::{Back, First, Next, Restored, Trimmed};
    for what in [First, Next, Back, Restored, Trimmed] {
        let (want, calls) = run(what, None).await;
        for call in 0..calls {
            for when in [When::Before, When::After] {
                let fault = Fault { call, when, crash: true, answer: Answer::Unavailable };
                let (got, _) = run(what, Some(fault)).await;
                assert!(got == want, "{what:?} {fault:?}:\n{}\n{}", json!(got), json!(want));
            }
        }
    }
}
