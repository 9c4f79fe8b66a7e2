//! Planted secrets are looked for in the log of a recorder, at its most verbose.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use biplane_recorder::recorder::Recorder;
use biplane_recorder::store::Location;
use biplane_recorder::{TakeChange, TakeEmission};

use crate::planted;
use crate::recording::{options, variable};
use crate::store::raw::Raw;
use crate::store::world::{Call, simple};

/// The file of the log, and where the store is.
const LOG: &str = "BIPLANE_TEST_LOG_OF_A_RECORDER";

/// Does nothing, unless it is the process whose log is read below.
#[test]
fn a_recorder_whose_log_is_read() {
    let Some(place) = variable(LOG) else { return };
    let (file, location) = place.split_once(' ').unwrap();
    let log = Mutex::new(std::fs::File::create(file).unwrap());
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log).init();
    let location = Location::parse(location);
    let metrics = biplane_function::metrics::Metrics::default();
    let recorder = Recorder::start(options(&location), &metrics).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let record = |trace: &str| {
        let call = Call {
            request: planted::request(),
            response: Some(planted::response()),
            ..simple(trace, "eu")
        };
        runtime.block_on(async {
            for mut emission in call.emissions() {
                TakeEmission::take(recorder.as_ref(), emission.clone()).await.unwrap();
                // Not JSON, and of no run.
                emission.payload.pop();
                emission.meta.as_mut().unwrap().trace_id.insert_str(0, "broken-");
                TakeEmission::take(recorder.as_ref(), emission.clone()).await.unwrap();
                emission.meta = None;
                TakeEmission::take(recorder.as_ref(), emission).await.unwrap();
            }
            let stored = TakeChange::take(recorder.as_ref(), planted::entry());
            drop(stored.await);
        });
    };
    record("whole");
    // Nothing can be stored any more, which is logged.
    Raw::open(&location).execute("DROP TABLE change; DROP TABLE exchange");
    record("failing");
    recorder.stop(std::time::Duration::from_mins(1));
}

fn log_of(location: &str, folder: &Path) -> String {
    let file = folder.join("log");
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "logs::a_recorder_whose_log_is_read", "--nocapture"])
        .env(LOG, format!("{} {location}", file.to_str().unwrap()))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn no_planted_secret_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db").to_str().unwrap().to_owned();
    let Location::Server(server) = crate::postgres::database() else { panic!() };
    for location in [file, server] {
        let log = log_of(&location, folder.path());
        assert!(log.contains("cannot store an emission"));
        // The client of PostgreSQL logs what it is given, which is redacted.
        let (others, own): (Vec<_>, Vec<_>) =
            log.lines().partition(|line| line.contains("tokio_postgres::"));
        assert_eq!(planted::found(&own.join("\n")), Vec::<String>::new());
        for place in planted::found(&others.join("\n")) {
            assert!(planted::PASSED_THROUGH.contains(&place.as_str()), "{place}");
        }
    }
}
