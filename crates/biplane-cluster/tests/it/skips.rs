//! Applies that would change nothing can be told from the object alone. The clusters are the judge:
//! whatever is applied is asked about first, and nothing may change that was told to stay.

mod generate;
mod mirror;

use biplane_model::{Object, Value};
use biplane_schema::merge::{Applying, Ledger, Verdict, verdict};
use biplane_testkit::Random;
use serde_json::json;

use crate::sequences::memory::Memory;
use crate::sequences::server::Server;
use crate::sequences::{Answer, Sequence, Step, World, change, definitions, prepare, sequences};
use generate::Generator;
use mirror::Mirror;

/// How often each answer was given, and which were wrong.
#[derive(Debug, Default)]
struct Tally {
    sequences: usize,
    applies: usize,
    /// Applies that changed nothing.
    unchanged: usize,
    /// Those that could be told from the object.
    same: usize,
    /// Those that only the ledger knew.
    known: usize,
    wrong: Vec<String>,
}

impl Tally {
    /// The share of applies that changed nothing and could not be told from the object.
    fn unseen(&self) -> f64 {
        1.0 - self.same as f64 / self.unchanged as f64
    }

    #[allow(clippy::print_stdout)] // the figures, for those who ask with --nocapture
    fn check(&self, title: &str) {
        let Self { sequences, applies, unchanged, same, known, wrong } = self;
        println!(
            "{title}, seed {}: {sequences} sequences, {applies} applies, {unchanged} changed nothing: {same} \
             told from the object ({:.2} % not), {known} more by the ledger",
            first_seed(),
            self.unseen() * 100.0,
        );
        let shown: Vec<&str> = wrong.iter().take(4).map(String::as_str).collect();
        assert!(wrong.is_empty(), "{title}: {} wrong:\n{}", wrong.len(), shown.join("\n\n"));
    }
}

/// An apply.
#[derive(Clone, Debug)]
struct Intent {
    object: Object,
    manager: &'static str,
    status: bool,
    force: bool,
}

impl Intent {
    fn how(&self) -> Applying<'_> {
        Applying { manager: self.manager, subresource: self.status.then_some("status") }
    }

    fn send(&self, world: &dyn World) -> Answer {
        let verb = if self.status { "applyStatus" } else { "apply" };
        let (manager, force, object) = (self.manager, self.force, self.object.clone());
        world.run(&Step { verb, manager, force, object, patch: &Value::Null })
    }
}

fn found(world: &dyn World, object: &Object) -> Option<Object> {
    match world.get(object) {
        Answer::Object(object) => Some(object),
        Answer::Gone | Answer::Refused { .. } => None,
    }
}

/// The object without the times of its managers, and without its version. The order of the managers
/// follows the times.
///
/// The generation counts up if a null is applied and then dropped. A ledger may stop that.
fn timeless(object: &Object, generation: bool) -> Value {
    let mut object = object.to_value();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    if !generation {
        metadata.remove("generation");
    }
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        entries.sort_by_cached_key(Value::to_string);
    }
    object
}

/// Whether an apply failed because of what others wrote in another version.
fn is_refused_for_others(answer: &Answer, before: &Object, intent: &Object) -> bool {
    let entries = before.at(&["metadata", "managedFields"]).and_then(Value::as_array);
    let versions = entries.into_iter().flatten().map(|entry| &entry["apiVersion"]);
    matches!(answer, Answer::Refused { reason: "Invalid" | "Malformed", .. })
        && versions.into_iter().any(|version| version != intent.api_version())
}

