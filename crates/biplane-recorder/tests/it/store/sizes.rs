//! How many bytes a store takes, compared with the lines that a sidecar prints.

use biplane_proto::redact::Mode;
use biplane_recorder::line::{self, Format};
use serde_json::{Value, json};

use super::world::{Call, HOUR, NOON, SECOND, World, forever, xr};
use crate::world::redactor;

/// A composed resource of about four kilobytes, of which some is noise that does not compress.
fn resource(owner: &str, number: usize, seed: u64, changed: &str) -> Value {
    let mut state = seed.wrapping_mul(31).wrapping_add(number as u64 + 1);
    let mut noise = |length: usize| -> String {
        (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(state % 36) as usize])
            })
            .collect()
    };
    let rules: Vec<Value> = (0..23)
        .map(|rule| {
            json!({
                "name": format!("rule-{rule}"), "description": "Keeps objects of this prefix for as long as the policy says",
                "prefix": format!("{owner}/{rule}/"), "expirationDays": 30 + rule, "enabled": true,
            })
        })
        .collect();
    json!({
        "apiVersion": "s3.example.org/v1beta1", "kind": "Bucket",
        "metadata": {
            "name": format!("{owner}-{number}-{}", noise(5)), "namespace": "shop", "uid": noise(36),
            "resourceVersion": noise(6),
            "labels": {"crossplane.io/composite": owner, "team": "storage"},
            "annotations": {"crossplane.io/composition-resource-name": format!("bucket-{number}"), "crossplane.io/external-name": noise(20)},
        },
        "spec": {"forProvider": {"region": "eu-central-1", "rules": rules, "changed": changed}},
        "status": {"atProvider": {"arn": format!("arn:aws:s3:::{}", noise(24))}},
    })
}

/// The two steps of a run with five composed resources: one composes them, one says that they are
/// ready.
fn run(trace: &str, owner: &str, seed: u64, changed: &str, at: i64) -> Vec<Call> {
    let names: Vec<String> = (0..5).map(|number| format!("bucket-{number}")).collect();
    let resources = |ready: bool| -> Value {
        let all = names.iter().enumerate().map(|(number, name)| {
            let text = if number == 2 { changed } else { "" };
            let mut entry = json!({"resource": resource(owner, number, seed, text)});
            if ready {
                entry["ready"] = "READY_TRUE".into();
            }
            (name.clone(), entry)
        });
        Value::Object(all.collect())
    };
    let observed = json!({"composite": {"resource": xr(owner, &json!({"seed": seed, "changed": changed}))}, "resources": resources(false)});
    let tag = |step: u64| {
        format!(
            "{:064x}",
            u128::from(seed) * 1000 + u128::from(step) + changed.len() as u128 * 7919
        )
    };
    let first = Call::new(
        trace,
        0,
        json!({"meta": {"tag": tag(0)}, "observed": observed, "desired": {}}),
        json!({"meta": {"tag": tag(0), "ttl": "60s"}, "desired": {"resources": resources(false)}}),
    );
    let second = Call::new(
        trace,
        1,
        json!({"meta": {"tag": tag(1)}, "observed": observed, "desired": {"resources": resources(false)}}),
        json!({"meta": {"tag": tag(1), "ttl": "60s"}, "desired": {"resources": resources(true)}}),
    );
    let mut calls = vec![first.of(owner).at(at), second.of(owner).at(at + 5000)];
    // As they are in reality.
    for call in &mut calls {
        call.trace = format!("{:08x}-78e3-4933-9791-{:012x}", seed_of(trace), seed_of(trace) >> 20);
    }
    calls
}

fn seed_of(text: &str) -> u64 {
    text.bytes().fold(1_469_598_103_934_665_603, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211) & 0xffff_ffff
    })
}

/// The bytes of the lines that a sidecar prints.
fn lines(calls: &[Call]) -> u64 {
    let redactor = redactor(Mode::Deep);
    let emissions = calls.iter().flat_map(Call::emissions);
    emissions
        .map(|emission| {
            let payload = redactor.line_payload(emission.half, &emission.payload, false);
            let line =
                line::emission(Format::Json, emission.half, emission.meta.as_ref(), payload, "");
            line.unwrap().len() as u64
        })
        .sum()
}

