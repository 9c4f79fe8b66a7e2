//! Stores of both kinds, and runs to put into them.

use std::time::{Duration, Instant};

use biplane_proto::inspector::shipped::{CompositionMeta, StepMeta, step_meta::Context};
use biplane_proto::redact::{Half, Mode};
use biplane_proto::{Timestamp, changelogs::ChangeLogEntry};
use biplane_recorder::emission::{Details, Dialect, Emission};
use biplane_recorder::store::rows::{Found, RunFilter, RunRow};
use biplane_recorder::store::{
    ChangeRecord, HalfRecord, Ledger, LedgerOptions, Location, Retention, Store,
};
use serde_json::{Value, json};

pub(crate) use crate::world::redactor;

/// A time at the beginning of an hour.
pub(crate) const NOON: i64 = 1_800_000_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const HOUR: i64 = 3600 * SECOND;

/// Runs a test on a store of each kind.
macro_rules! on_both {
    ($($(#[$attribute:meta])* fn $name:ident($world:ident) $body:block)*) => {
        $(
            $(#[$attribute])*
            fn $name($world: &mut $crate::store::world::World) $body
        )*
        mod sqlite {
            $(
                #[test]
                fn $name() {
                    super::$name(&mut $crate::store::world::World::in_a_file());
                }
            )*
        }
        mod postgres {
            $(
                #[test]
                fn $name() {
                    super::$name(&mut $crate::store::world::World::on_a_server());
                }
            )*
        }
    };
}
pub(crate) use on_both;

pub(crate) fn options() -> LedgerOptions {
    LedgerOptions { cluster: "c".into(), source: "test".into(), failures_only: false }
}

pub(crate) fn open(location: &Location, options: LedgerOptions) -> Ledger {
    Ledger::open(location, &[7; 16], options, (NOON, Instant::now())).unwrap()
}

pub(crate) fn forever() -> Retention {
    Retention {
        runs_for: i64::MAX / 4,
        changes_for: i64::MAX / 4,
        size: u64::MAX,
        per_owner: 1 << 40,
    }
}

/// A call to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) trace: String,
    pub(crate) name: String,
    pub(crate) index: i32,
    pub(crate) step: String,
    pub(crate) function: String,
    pub(crate) composition: String,
    pub(crate) revision: Option<String>,
    pub(crate) at: i64,
    pub(crate) request: Value,
    /// Nothing: no answer came.
    pub(crate) response: Option<Value>,
    pub(crate) error: String,
    pub(crate) took: i64,
}

impl Call {
    pub(crate) fn new(trace: &str, index: i32, request: Value, response: Value) -> Self {
        Self {
            trace: trace.into(),
            name: "north".into(),
            index,
            step: format!("step-{index}"),
            function: format!("function-{index}"),
            composition: "stores".into(),
            revision: None,
            at: NOON,
            request,
            response: Some(response),
            error: String::new(),
            took: 1000,
        }
    }

    pub(crate) fn of(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    pub(crate) fn at(mut self, at: i64) -> Self {
        self.at = at;
        self
    }

    fn meta(&self) -> StepMeta {
        StepMeta {
            timestamp: Some(Timestamp {
                seconds: self.at / SECOND,
                nanos: i32::try_from(self.at % SECOND * 1000).unwrap() + 7,
            }),
            trace_id: self.trace.clone(),
            span_id: format!("{}-{}", self.trace, self.index),
            step_index: self.index,
            step_name: self.step.clone(),
            iteration: 0,
            function_name: self.function.clone(),
            context: Some(Context::CompositionMeta(CompositionMeta {
                composition_name: self.composition.clone(),
                composite_resource_uid: format!("uid-{}", self.name),
                composite_resource_name: self.name.clone(),
                composite_resource_namespace: "shop".into(),
                composite_resource_api_version: "example.org/v1".into(),
                composite_resource_kind: "Store".into(),
            })),
        }
    }

    pub(crate) fn emissions(&self) -> Vec<Emission> {
        let half = |half, payload: Vec<u8>, error: &str, took| Emission {
            dialect: Dialect::Shipped,
            half,
            meta: Some(self.meta()),
            payload,
            error: error.into(),
            details: Details { took, revision: took.and(self.revision.clone()), cached: None },
        };
        let mut all = vec![half(Half::Request, self.request.to_string().into(), "", None)];
        if let Some(response) = &self.response {
            let payload = match response {
                Value::Null => Vec::new(),
                value => value.to_string().into(),
            };
            let took = Some(Duration::from_micros(self.took.try_into().unwrap()));
            all.push(half(Half::Response, payload, &self.error, took));
        }
        all
    }
}

pub(crate) fn halves(calls: &[Call]) -> Vec<HalfRecord> {
    let redactor = redactor(Mode::Deep);
    let mut all = Vec::new();
    for call in calls {
        let mut redacted = false;
        for emission in call.emissions() {
            let payload = redactor.line_payload(emission.half, &emission.payload, redacted);
            redacted |= payload.is_redacted();
            all.push(HalfRecord::new(&emission, payload, call.at, Some(Instant::now())).unwrap());
        }
    }
    all
}

pub(crate) fn change(entry: ChangeLogEntry, received: i64) -> ChangeRecord {
    ChangeRecord::new(redactor(Mode::Deep).entry(entry), received).unwrap()
}

/// A store with its ledger.
pub(crate) struct World {
    pub(crate) ledger: Ledger,
    pub(crate) location: Location,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn in_a_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("store.db"));
        Self { ledger: open(&location, options()), location, _folder: Some(folder) }
    }

    pub(crate) fn on_a_server() -> Self {
        Self::at(crate::postgres::database())
    }

    /// A store that exists.
    pub(crate) fn at(location: Location) -> Self {
        Self { ledger: open(&location, options()), location, _folder: None }
    }

    /// The location as a flag has it.
    pub(crate) fn text(&self) -> String {
        match &self.location {
            Location::File(path) => path.to_str().unwrap().to_owned(),
            Location::Server(text) => text.clone(),
            Location::Memory => String::new(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.ledger.store()
    }

    /// Ends the process, so to speak, and begins anew.
    pub(crate) fn restart(&mut self) {
        self.ledger = open(&self.location, options());
    }

    pub(crate) fn record(&mut self, calls: &[Call]) {
        self.ledger.record(&halves(calls), Instant::now()).unwrap();
    }

    /// Records the calls of a run and ends it.
    pub(crate) fn run(&mut self, calls: &[Call]) -> RunRow {
        self.record(calls);
        self.ledger.close_all().unwrap();
        self.found(&calls[0].trace)
    }

    pub(crate) fn found(&self, trace: &str) -> RunRow {
        match self.store().run(trace).unwrap() {
            Found::One(run) => run,
            other => panic!("{trace}: {other:?}"),
        }
    }

    pub(crate) fn runs(&self) -> Vec<RunRow> {
        self.store().runs(&RunFilter::default(), 1000, None).unwrap()
    }

    /// Removes until there is nothing to remove.
    pub(crate) fn sweep(&mut self, retention: &Retention, now: i64) -> u64 {
        let mut all = 0;
        loop {
            let swept = self.ledger.sweep(retention, now).unwrap();
            if !swept.any() {
                return all;
            }
            all += swept.runs + swept.changes + swept.content;
        }
    }
}

/// An XR as it is observed.
pub(crate) fn xr(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Store",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": spec,
    })
}

pub(crate) fn bucket(name: &str, region: &str) -> Value {
    json!({
        "apiVersion": "s3.example.org/v1", "kind": "Bucket",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}")},
        "spec": {"forProvider": {"region": region}},
    })
}

/// A run of one step that desires a bucket.
pub(crate) fn simple(trace: &str, region: &str) -> Call {
    let request = json!({
        "meta": {"tag": format!("tag of {region}")},
        "observed": {"composite": {"resource": xr("north", &json!({"region": region}))}},
        "desired": {},
    });
    let response = json!({
        "meta": {"tag": format!("tag of {region}"), "ttl": "60s"},
        "desired": {"resources": {"bucket": {"resource": bucket("north-1", region)}}},
    });
    Call::new(trace, 0, request, response)
}
