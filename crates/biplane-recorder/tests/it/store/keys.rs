//! What is found by key, for those who keep names out of addresses, and within which limits.

use std::time::{Duration, Instant};

use biplane_recorder::store::rows::Side;
use serde_json::json;

use super::world::{Call, NOON, SECOND, bucket, on_both, simple};

on_both! {
    fn words_owners_and_slots_have_keys(world) {
        let first = world.run(&[simple("a", "eu")]);
        world.run(&[simple("b", "eu").of("south").at(NOON + SECOND)]);
        let store = world.store();
        let named = |list: Vec<(i64, String)>| list.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
        assert_eq!(named(store.compositions(10).unwrap()), ["stores"]);
        assert_eq!(named(store.namespaces(10).unwrap()), ["shop"]);
        let functions = store.functions(10).unwrap();
        let (key, name) = functions.first().unwrap().clone();
        assert_eq!(store.word_text(key).unwrap(), Some(name.clone()));
        assert_eq!(store.word_key(&name).unwrap(), Some(key));
        assert_eq!((store.word_text(-1).unwrap(), store.word_key("none").unwrap()), (None, None));
        let owners = store.owners(0, 10).unwrap();
        assert_eq!(owners.iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["north", "south"]);
        assert_eq!(store.owners(0, 1).unwrap().len(), 1);
        assert_eq!(store.owners(first.owner.id, 10).unwrap().len(), 1);
        for slot in store.slots(first.owner.id).unwrap() {
            assert_eq!(store.slot_named(first.owner.id, &slot.name).unwrap(), Some(slot));
        }
        assert_eq!(store.slot_named(first.owner.id, "none").unwrap(), None);
        let found = store.objects_named("nor", 10).unwrap();
        assert!(found.iter().any(|object| object.name == "north" && object.kind == "Store"));
        assert!(store.objects_named("orth", 10).unwrap().is_empty());
    }

    fn news_and_counts_come_by_key(world) {
        let store = world.store();
        assert_eq!((store.newest_run().unwrap(), store.latest_start().unwrap()), (None, None));
        assert!(!store.has_changes().unwrap());
        let first = world.run(&[simple("a", "eu")]);
        let second = world.run(&[simple("b", "eu").at(NOON + SECOND)]);
        let store = world.store();
        assert_eq!(store.newest_run().unwrap(), Some(second.id));
        assert_eq!(store.latest_start().unwrap(), Some(second.started));
        let new = store.runs_stored_after(first.id, 10).unwrap();
        assert_eq!(new.iter().map(|run| run.id).collect::<Vec<_>>(), [second.id]);
        assert_eq!(store.runs_stored_after(second.id, 10).unwrap(), []);
        assert_eq!(store.changed_runs(NOON, NOON + 2 * SECOND).unwrap(), 1);
    }

    fn messages_and_fields_are_found(world) {
        let fatal = json!({"results": [{"severity": "SEVERITY_FATAL", "message": "the disk is full"}]});
        world.run(&[Call::new("a", 0, json!({}), fatal)]);
        let said = |words: &str| world.store().runs_that_say(words, 10).unwrap().len();
        assert_eq!((said("disk full"), said("disk empty"), said(""), said("\"")), (1, 0, 0, 0));
        let desired = |region: &str| json!({"desired": {"resources": {"b": {"resource": bucket("b", region)}}}});
        for (trace, region, at) in [("b", "eu", 1), ("c", "us", 2)] {
            world.run(&[Call::new(trace, 0, json!({}), desired(region)).of("south").at(NOON + at * SECOND)]);
        }
        let store = world.store();
        let owner = world.found("c").owner.id;
        let slot = store.slot_named(owner, "b").unwrap().unwrap();
        let changed = store.fields_of_slot(slot.id, Side::Desired).unwrap();
        let path = &changed.first().unwrap().path;
        assert_eq!(store.fields_at(path, 10).unwrap().first().unwrap().slot, slot.id);
        assert_eq!(store.fields_at("spec.nothing", 10).unwrap(), []);
    }

    fn reading_ends_at_its_limits(world) {
        let text: String = (0..5000).map(|n| char::from(b'a' + u8::try_from(n * n % 26).unwrap())).collect();
        let response = json!({"desired": {"resources": {"b": {"resource": {"kind": "B", "text": text}}}}});
        let run = world.run(&[Call::new("a", 0, json!({}), response)]);
        let store = world.store();
        let exchange = store.steps(run.id).unwrap()[0].exchange.unwrap();
        let later = Instant::now() + Duration::from_mins(10);
        store.limit(later, 1_000_000);
        // What was read is not counted again.
        for _ in 0..300 {
            store.exchange(exchange).unwrap();
        }
        store.limit(later, 1_000);
        let refused = store.exchange(exchange).unwrap_err().to_string();
        assert!(refused.contains("the answer is too large"), "{refused}");
        store.limit(Instant::now(), 1_000_000);
        let refused = store.exchange(exchange).unwrap_err().to_string();
        assert!(refused.contains("the answer takes too long"), "{refused}");
    }
}
