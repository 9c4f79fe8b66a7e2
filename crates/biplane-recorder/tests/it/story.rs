//! Stories of an owner and its composed resources, told to lines and to a store of each kind.

use std::time::Instant;

use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::json::from_value;
use biplane_proto::redact::Mode;
use biplane_recorder::query::answer::Answer;
use biplane_recorder::query::archive::{Archive, Error};
use biplane_recorder::query::ask::{self, Named, Question};
use biplane_recorder::query::import::{Printed, Reading};
use biplane_recorder::query::lines::Lines;
use biplane_recorder::query::print;
use biplane_recorder::query::stored::Stored;
use serde_json::{Value, json};

use crate::store::world::{Call, NOON, SECOND, World, change, halves};
use crate::world::redactor;

/// What happens in a run of three steps: `env` puts an EnvironmentConfig into the context, `compose`
/// desires resources, `ready` says which are ready.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) trace: &'static str,
    /// In seconds after noon.
    pub(crate) at: i64,
    pub(crate) spec: Value,
    pub(crate) environment: Value,
    pub(crate) input: Value,
    /// The resources that exist, by name.
    pub(crate) observed: Value,
    /// The resources that `compose` desires, by name.
    pub(crate) desired: Value,
    /// The names that `ready` says are ready, or not.
    pub(crate) ready: Vec<(&'static str, bool)>,
    pub(crate) revision: Option<&'static str>,
    /// How long each step takes, in microseconds.
    pub(crate) took: [i64; 3],
}

impl Scene {
    pub(crate) fn new(trace: &'static str, at: i64) -> Self {
        Self {
            trace,
            at,
            spec: json!({"size": 3, "region": "eu"}),
            environment: json!({"tier": "gold"}),
            input: json!({"kind": "Resources"}),
            observed: json!({}),
            desired: json!({"bucket": bucket("eu"), "replica": bucket("us")}),
            ready: vec![("bucket", true), ("replica", true)],
            revision: None,
            took: [5_000, 40_000, 2_000],
        }
    }

    fn composite(&self) -> Value {
        json!({"resource": {
            "apiVersion": "example.org/v1", "kind": "Store",
            "metadata": {"name": "north", "namespace": "shop", "uid": "uid-north",
                "resourceVersion": self.at.to_string()},
            "spec": self.spec,
        }})
    }

    /// Resources as a state has them.
    fn resources(of: &Value) -> Value {
        let all = of.as_object().unwrap().iter();
        all.map(|(name, body)| (name.clone(), json!({"resource": body}))).collect()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        let observed =
            json!({"composite": self.composite(), "resources": Self::resources(&self.observed)});
        let environment = json!({"apiVersion": "v1", "kind": "EnvironmentConfig",
            "metadata": {"name": "eu", "resourceVersion": self.at.to_string()},
            "data": self.environment});
        let context = json!({"environment": self.environment});
        let composed = json!({"resources": Self::resources(&self.desired)});
        let mut said = composed.clone();
        for (name, is_ready) in &self.ready {
            if let Some(slot) = said["resources"].get_mut(*name) {
                slot["ready"] = if *is_ready { "READY_TRUE" } else { "READY_FALSE" }.into();
            }
        }
        let required = json!({"env": {"items": [{"resource": environment}]}});
        let steps = [
            (
                "env",
                json!({"observed": observed, "requiredResources": required, "desired": {}}),
                json!({"desired": {}, "context": context}),
            ),
            (
                "compose",
                json!({"observed": observed, "desired": {}, "context": context, "input": self.input}),
                json!({"desired": composed, "context": context}),
            ),
            (
                "ready",
                json!({"observed": observed, "desired": composed, "context": context}),
                json!({"desired": said, "context": context}),
            ),
        ];
        let call = |(index, (name, request, response)): (usize, (&str, Value, Value))| {
            let number = i32::try_from(index).unwrap();
            let mut call = Call::new(self.trace, number, request, response);
            call.step = name.into();
            call.function = format!("function-{name}");
            call.revision = self.revision.map(str::to_owned);
            call.took = self.took[index];
            call.at = NOON + self.at * SECOND + i64::from(number) * 100_000;
            call
        };
        steps.into_iter().enumerate().map(call).collect()
    }
}

/// A bucket as it is desired.
pub(crate) fn bucket(region: &str) -> Value {
    json!({"apiVersion": "s3.example.org/v1", "kind": "Bucket",
        "spec": {"forProvider": {"region": region}}})
}

/// The same as it is observed, with a name.
pub(crate) fn existing(name: &str, region: &str) -> Value {
    let mut body = bucket(region);
    body["metadata"] = json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}")});
    body
}

/// What a provider did to a bucket, in seconds after noon.
pub(crate) fn entry(name: &str, at: i64, operation: &str, error: Option<&str>) -> ChangeLogEntry {
    let time = jiff::Timestamp::from_microsecond(NOON + at * SECOND).unwrap();
    let mut entry = json!({
        "timestamp": time.to_string(), "provider": "provider-s3:v1",
        "apiVersion": "s3.example.org/v1", "kind": "Bucket", "name": name,
        "operation": format!("OPERATION_TYPE_{operation}"),
        "snapshot": existing(name, "eu"),
    });
    if let Some(error) = error {
        entry["errorMessage"] = error.into();
    }
    from_value(entry).unwrap()
}