/// Asks about an intent, applies it, and compares what happened with what was told.
fn judge(world: &dyn World, intent: &Intent, ledger: &mut Ledger, tally: &mut Tally, hint: &str) {
    let Some(before) = found(world, &intent.object) else {
        if let Answer::Object(answer) = intent.send(world) {
            ledger.remember(&intent.object, &answer, &intent.how());
        }
        return;
    };
    let same = verdict(&intent.object, &before, &intent.how()) == Verdict::Same;
    let known = !same && ledger.knows(&intent.object, &before, &intent.how());
    let answer = intent.send(world);
    let after = match &answer {
        // Such an object may be gone.
        Answer::Object(answer) if !before.is_being_deleted() => Some(answer.clone()),
        _ => found(world, &intent.object),
    };
    if let Answer::Object(answer) = &answer {
        ledger.remember(&intent.object, answer, &intent.how());
    }
    let unchanged =
        after.as_ref().is_some_and(|after| timeless(after, !known) == timeless(&before, !known));
    let stayed = unchanged && matches!(answer, Answer::Object(_));
    let refused = unchanged && is_refused_for_others(&answer, &before, &intent.object);
    tally.applies += 1;
    tally.unchanged += usize::from(stayed);
    tally.same += usize::from(stayed && same);
    tally.known += usize::from(stayed && known);
    if (same || known) && !stayed && !refused {
        let who = if same { "the object" } else { "the ledger" };
        tally.wrong.push(format!(
            "{hint}: {who} told that nothing changes\nintent {} force={} {}\nbefore {}\nafter {}",
            intent.manager,
            intent.force,
            intent.object.to_value(),
            before.to_value(),
            match (answer, after) {
                (Answer::Object(_), Some(after)) => after.to_value().to_string(),
                (answer, _) => format!("{answer:?}"),
            },
        ));
    }
}

/// Everything that one sequence needs.
struct Player<'a> {
    world: &'a dyn World,
    generator: Generator,
    kind: &'static str,
    name: String,
    intents: Vec<Intent>,
    ledger: Ledger,
}

