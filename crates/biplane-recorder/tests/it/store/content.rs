//! What is stored comes back: payloads of recordings and of any other form.

use std::path::Path;
use std::time::Instant;

use biplane_proto::changelogs::SendChangeLogRequest;
use biplane_proto::inspector::shipped;
use biplane_proto::json::{self, from_value};
use biplane_proto::redact::{Half, Mode};
use biplane_recorder::emission::{Details, Dialect, Emission};
use biplane_recorder::store::rows::{ChangeFilter, Payload};
use biplane_recorder::store::{Error, HalfRecord, Store};
use serde_json::{Value, json};

use super::world::{Call, NOON, World, change, on_both, open, options};
use crate::recordings::{lines, recorded};
use crate::world::redactor;

/// The emissions that a control plane was recorded to send.
fn of_a_control_plane() -> Vec<Emission> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/inspector.jsonl.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut text).unwrap();
    let mut all = Vec::new();
    for case in text.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        for line in case["files"]["emissions.jsonl"].as_str().unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let meta: shipped::StepMeta = from_value(line["meta"].clone()).unwrap();
            let half = if line["method"] == "EmitRequest" { Half::Request } else { Half::Response };
            all.push(Emission {
                dialect: Dialect::Shipped,
                half,
                meta: Some(meta),
                payload: match &line["payload"] {
                    Value::Null => Vec::new(),
                    payload => payload.to_string().into(),
                },
                error: line["error"].as_str().unwrap_or_default().into(),
                details: Details::default(),
            });
        }
    }
    assert!(all.len() > 20, "{}", all.len());
    all
}

/// Stores one pair, and returns what comes back.
pub(super) fn stored(
    world: &mut World,
    trace: &str,
    request: &[u8],
    response: &[u8],
) -> (Payload, Payload) {
    let mut call = Call::new(trace, 0, Value::Null, Value::Null);
    call.name = trace.into();
    let mut emissions = call.emissions();
    emissions[0].payload = request.to_vec();
    emissions[1].payload = response.to_vec();
    let redactor = redactor(Mode::Deep);
    let halves: Vec<HalfRecord> = emissions
        .iter()
        .map(|emission| {
            let payload = redactor.line_payload(emission.half, &emission.payload, false);
            HalfRecord::new(emission, payload, NOON, Some(Instant::now())).unwrap()
        })
        .collect();
    world.ledger.record(&halves, Instant::now()).unwrap();
    world.ledger.close_all().unwrap();
    let run = world.found(trace);
    let step = world.store().steps(run.id).unwrap().remove(0);
    let exchange = world.store().exchange(step.exchange.unwrap()).unwrap().unwrap();
    (exchange.request.unwrap(), exchange.response.unwrap())
}

/// Printed as lines print it.
fn printed(value: &Value) -> String {
    biplane_go::json::to_string(value)
}