/// What is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) runs: Vec<Vec<Call>>,
    pub(crate) changes: Vec<ChangeLogEntry>,
}

impl Story {
    pub(crate) fn of(scenes: &[Scene]) -> Self {
        Self { runs: scenes.iter().map(Scene::calls).collect(), changes: Vec::new() }
    }

    /// As lines that sidecars printed.
    pub(crate) fn lines(&self) -> Lines {
        let emissions = self.runs.iter().flatten().flat_map(Call::emissions);
        let emissions = emissions.map(|emission| Printed::Emission(Box::new(emission)));
        let entries = self.changes.iter().map(|entry| Printed::Entry(Box::new(entry.clone())));
        let printed = (1..).zip(emissions.chain(entries)).collect();
        Lines::new(vec![Reading { printed, skipped: Vec::new() }], &redactor(Mode::Deep))
    }

    /// In a store.
    pub(crate) fn tell(&self, world: &mut World) -> Stored {
        for run in &self.runs {
            world.ledger.record(&halves(run), Instant::now()).unwrap();
            world.ledger.close_all().unwrap();
        }
        for entry in &self.changes {
            let received = entry.timestamp.unwrap().seconds * SECOND;
            world.ledger.append(&[change(entry.clone(), received)]).unwrap();
        }
        Stored::open(&world.text()).unwrap()
    }

    /// Asks lines, a file and a server. All answer the same.
    pub(crate) fn ask(&self, question: &Question) -> Result<Answer, Error> {
        let told = self.told();
        told.ask(question)
    }

    /// Tells the story to all.
    pub(crate) fn told(&self) -> Told {
        let (mut file, mut server) = (World::in_a_file(), World::on_a_server());
        let stored = [self.tell(&mut file), self.tell(&mut server)];
        Told { lines: self.lines(), stored, _worlds: [file, server] }
    }
}

/// A story that was told.
pub(crate) struct Told {
    pub(crate) lines: Lines,
    stored: [Stored; 2],
    _worlds: [World; 2],
}

impl Told {
    /// Asks lines, a file and a server. All answer the same.
    pub(crate) fn ask(&self, question: &Question) -> Result<Answer, Error> {
        let told = |archive: &dyn Archive| ask::answer(archive, question, now());
        let here = told(&self.lines);
        for store in &self.stored {
            match (&here, told(store)) {
                (Ok(here), Ok(there)) => {
                    assert_eq!(print::value(&there), print::value(here), "{question:?}");
                }
                (Err(here), Err(there)) => assert_eq!(there.to_string(), here.to_string()),
                (here, there) => panic!("{question:?}: {there:?} instead of {here:?}"),
            }
        }
        here
    }
}

pub(crate) fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(NOON + 86_400 * SECOND).unwrap()
}

pub(crate) fn named(address: &str) -> Named {
    Named { address: address.to_owned(), namespace: None }
}

/// A random number that is the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What an honest control plane emits: functions answer what follows from what they are given, and
/// what is desired is what is observed a little later.
pub(crate) struct Honest {
    dice: Dice,
    size: u64,
    tier: u64,
    desired: Value,
    observed: Value,
}

impl Honest {
    pub(crate) fn new(seed: u64) -> Self {
        Self { dice: Dice(seed), size: 1, tier: 0, desired: json!({}), observed: json!({}) }
    }

    /// The next run of an owner.
    pub(crate) fn run(&mut self, name: &str, number: u64) -> Vec<Call> {
        match self.dice.roll(20) {
            0 => self.size = self.dice.roll(5),
            1 => self.tier = self.dice.roll(3),
            // The provider reports something.
            2 => {
                for (_, body) in self.observed.as_object_mut().unwrap() {
                    body["status"] = json!({"checked": self.dice.roll(1000)});
                }
            }
            _ => {}
        }
        let buckets: Value = (0..=self.size)
            .map(|n| {
                let mut body = existing(&format!("{name}-{n}"), "eu");
                body["spec"]["forProvider"]["tier"] = json!(self.tier);
                body["spec"]["forProvider"]["of"] = json!(self.size);
                (format!("bucket-{n}"), body)
            })
            .collect();
        let scene = Scene {
            spec: json!({"size": self.size}),
            environment: json!({"tier": self.tier}),
            observed: self.observed.clone(),
            desired: buckets.clone(),
            took: [3, 20, 2].map(|ms| {
                let usual = ms * 1000;
                // Now and then something takes long.
                let long = if self.dice.roll(400) == 0 { 3_000_000 } else { 0 };
                usual + i64::try_from(self.dice.roll(10_000)).unwrap() + long
            }),
            ..Scene::new("", 0)
        };
        if self.dice.roll(3) > 0 {
            self.observed = self.desired.clone();
        }
        self.desired = buckets;
        let mut calls = scene.calls();
        if self.dice.roll(40) == 0 {
            // A function is away for a moment.
            calls.truncate(2);
            calls[1].response = Some(Value::Null);
            calls[1].error = "connection refused".into();
        }
        for call in &mut calls {
            call.trace = format!("{name}-{number:06}");
            call.name = name.into();
            call.at += i64::try_from(number).unwrap() * 60 * SECOND - (call.at - NOON);
            call.at += i64::from(call.index) * 50_000;
        }
        calls
    }
}
