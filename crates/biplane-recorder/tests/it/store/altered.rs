//! Whatever is altered, removed or added in the tables is named by those who verify the chain.

use std::collections::BTreeMap;

use biplane_recorder::store::Store;

use super::chain::fill;
use super::raw::{Cell, Raw};
use super::world::{World, on_both};

/// The numbers of the changes that do not fit, for somebody who reads the store anew.
fn broken(world: &World) -> Vec<i64> {
    let store = Store::open_existing(&world.location).unwrap();
    store.verify().unwrap()[0].broken.iter().map(|broken| broken.seq).collect()
}

/// A value with one byte of it altered, for each of its bytes.
fn altered(cell: &Cell) -> Vec<Cell> {
    match cell {
        Cell::Null => Vec::new(),
        Cell::Int(number) => vec![Cell::Int(number ^ 1), Cell::Int(number ^ 256)],
        Cell::Text(text) => (0..text.len())
            .map(|at| {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = if bytes[at] == b'z' { b'y' } else { b'z' };
                Cell::Text(String::from_utf8(bytes).unwrap())
            })
            .collect(),
        Cell::Bytes(bytes) => (0..bytes.len())
            .map(|at| {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1;
                Cell::Bytes(bytes)
            })
            .collect(),
    }
}

on_both! {
    /// Every byte of every column of a change is altered, one after another, and of its snapshot.
    fn whichever_byte_of_an_entry_is_altered_it_is_named(world) {
        fill(&mut world.ledger, 3);
        assert_eq!(broken(world), Vec::<i64>::new());
        let raw = Raw::open(&world.location);
        let only = |sql: &str| -> BTreeMap<String, Cell> {
            raw.rows(sql).remove(0).into_iter().collect()
        };
        let mut count = 0;
        let mut alter = |table: &str, column: &str, key: &str, value: &Cell| {
            for change in altered(value) {
                let sql = format!("UPDATE {table} SET {column} = $1 WHERE {key}");
                if !raw.set(&sql, &change) {
                    // Such as a number that another change has.
                    continue;
                }
                count += 1;
                let named = broken(world);
                assert!(
                    named.contains(&2) || (column == "hash" && named.contains(&3)) || column == "seq",
                    "{table}.{column} = {change:?}: {named:?}"
                );
                assert!(!named.is_empty(), "{table}.{column}");
                assert!(raw.set(&sql, value));
            }
        };
        let row = only("SELECT * FROM change WHERE seq = 2");
        for (column, value) in &row {
            // The keys of rows of other tables are altered to keys that exist.
            if ["id", "source"].contains(&column.as_str()) {
                continue;
            }
            let key = if column == "seq" { "entry_id = 'id-2'" } else { "seq = 2" };
            alter("change", column, key, value);
        }
        let key = |column: &str| match &row[column] {
            Cell::Int(id) => format!("id = {id}"),
            other => panic!("{other:?}"),
        };
        for (table, key, columns) in [
            ("object", key("object"), ["kind", "name", "namespace", "grp"].as_slice()),
            ("blob", key("snapshot"), ["data", "size", "sum"].as_slice()),
        ] {
            let row = only(&format!("SELECT * FROM {table} WHERE {key}"));
            for column in columns {
                alter(table, column, &key, &row[*column]);
            }
        }
        assert!(count > 150, "{count}");
        assert_eq!(broken(world), Vec::<i64>::new());
    }

    fn what_is_removed_added_or_replaced_is_named(world) {
        fill(&mut world.ledger, 5);
        let raw = Raw::open(&world.location);
        raw.execute("DELETE FROM change WHERE seq = 3");
        assert_eq!(broken(world), [3, 4]);
        raw.execute("DELETE FROM change WHERE seq > 3");
        assert_eq!(broken(world), [5]);
        // Whoever also lowers the count has another end than was logged.
        let before = world.store().sources().unwrap();
        raw.execute("UPDATE source SET seq = 2 WHERE kind = 'changelogs'");
        assert_eq!(broken(world), [2]);
        assert_eq!(before.iter().find(|source| source.kind == "changelogs").unwrap().seq, 5);
    }
}