impl Player<'_> {
    fn bare(&mut self) -> Object {
        let mut object = json!({
            "apiVersion": "example.org/v1",
            "kind": self.kind,
            "metadata": {"name": self.name},
        });
        if self.kind == "Dual" && self.generator.chance(25) {
            object["apiVersion"] = json!("example.org/v2");
        }
        if self.kind != "Plain" {
            object["metadata"]["namespace"] = json!("default");
        }
        Object::from_value(object).unwrap()
    }

    /// An object of the sequence with this content.
    fn object(&mut self, content: &Value) -> Object {
        let mut object = self.bare();
        for (name, value) in content.as_object().unwrap() {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    for (name, value) in metadata {
                        object.set_at_or_ignore(&["metadata", name], value.clone());
                    }
                }
                value => object.set_at_or_ignore(&[name], value.clone()),
            }
        }
        object
    }

    /// A new intent, one that was applied before, or one that differs a little from that.
    fn intent(&mut self) -> Intent {
        let manager = ["a", "b", "c"][self.generator.random.below(3)];
        let force = self.generator.chance(60);
        let earlier = match self.intents.len() {
            0 => None,
            count => self.intents.get(self.generator.random.below(count)).cloned(),
        };
        let intent = match (earlier, self.generator.random.below(10)) {
            (Some(earlier), 0..5) => Intent { force, ..earlier },
            (Some(earlier), 5) => Intent { manager, force, ..earlier },
            (Some(earlier), 6 | 7) => {
                let live = found(self.world, &earlier.object);
                let mut content = earlier.object.to_value();
                let fields = content.as_object_mut().unwrap();
                for name in ["apiVersion", "kind", "metadata"] {
                    fields.remove(name);
                }
                let mut content = if earlier.status {
                    self.generator.status()
                } else {
                    self.generator.variant(&content, self.kind, live.as_ref())
                };
                if let Some(metadata) = earlier.object.get("metadata").filter(|_| !earlier.status) {
                    content["metadata"] = metadata.clone();
                }
                Intent { object: self.object(&content), ..earlier }
            }
            _ => {
                let status = self.kind == "Widget" && self.generator.chance(25);
                let content = if status {
                    self.generator.status()
                } else {
                    self.generator.content(self.kind)
                };
                Intent { object: self.object(&content), manager, status, force }
            }
        };
        self.fenced(intent)
    }

    /// Some clients name the state that they have read.
    fn fenced(&mut self, mut intent: Intent) -> Intent {
        if self.generator.chance(10)
            && let Some(live) = found(self.world, &intent.object)
        {
            intent.object.set_meta("uid", live.uid());
            if self.generator.chance(50) {
                intent.object.set_meta("resourceVersion", live.resource_version());
            }
        }
        intent
    }

    /// A write that is not an apply.
    fn disturb(&mut self) {
        let manager = ["a", "u", "v"][self.generator.random.below(3)];
        let object = self.bare();
        let run = |world: &dyn World, verb: &str, object: Object, patch: &Value| {
            world.run(&Step { verb, manager, force: false, object, patch })
        };
        let content = self.generator.content(self.kind);
        let mut patch = content.clone();
        match self.generator.random.below(10) {
            0 => drop(run(self.world, "delete", object, &Value::Null)),
            1 => {
                let created = self.object(&content);
                drop(run(self.world, "create", created, &Value::Null));
            }
            2 => {
                let patch = json!({"spec": self.removal(&object)});
                drop(run(self.world, "mergePatch", object, &patch));
            }
            3..7 => drop(run(self.world, "mergePatch", object, &patch)),
            _ => {
                let Some(live) = found(self.world, &object) else { return };
                let status = self.kind == "Widget" && self.generator.chance(40);
                if status {
                    patch = self.generator.status();
                } else if self.generator.chance(10) {
                    patch = json!({"metadata": {"managedFields": [{}]}});
                }
                let mut changed = live.into_value();
                change(&mut changed, &patch);
                let changed = Object::from_value(changed).unwrap();
                let verb = if status { "updateStatus" } else { "update" };
                drop(run(self.world, verb, changed, &Value::Null));
            }
        }
    }

    /// Null for one of the fields that are there.
    fn removal(&mut self, object: &Object) -> Value {
        let live = found(self.world, object);
        let spec = live.as_ref().and_then(|live| live.get("spec")).and_then(Value::as_object);
        let names: Vec<&String> = spec.into_iter().flat_map(|spec| spec.keys()).collect();
        match names.len() {
            0 => json!({}),
            count => json!({names[self.generator.random.below(count)]: null}),
        }
    }
}

/// Plays one sequence. With `put_back`, every intent is also judged in the final state.
fn play(
    world: &dyn World,
    put_back: Option<&dyn Fn(&Object)>,
    seed: u64,
    odd: bool,
    tally: &mut Tally,
) {
    let mut generator = Generator { random: Random::new(seed), odd };
    let kind = ["Widget", "Widget", "Widget", "Dual", "Dual", "Simple", "Plain"]
        [generator.random.below(7)];
    let (name, intents, ledger) = (format!("s{seed}"), Vec::new(), Ledger::new());
    let mut player = Player { world, generator, kind, name, intents, ledger };
    let hint = format!("seed {seed}{}", if odd { ", odd" } else { "" });
    for _ in 0..4 + player.generator.random.below(8) {
        if player.generator.chance(30) {
            player.disturb();
        } else {
            let intent = player.intent();
            judge(world, &intent, &mut player.ledger, tally, &hint);
            player.intents.push(intent);
        }
    }
    tally.sequences += 1;
    let Some(put_back) = put_back else { return };
    for intent in &player.intents {
        if let Some(live) = found(world, &intent.object) {
            judge(world, intent, &mut player.ledger, tally, &hint);
            put_back(&live);
        }
    }
}

/// The seed of a run. `BIPLANE_SKIP_SEED` chooses another one.
fn first_seed() -> u64 {
    #[allow(clippy::disallowed_methods)] // set by the developer who runs the test
    let given = std::env::var("BIPLANE_SKIP_SEED").ok();
    given.map_or(1, |text| text.parse().unwrap())
}

