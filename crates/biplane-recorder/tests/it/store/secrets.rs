//! Planted secrets are looked for in the tables and files of a store, and in what is exported.

use std::collections::BTreeSet;

use biplane_recorder::Format;
use biplane_recorder::query::archive::{Archive as _, ChangeFilter, RunFilter};
use biplane_recorder::query::stored::Stored;
use biplane_recorder::query::{export, otlp};

use super::content::stored;
use super::raw::{Cell, Raw};
use super::world::{NOON, World, change, on_both};

/// Every text that is stored, in whichever column, and the bytes of the files.
fn everything(world: &World) -> String {
    let raw = Raw::open(&world.location);
    let mut all = String::new();
    for table in raw.tables() {
        for (_, cell) in raw.rows(&format!("SELECT * FROM \"{table}\"")).into_iter().flatten() {
            match cell {
                Cell::Text(text) => all.push_str(&text),
                Cell::Bytes(bytes) => all.push_str(&String::from_utf8_lossy(&bytes)),
                Cell::Null | Cell::Int(_) => {}
            }
            all.push('\n');
        }
    }
    for (_, id) in raw.rows("SELECT id FROM blob").into_iter().flatten() {
        let Cell::Int(id) = id else { panic!("{id:?}") };
        // States are no JSON.
        if let Ok(body) = world.store().body(id) {
            all.push_str(&body.to_string());
        }
    }
    if let Some(folder) = world.location.file().and_then(|path| path.parent()) {
        for file in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    all
}

/// Stores what has secrets, as both halves of a call and as a snapshot. Some of it is no JSON.
fn plant(world: &mut World) {
    use crate::planted;
    let request = planted::request().to_string();
    let response = planted::response().to_string();
    stored(world, "planted", request.as_bytes(), response.as_bytes());
    let cut = |text: &str| text[..text.len() - 1].to_owned();
    stored(world, "broken", cut(&request).as_bytes(), cut(&response).as_bytes());
    world.ledger.append(&[change(planted::entry(), NOON)]).unwrap();
}

/// INS-Z1: what is passed through is the list here, and nothing else is anywhere.
fn assert_only_open(searched: &str) {
    use crate::planted;
    let found: BTreeSet<String> = planted::found(searched).into_iter().collect();
    let open = planted::PASSED_THROUGH.iter().map(|place| (*place).to_owned()).collect();
    assert!(found.is_subset(&open), "{:?}", found.difference(&open));
    for place in ["input", "context", "result", "composite body"] {
        assert!(found.contains(place), "{place}: the search finds nothing");
    }
}

on_both! {
    fn no_planted_secret_is_in_a_store(world) {
        plant(world);
        assert_only_open(&everything(world));
    }

    /// As lines in both forms, and as spans.
    fn no_planted_secret_is_exported(world) {
        plant(world);
        let store = Stored::open(&world.text()).unwrap();
        let mut all = String::new();
        let mut runs = Vec::new();
        for head in store.runs(&RunFilter::default(), 100, None).unwrap() {
            let run = store.load(&head).unwrap();
            for format in [Format::Json, Format::Text] {
                all.extend(export::emissions(&run, format));
            }
            runs.push(run);
        }
        assert_eq!(runs.len(), 2);
        let changes = store.changes(&ChangeFilter::default(), 100, None).unwrap();
        all.extend(changes.iter().map(|change| export::entry(change).unwrap()));
        let changes: Vec<_> = changes.into_iter().map(|change| (change, None)).collect();
        all.push_str(&otlp::traces_and_changes(&runs, &changes).to_string());
        assert_only_open(&all);
    }
}
