//! Several recorders share one server.

use std::thread;
use std::time::Instant;

use biplane_proto::json::from_value;
use biplane_recorder::store::rows::{ChangeFilter, Outcome};
use serde_json::json;

use super::world::{NOON, SECOND, World, change, forever, halves, open, options, simple};

#[test]
fn two_recorders_write_the_same_content_at_once() {
    let world = World::on_a_server();
    let location = world.location.clone();
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let location = location.clone();
            thread::spawn(move || {
                let mut options = options();
                options.source = format!("writer-{writer}");
                let mut ledger = open(&location, options);
                for number in 0..40_i64 {
                    // Both write the same bodies, each for its own runs, of the same owners.
                    let mut call =
                        simple(&format!("{writer}-{number:02}"), &format!("r{}", number / 4));
                    call.at = NOON + number * SECOND;
                    call.name = format!("xr-{}", number % 3);
                    let records = halves(&[call]);
                    let mut attempts = 0;
                    while let Err(error) = ledger.record(&records, Instant::now()) {
                        attempts += 1;
                        assert!(attempts < 50, "{error}");
                    }
                    let entry = from_value(json!({
                        "name": format!("db-{}", number % 2),
                        "snapshot": {"number": number / 5, "text": "x".repeat(100)},
                    }));
                    let record = change(entry.unwrap(), NOON + number);
                    let mut attempts = 0;
                    while let Err(error) = ledger.append(std::slice::from_ref(&record)) {
                        attempts += 1;
                        assert!(attempts < 50, "{error}");
                    }
                    if number % 10 == 0 {
                        // Busy is no harm: the next time will do.
                        let _ = ledger.sweep(&forever(), NOON);
                    }
                }
                ledger.close_all().unwrap();
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let runs = world.runs();
    assert_eq!(runs.len(), 80);
    assert!(runs.iter().all(|run| run.outcome == Outcome::Ok && !run.open));
    for run in &runs {
        let step = world.store().steps(run.id).unwrap().remove(0);
        assert!(
            world.store().exchange(step.exchange.unwrap()).unwrap().unwrap().response.is_some()
        );
    }
    let changes = world.store().changes(&ChangeFilter::default(), 1000, None).unwrap();
    assert_eq!(changes.len(), 80);
    for verified in world.store().verify().unwrap() {
        assert_eq!(verified.broken, []);
        let expected = if verified.source.name == "test" { 0 } else { 40 };
        assert_eq!(verified.entries, expected, "{}", verified.source.name);
    }
}

#[test]
fn a_lost_connection_is_made_again_and_nothing_is_stored_twice() {
    let mut world = World::on_a_server();
    world.record(&[simple("a", "eu")]);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = \
        'biplane recorder' AND datname = current_database()";
    let biplane_recorder::store::Location::Server(text) = &world.location else { panic!() };
    crate::postgres::batch(text, end);
    let records = halves(&[simple("b", "us").at(NOON + SECOND)]);
    let error = world.ledger.record(&records, Instant::now()).unwrap_err();
    assert!(matches!(error, biplane_recorder::store::Error::Disconnected(_)), "{error}");
    world.ledger.reconnect().unwrap();
    world.ledger.record(&records, Instant::now()).unwrap();
    world.ledger.close_all().unwrap();
    let traces: Vec<_> = world.runs().into_iter().map(|run| run.trace).collect();
    assert_eq!(traces, ["b", "a"]);
}