/// Plays sequences on memory clusters, on two threads.
fn play_in_memory(count: u64, odd: bool) -> Tally {
    let first = first_seed();
    let definitions = definitions();
    // A cluster keeps a journal of all writes, so each one is used for some sequences only.
    let batches: Vec<u64> = (first..first + count).step_by(250).collect();
    let run = |batches: &[u64]| {
        let mut tally = Tally::default();
        for start in batches {
            let memory = Memory::new(&definitions);
            for seed in *start..(start + 250).min(first + count) {
                play(&memory, Some(&|object| memory.put_back(object)), seed, odd, &mut tally);
            }
        }
        tally
    };
    let (left, right) = batches.split_at(batches.len() / 2);
    let (mut a, b) = std::thread::scope(|scope| {
        let right = scope.spawn(|| run(right));
        (run(left), right.join().unwrap())
    });
    a.sequences += b.sequences;
    a.applies += b.applies;
    a.unchanged += b.unchanged;
    a.same += b.same;
    a.known += b.known;
    a.wrong.extend(b.wrong);
    a
}

#[test]
fn plain_applies_that_change_nothing_are_told_from_the_object() {
    let tally = play_in_memory(10_000, false);
    tally.check("plain");
    assert_eq!(tally.sequences, 10_000);
    assert!(tally.same > 20_000, "{}", tally.same);
    // Most of these are objects that are written in two versions.
    assert!(tally.unseen() < 0.1, "{}", tally.unseen());
}

#[test]
fn odd_applies_that_change_something_are_never_told_to_change_nothing() {
    let tally = play_in_memory(10_000, true);
    tally.check("odd");
    assert_eq!(tally.sequences, 10_000);
    assert!(tally.same > 10_000 && tally.known > 1_000, "{} {}", tally.same, tally.known);
}

#[test]
fn an_api_server_agrees_about_what_changes_nothing() {
    let definitions = definitions();
    let server = Server::start(&definitions);
    let mirror = Mirror::new(&server, &definitions);
    let mut tally = Tally::default();
    let first = first_seed();
    for seed in first..first + 500 {
        let odd = seed % 2 == 0;
        mirror.without_widgets.set(odd);
        play(&mirror, None, seed, odd, &mut tally);
    }
    tally.check("server");
    assert!(tally.same > 300 && tally.known > 20, "{} {}", tally.same, tally.known);
    let different = mirror.different.take();
    let shown: Vec<&str> = different.iter().take(4).map(String::as_str).collect();
    assert!(
        different.is_empty(),
        "the memory cluster gave {} different answers:\n{}",
        different.len(),
        shown.join("\n\n")
    );
}

/// Every intent of a sequence, in the states that the sequence goes through.
fn judge_recorded(memory: &Memory, sequence: &Sequence, tally: &mut Tally) {
    let mut ledger = Ledger::new();
    let mut intents: Vec<Intent> = Vec::new();
    for step in &sequence.steps {
        let prepared = prepare(memory, sequence, step);
        let status = prepared.verb == "applyStatus";
        if status || prepared.verb == "apply" {
            let manager =
                ["a", "b", "c", "d"].into_iter().find(|m| *m == prepared.manager).unwrap();
            let (object, force) = (prepared.object, prepared.force);
            intents.push(Intent { object, manager, status, force });
            judge(memory, intents.last().unwrap(), &mut ledger, tally, &sequence.name);
        } else {
            memory.run(&prepared);
        }
        for intent in &intents {
            if let Some(live) = found(memory, &intent.object) {
                judge(memory, intent, &mut ledger, tally, &sequence.name);
                memory.put_back(&live);
            }
        }
    }
    tally.sequences += 1;
}

#[test]
fn recorded_sequences_are_told_right_in_every_state() {
    let memory = Memory::new(&definitions());
    let mut tally = Tally::default();
    for sequence in sequences() {
        judge_recorded(&memory, &sequence, &mut tally);
    }
    tally.check("recorded");
    assert!(tally.same > 100, "{}", tally.same);
}
