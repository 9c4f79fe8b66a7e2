//! The chain of changes: whatever is altered, removed or added later is named.

use biplane_proto::changelogs::ChangeLogEntry;
use biplane_proto::json::from_value;
use biplane_recorder::store::rows::ChangeFilter;
use biplane_recorder::store::{Ledger, Retention};
use serde_json::{Value, json};

use super::world::{HOUR, NOON, SECOND, World, change, forever, on_both};

fn entry(number: i64) -> ChangeLogEntry {
    from_value(json!({
        "timestamp": "2026-01-15T10:30:05Z",
        "provider": "provider-sql:v1",
        "apiVersion": "sql.example.org/v1", "kind": "Database", "name": format!("db-{number}"),
        "externalName": "x", "operation": "OPERATION_TYPE_UPDATE",
        "snapshot": {
            "metadata": {"generation": 2, "namespace": "shop", "uid": format!("uid-{number}"), "labels": {"long": "x".repeat(300)}},
            "status": {"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 2}]},
        },
        "errorMessage": "it broke",
        "additionalDetails": {
            "entryId": format!("id-{number}"),
            "traceparent": "00-a3aba73d78e349339791319f264d679a-00f067aa0ba902b7-01",
        },
    }))
    .unwrap()
}

pub(super) fn fill(ledger: &mut Ledger, count: i64) {
    for number in 1..=count {
        ledger.append(&[change(entry(number), NOON + number * SECOND)]).unwrap();
    }
}

on_both! {
    fn changes_are_found_by_what_they_say(world) {
        fill(&mut world.ledger, 5);
        // The same entry again is acknowledged and not stored.
        world.ledger.append(&[change(entry(3), NOON), change(entry(6), NOON + 6 * SECOND)]).unwrap();
        let store = world.store();
        let all = store.changes(&ChangeFilter::default(), 100, None).unwrap();
        assert_eq!(all.iter().map(|c| c.seq).collect::<Vec<_>>(), [6, 5, 4, 3, 2, 1]);
        let change = &all[0];
        assert_eq!((change.cause.as_str(), change.generation, change.failed), ("drift", Some(2), true));
        assert_eq!((change.object.namespace.as_str(), change.object.uid.as_str()), ("shop", "uid-6"));
        assert_eq!(change.trace.as_deref(), Some("a3aba73d78e349339791319f264d679a"));
        let filter = ChangeFilter {
            kind: Some("database".into()),
            provider: Some("provider-sql".into()),
            name: Some("db-2".into()),
            operation: Some(2),
            failed: true,
            cause: Some("drift".into()),
            trace: Some("a3aba73d-78e3-4933-9791-319f264d679a".into()),
            ..ChangeFilter::default()
        };
        assert_eq!(store.changes(&filter, 100, None).unwrap().len(), 1);
        let other = ChangeFilter { provider: Some("provider".into()), ..ChangeFilter::default() };
        assert_eq!(store.changes(&other, 100, None).unwrap(), []);
    }

    fn a_chain_goes_on_after_a_restart_and_after_a_removal(world) {
        fill(&mut world.ledger, 10);
        world.restart();
        for number in 11..=15 {
            let record = change(entry(number), NOON + 100 * HOUR);
            world.ledger.append(&[record]).unwrap();
        }
        let verified = world.store().verify().unwrap();
        assert_eq!((verified[0].first, verified[0].entries), (1, 15));
        assert_eq!(verified[0].broken, []);
        let retention = Retention { changes_for: HOUR, ..forever() };
        assert!(world.sweep(&retention, NOON + 100 * HOUR) >= 10);
        let verified = world.store().verify().unwrap();
        assert_eq!((verified[0].first, verified[0].entries), (11, 5));
        assert_eq!(verified[0].broken, []);
        // When all are gone, the end is known.
        world.sweep(&retention, NOON + 200 * HOUR);
        let verified = world.store().verify().unwrap();
        assert_eq!((verified[0].first, verified[0].entries, verified[0].source.seq), (16, 0, 15));
        assert_eq!(verified[0].broken, []);
        world.ledger.append(&[change(entry(16), NOON + 200 * HOUR)]).unwrap();
        assert_eq!(world.store().verify().unwrap()[0].broken, []);
    }

    /// CL-72
    fn the_cause_is_derived(world) {
        let mut number = 0;
        let mut cause = |world: &mut World, operation: &str, snapshot: Value, details: Value| {
            number += 1;
            let entry = json!({"operation": operation, "name": number.to_string(), "snapshot": snapshot, "additionalDetails": details});
            world.ledger.append(&[change(from_value(entry).unwrap(), NOON + number)]).unwrap();
            let all = world.store().changes(&ChangeFilter { newer_than: Some(0), ..ChangeFilter::default() }, 100, None).unwrap();
            all.last().unwrap().cause.clone()
        };
        let synced = |generation: i64, observed: i64, status: &str, reason: &str| json!({
            "metadata": {"generation": generation},
            "status": {"conditions": [{"type": "Synced", "status": status, "reason": reason, "observedGeneration": observed}]},
        });
        let update = "OPERATION_TYPE_UPDATE";
        let none = json!({});
        assert_eq!(cause(world, update, synced(2, 1, "True", ""), none.clone()), "spec-change");
        assert_eq!(cause(world, update, synced(2, 2, "True", ""), none.clone()), "drift");
        assert_eq!(cause(world, update, synced(2, 2, "False", "ReconcileError"), none.clone()), "retry");
        assert_eq!(cause(world, update, synced(2, 1, "False", "ReconcilePaused"), none.clone()), "resume");
        assert_eq!(cause(world, update, json!({}), none.clone()), "");
        assert_eq!(cause(world, "OPERATION_TYPE_CREATE", json!({}), none.clone()), "create");
        let old = json!({"metadata": {"annotations": {"crossplane.io/external-create-succeeded": "2026"}}});
        assert_eq!(cause(world, "OPERATION_TYPE_CREATE", old, none.clone()), "recreate");
        assert_eq!(cause(world, "OPERATION_TYPE_DELETE", json!({}), none), "delete");
        assert_eq!(cause(world, update, json!({}), json!({"cause": "late-init"})), "late-init");
    }
}
