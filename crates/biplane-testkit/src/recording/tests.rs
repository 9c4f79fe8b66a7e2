//! Tests that every area exists, is complete and is sorted.

use super::*;

#[test]
fn every_area_loads_with_the_files_its_cases_need() {
    for (area, cases, inputs) in [
        ("engine", 113, &["xr.yaml", "composition.yaml", "functions.yaml"][..]),
        ("pt", 240, &["xr.yaml", "composition.yaml", "functions.yaml"]),
        ("env", 39, &["xr.yaml", "composition.yaml", "functions.yaml"]),
        ("ready", 46, &["xr.yaml", "composition.yaml", "functions.yaml"]),
        ("tmpl", 42, &["xr.yaml", "composition.yaml", "functions.yaml"]),
        ("op", 13, &["operation.yaml", "functions.yaml"]),
        ("cron", 9, &["cronoperation.yaml", "scheduledTime.txt"]),
        ("watch", 4, &["watchoperation.yaml", "watched.yaml"]),
    ] {
        let recordings = Recording::load_area(area);
        assert_eq!(recordings.len(), cases, "{area}");
        assert!(recordings.is_sorted_by(|a, b| a.name < b.name), "{area}");
        for recording in recordings {
            for file in inputs {
                assert!(recording.text(file).is_some(), "{area}/{} lacks {file}", recording.name);
            }
            let outcome = recording.json("outcome.json").unwrap();
            let exits = ["cli", "engine"].map(|program| outcome[program]["exit"].is_i64());
            assert!(exits.contains(&true), "{area}/{}", recording.name);
        }
    }
}

#[test]
fn files_in_folders_keep_their_path() {
    let recording = Recording::load("engine", "schema-dynamic");
    let names: Vec<&str> = recording.folder("schemas").map(|(name, _)| name).collect();
    assert_eq!(names, ["nested/broker.json"]);
}

#[test]
#[should_panic(expected = "cannot load recordings")]
fn an_unknown_area_is_no_empty_success() {
    Recording::load_area("none");
}