on_both! {
    fn what_a_control_plane_emitted_comes_back(world) {
        let emissions = of_a_control_plane();
        let redactor = redactor(Mode::Deep);
        let mut expected = Vec::new();
        for emission in &emissions {
            let payload = redactor.line_payload(emission.half, &emission.payload, false);
            expected.push(payload.get().clone());
            let half = HalfRecord::new(emission, payload, NOON, None).unwrap();
            world.ledger.record(&[half], Instant::now()).unwrap();
        }
        world.ledger.close_all().unwrap();
        for (emission, expected) in emissions.iter().zip(expected) {
            let meta = emission.meta.as_ref().unwrap();
            let run = world.found(&meta.trace_id);
            let steps = world.store().steps(run.id).unwrap();
            let step = steps.iter().find(|step| step.span == meta.span_id).unwrap();
            assert_eq!(step.index, i64::from(meta.step_index));
            assert_eq!((step.step.as_str(), step.function.as_str()), (meta.step_name.as_str(), meta.function_name.as_str()));
            let time = meta.timestamp.unwrap();
            assert_eq!(i128::from(step.started) * 1000 + i128::from(step.nanos), i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos));
            let exchange = world.store().exchange(step.exchange.unwrap()).unwrap().unwrap();
            let payload = match emission.half {
                Half::Request => exchange.request.unwrap(),
                Half::Response => exchange.response.unwrap(),
            };
            match payload {
                Payload::Empty => assert_eq!(expected, Value::Null),
                Payload::Json(value) => assert_eq!(printed(&value), printed(&expected)),
                Payload::Opaque { .. } => panic!("{expected}"),
            }
            if emission.half == Half::Response {
                assert_eq!(exchange.error.unwrap_or_default(), emission.error);
            }
        }
    }

    fn payloads_of_any_form_come_back(world) {
        let cases = [
            json!({}),
            json!({"meta": null, "observed": null, "desired": 3, "results": "x", "conditions": {}}),
            json!({"observed": {"composite": {}, "resources": {}}, "desired": {"resources": {"a": {}}}}),
            json!({"observed": {"resources": {"": {"resource": {}}}}, "desired": {"more": 1}}),
            json!({"desired": {"resources": {"a": {"resource": {"n": [1, 0.5, 1e21, -0.0]}, "ready": "READY_TRUE"}}}}),
            json!({"desired": {"resources": {"a": {"resource": null, "ready": 7}}}}),
            json!({"desired": {"composite": {"connectionDetails": {"k": "djE=", "l": ""}, "ready": "READY_FALSE"}}}),
            json!({"requiredResources": {"a": {}, "b": {"items": []}, "c": {"items": [{"resource": {}}, {}]}}}),
            json!({"extraResources": {"a": {"items": [{"resource": {"kind": "X"}}]}}, "requiredSchemas": {"s": {}}}),
            json!({"meta": {"tag": "t", "ttl": "1.500s"}, "context": {"a": {"b": null}}, "output": {}}),
            json!({"meta": {"tag": "", "ttl": "0.0000001s"}, "requirements": {"resources": {}}}),
            json!({"results": [{"severity": "SEVERITY_FATAL", "message": "m", "reason": "", "target": "TARGET_COMPOSITE"}]}),
            json!({"results": [{"severity": 9, "message": "m"}, {"extra": true}, 3]}),
            json!({"results": []}),
            json!({"conditions": [{"type": "T", "status": "STATUS_CONDITION_FALSE", "reason": "R", "message": "", "target": "TARGET_UNSPECIFIED"}]}),
            json!({"credentials": {"c": {"credentialData": {"data": {"k": "djE="}}}}, "input": {"apiVersion": "v1"}}),
            json!({"unknown": {"deep": [[]]}}),
        ];
        let redactor = redactor(Mode::Deep);
        for (number, case) in cases.iter().enumerate() {
            let text = case.to_string();
            let (request, response) = stored(world, &format!("trace-{number}"), text.as_bytes(), text.as_bytes());
            for (half, payload) in [(Half::Request, request), (Half::Response, response)] {
                let expected = redactor.line_payload(half, text.as_bytes(), false);
                let Payload::Json(value) = payload else { panic!("{text}") };
                assert_eq!(printed(&value), printed(expected.get()), "{half:?}");
            }
        }
        for (number, text) in ["not JSON PLANTED", "\"PLANTED\"", "[1]", "3"].into_iter().enumerate() {
            let (request, _) = stored(world, &format!("opaque-{number}"), text.as_bytes(), b"");
            assert!(matches!(request, Payload::Opaque { bytes, .. } if bytes == text.len() as u64), "{text}");
        }
        let (request, response) = stored(world, "empty", b"", b"null");
        assert_eq!((request, response), (Payload::Empty, Payload::Empty));
    }

    fn entries_come_back_as_the_lines_that_were_printed(world) {
        let cases = recorded("changelogs.jsonl.gz");
        let mut expected = String::new();
        for case in &cases {
            let request: SendChangeLogRequest = from_value(case["request"].clone()).unwrap();
            let Some(mut entry) = request.entry else { continue };
            entry.timestamp.iter_mut().for_each(|time| time.nanos = 0);
            world.ledger.append(&[change(entry, NOON)]).unwrap();
            expected.push_str(&lines(case));
        }
        let filter = ChangeFilter { newer_than: Some(0), ..ChangeFilter::default() };
        let mut found = String::new();
        for change in world.store().changes(&filter, 100, None).unwrap() {
            let entry = world.store().entry(&change).unwrap();
            found.push_str(&json::to_string(&entry).unwrap());
            found.push('\n');
        }
        assert_eq!(found, expected);
        let verified = world.store().verify().unwrap();
        assert_eq!((verified.len(), verified[0].entries), (1, 22));
        assert_eq!(verified[0].broken, []);
    }
}