/// Bytes of lines divided by bytes that the store grew by.
fn ratio(world: &mut World, runs: &[Vec<Call>]) -> f64 {
    let size = |world: &World| world.store().size().unwrap();
    let before = size(world);
    let mut printed = 0;
    for run in runs {
        world.record(run);
        printed += lines(run);
    }
    world.ledger.close_all().unwrap();
    let grown = size(world) - before;
    printed as f64 / grown as f64
}

#[test]
fn a_resource_has_about_four_kilobytes() {
    let size = resource("north", 1, 1, "").to_string().len();
    assert!((3500..4500).contains(&size), "{size}");
}

#[test]
fn a_run_that_repeats_takes_a_two_hundredth() {
    let mut world = World::in_a_file();
    ratio(&mut world, &[run("first", "north", 1, "", NOON)]);
    let runs: Vec<_> = (0..500)
        .map(|number| run(&format!("t{number}"), "north", 1, "", NOON + number * 60 * SECOND))
        .collect();
    let ratio = ratio(&mut world, &runs);
    println!("1/{ratio:.0}");
    assert!(ratio > 200.0, "1/{ratio:.0}");
}

#[test]
fn a_run_with_one_changed_resource_takes_a_fiftieth() {
    let mut world = World::in_a_file();
    ratio(&mut world, &[run("first", "north", 1, "", NOON)]);
    let runs: Vec<_> = (0..200)
        .map(|number| {
            let changed = format!("value {number}");
            run(&format!("t{number}"), "north", 1, &changed, NOON + number * 60 * SECOND)
        })
        .collect();
    let ratio = ratio(&mut world, &runs);
    println!("1/{ratio:.0}");
    assert!(ratio > 50.0, "1/{ratio:.0}");
}

#[test]
fn a_run_where_everything_is_new_takes_a_tenth() {
    let mut world = World::in_a_file();
    let runs: Vec<_> = (0..100)
        .map(|number| {
            let owner = format!("xr-{number}");
            run(&format!("t{number}"), &owner, 1000 + number as u64, "", NOON + number * SECOND)
        })
        .collect();
    let ratio = ratio(&mut world, &runs);
    println!("1/{ratio:.0}");
    assert!(ratio > 10.0, "1/{ratio:.0}");
}

/// A thousand of them for a day must fit into 30 MB. Here are fewer, for fewer hours.
#[test]
fn composite_resources_at_rest_take_little_after_folding() {
    const OWNERS: i64 = 4;
    const HOURS: i64 = 3;
    let mut world = World::in_a_file();
    for minute in 0..60 * HOURS {
        for owner in 0..OWNERS {
            let name = format!("xr-{owner}");
            let at = NOON + minute * 60 * SECOND + owner;
            world.record(&run(&format!("{name}-{minute}"), &name, owner as u64 + 1, "", at));
        }
    }
    world.ledger.close_all().unwrap();
    world.sweep(&forever(), NOON + 10 * HOUR);
    let runs = i64::try_from(world.runs().len()).unwrap();
    assert!(runs <= HOURS * 3 * OWNERS + OWNERS, "{runs}");
    let per_run = size_of_runs(&world) / runs as u64;
    let content =
        size_of("'blob', 'exchange', 'version', 'object', 'slot'", &world) / OWNERS as u64;
    let day = 1000 * (content + 24 * 3 * per_run);
    println!("{content} bytes of content each, {per_run} bytes for each run, {day} for a day");
    assert!(day < 30_000_000, "{content} each, {per_run} for each run: {day} bytes");
}

/// The bytes of the tables and indexes of runs and steps, without pages that are hardly used.
fn size_of_runs(world: &World) -> u64 {
    size_of("'run', 'step'", world)
}

/// The bytes that are used in the pages of tables and their indexes.
fn size_of(tables: &str, world: &World) -> u64 {
    let raw = rusqlite::Connection::open(world.location.file().unwrap()).unwrap();
    let sql = format!(
        "SELECT sum(pgsize - unused) FROM dbstat WHERE name IN \
            (SELECT name FROM sqlite_master WHERE tbl_name IN ({tables}))"
    );
    raw.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap() as u64
}