/// A message of random form: known fields with right and wrong content.
fn random(next: &mut impl FnMut(usize) -> usize, depth: usize) -> Value {
    const KEYS: [&str; 22] = [
        "observed",
        "desired",
        "composite",
        "resources",
        "resource",
        "ready",
        "connectionDetails",
        "requiredResources",
        "extraResources",
        "items",
        "context",
        "input",
        "meta",
        "tag",
        "ttl",
        "results",
        "conditions",
        "severity",
        "message",
        "type",
        "status",
        "kind",
    ];
    const TEXTS: [&str; 8] = [
        "READY_TRUE",
        "READY_UNSPECIFIED",
        "SEVERITY_FATAL",
        "60s",
        "",
        "KipSRURBQ1RFRCoq",
        "STATUS_CONDITION_TRUE",
        "Secret",
    ];
    match if depth == 0 { next(4) } else { next(9) } {
        0 => Value::Null,
        1 => TEXTS[next(TEXTS.len())].into(),
        2 => json!(next(1000)),
        3 => json!(next(1000) as f64 / 7.0),
        4 => (0..next(3)).map(|_| random(next, depth - 1)).collect(),
        _ => (0..next(5))
            .map(|_| (KEYS[next(KEYS.len())].to_owned(), random(next, depth - 1)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[test]
fn payloads_of_random_form_come_back() {
    let mut world = World::in_a_file();
    let redactor = redactor(Mode::Deep);
    let mut state = 42_u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut objects = 0;
    for number in 0..400 {
        let text = random(&mut next, 6).to_string();
        let (request, response) =
            stored(&mut world, &format!("t-{number}"), text.as_bytes(), text.as_bytes());
        for (half, payload) in [(Half::Request, request), (Half::Response, response)] {
            let expected = redactor.line_payload(half, text.as_bytes(), false).into_inner();
            match payload {
                Payload::Json(value) => {
                    objects += 1;
                    assert_eq!(printed(&value), printed(&expected), "{text}");
                }
                Payload::Empty => assert_eq!(expected, Value::Null),
                Payload::Opaque { .. } => assert!(!expected.is_object()),
            }
        }
    }
    assert!(objects > 200, "{objects}");
}

#[test]
fn a_store_that_is_not_there_and_one_of_a_newer_program_are_told() {
    let mut world = World::in_a_file();
    world.run(&[super::world::simple("a", "eu")]);
    let path = world.location.file().unwrap().to_owned();
    let missing = biplane_recorder::store::Location::File(path.with_file_name("missing"));
    assert!(matches!(Store::open_existing(&missing), Err(Error::Missing(_))));
    assert!(!path.with_file_name("missing").exists());
    assert_eq!(Store::open_existing(&world.location).unwrap().id().unwrap(), [7; 16]);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute("UPDATE meta SET value = CAST('999' AS BLOB) WHERE key = 'version'", []).unwrap();
    for error in [
        Store::open_existing(&world.location).unwrap_err(),
        Store::open(&world.location, &[1; 16]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Newer { found: 999, .. }), "{error}");
    }
    std::fs::write(
        path.with_file_name("other"),
        "this is not a database, but it is long enough".repeat(100),
    )
    .unwrap();
    let other = biplane_recorder::store::Location::File(path.with_file_name("other"));
    assert!(matches!(Store::open(&other, &[1; 16]), Err(Error::Damaged(_))));
}

#[test]
fn the_id_of_a_store_stays() {
    let world = World::in_a_file();
    drop(open(&world.location, options()));
    let again = biplane_recorder::store::Ledger::open(
        &world.location,
        &[9; 16],
        options(),
        (NOON, Instant::now()),
    );
    assert_eq!(again.unwrap().store().id().unwrap(), [7; 16]);
}
