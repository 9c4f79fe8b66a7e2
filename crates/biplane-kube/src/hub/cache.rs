//! What a watch knows: the objects as text, and who is told about changes.
//!
//! Three sources fill it: the watch, answers to our own writes, and live reads. The newest version of
//! an object wins, whichever way it came. Versions are numbers that grow with every write; if a
//! server has others, the cache is not used for reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::watch::{Publisher, State};
use biplane_cluster::{Form, Query};
use biplane_model::{Gvk, Object, ObjectId, Value};
use tokio::time::Instant;

/// How long a deleted object is remembered at least, if the watch does not report it.
const REMEMBERED: Duration = Duration::from_mins(10);
/// So many deleted objects are remembered before old ones are looked for.
const GRAVES: usize = 1024;

/// Namespace and name.
pub(super) type Key = (String, String);

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    uid: Arc<str>,
    /// The resource version.
    pub(super) version: u64,
    labels: Arc<BTreeMap<String, String>>,
    /// The object in the form of the watch.
    text: Arc<[u8]>,
    /// The whole object at this version, if the watch has metadata only and somebody read it.
    whole: Option<Arc<[u8]>>,
}

/// An object that is not there any more.
#[derive(Debug)]
struct Grave {
    uid: String,
    /// It may come back in a later version, because it only left the selection. `None` if it was
    /// deleted.
    until: Option<u64>,
    dug: Instant,
}

#[derive(Debug)]
struct Subscriber {
    query: Query,
    form: Form,
    publisher: Publisher,
}

/// The state of one watch.
#[derive(Debug)]
pub(super) struct Cache {
    gvk: Gvk,
    query: Query,
    form: Form,
    entries: BTreeMap<Key, Entry>,
    graves: BTreeMap<Key, Grave>,
    /// Objects that were seen in another version of their kind at these resource versions. The entry
    /// is of use when it has reached them.
    awaited: BTreeMap<Key, u64>,
    subscribers: Vec<Subscriber>,
    /// What a running list has brought.
    listed: Option<BTreeSet<Key>>,
    /// The version to continue from.
    version: String,
    /// The same as a number. The watch has told everything that happened up to it.
    told: u64,
    /// Versions are no numbers.
    incomparable: bool,
}

/// What a cache knows about an object.
#[derive(Debug, PartialEq)]
pub(super) enum Known {
    /// It exists.
    Text(Found),
    /// It does not exist.
    Absent,
    /// The server knows.
    Nothing,
}

/// An object as a cache has it.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    /// The whole object.
    pub(super) text: Arc<[u8]>,
    /// The resource version.
    pub(super) version: u64,
    labels: Arc<BTreeMap<String, String>>,
}

/// Whether an object matches. [`Query::matches`] for objects that are not parsed.
fn matches(query: &Query, key: &Key, labels: &BTreeMap<String, String>) -> bool {
    (query.namespace.is_empty() || query.namespace == key.0)
        && (query.name.is_empty() || query.name == key.1)
        && query.labels.iter().all(|(name, value)| labels.get(name) == Some(value))
        && query.labelled.iter().all(|name| labels.contains_key(name))
}

pub(super) fn key(object: &Object) -> Key {
    (object.namespace().to_owned(), object.name().to_owned())
}

impl Entry {
    fn new(object: &Object, form: Form) -> Self {
        let labels = match object.at(&["metadata", "labels"]) {
            Some(Value::Object(labels)) => labels
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect(),
            _ => BTreeMap::new(),
        };
        let is_whole = form == Form::Metadata
            && object.keys().any(|k| !matches!(k.as_str(), "apiVersion" | "kind" | "metadata"));
        Self {
            uid: object.uid().into(),
            version: object.resource_version().parse().unwrap_or_default(),
            labels: Arc::new(labels),
            whole: is_whole.then(|| text(object)),
            text: text(&form.of(object.clone())),
        }
    }

    fn state(&self, form: Form) -> State {
        State::text(Arc::clone(&self.text), Arc::clone(&self.uid), form)
    }
}

fn text(object: &Object) -> Arc<[u8]> {
    object.to_value().to_string().into_bytes().into()
}

impl Cache {
    pub(super) fn new(gvk: Gvk, query: Query, form: Form) -> Self {
        Self {
            gvk,
            query,
            form,
            entries: BTreeMap::new(),
            graves: BTreeMap::new(),
            awaited: BTreeMap::new(),
            subscribers: Vec::new(),
            listed: None,
            version: String::new(),
            told: 0,
            incomparable: false,
        }
    }

    /// The version to continue from.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    pub(super) fn set_version(&mut self, version: &str) {
        version.clone_into(&mut self.version);
        self.told = version.parse().unwrap_or_default();
    }

    /// Takes an object from the watch, a read or a write, if it is newer than what is known.
    /// Returns whether it was.
    pub(super) fn put(&mut self, object: &Object) -> bool {
        let key = key(object);
        let new = Entry::new(object, self.form);
        self.incomparable |= new.version == 0;
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        if let Some(grave) = self.graves.get(&key) {
            let same = *grave.uid == *new.uid;
            if same && grave.until.is_none_or(|until| new.version <= until) {
                return false;
            }
            self.graves.remove(&key);
        }
        if self.awaited.get(&key).is_some_and(|awaited| *awaited <= new.version) {
            self.awaited.remove(&key);
        }
        if let Some(old) = self.entries.get_mut(&key)
            && !self.incomparable
            && old.version >= new.version
        {
            if old.version == new.version && new.whole.is_some() {
                old.whole = new.whole;
            }
            return false;
        }
        // The answer to a write may arrive after the watch has told that the object went again.
        let is_past = self.listed.is_none() && new.version <= self.told && !self.incomparable;
        if is_past && !self.entries.contains_key(&key) {
            return false;
        }
        if !matches(&self.query, &key, &new.labels) {
            return self.leave(&key, &new.uid, new.version);
        }
        let old = self.entries.insert(key.clone(), new);
        self.tell(&key, old.as_ref());
        true
    }

    /// An object in another version of its kind: what is known of it here is old now.
    pub(super) fn await_version(&mut self, object: &Object) {
        let new = Entry::new(object, Form::Metadata);
        self.incomparable |= new.version == 0;
        if new.version <= self.told {
            return;
        }
        let key = key(object);
        let is_old = match self.entries.get(&key) {
            Some(entry) => entry.version < new.version,
            None => matches(&self.query, &key, &new.labels),
        };
        if is_old {
            self.awaited.insert(key, new.version);
        }
    }

    /// An object does not match the query of the watch any more, or never did.
    fn leave(&mut self, key: &Key, uid: &str, version: u64) -> bool {
        if !self.remove(key) {
            return false;
        }
        self.dig(key, Grave { uid: uid.into(), until: Some(version), dug: Instant::now() });
        true
    }

    /// Takes the last state of an object from the watch: it was deleted, or does not match any more.
    pub(super) fn gone(&mut self, object: &Object) {
        let key = key(object);
        let version: u64 = object.resource_version().parse().unwrap_or_default();
        if self.graves.get(&key).is_some_and(|grave| grave.uid == object.uid()) {
            self.graves.remove(&key);
        }
        self.awaited.remove(&key);
        if let Some(listed) = &mut self.listed {
            listed.remove(&key);
        }
        if self.entries.get(&key).is_some_and(|e| self.incomparable || e.version <= version) {
            self.remove(&key);
        }
    }

    /// An object was deleted, as a write or a read of ours found. Its watch events may be still on
    /// their way.
    pub(super) fn bury(&mut self, key: &Key, uid: &str) {
        self.awaited.remove(key);
        if self.entries.get(key).is_some_and(|entry| *entry.uid != *uid) {
            return;
        }
        self.remove(key);
        self.dig(key, Grave { uid: uid.into(), until: None, dug: Instant::now() });
    }

    fn dig(&mut self, key: &Key, grave: Grave) {
        if self.graves.len() >= GRAVES {
            self.graves.retain(|_, grave| grave.dug.elapsed() < REMEMBERED);
        }
        self.graves.insert(key.clone(), grave);
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Some(old) = self.entries.remove(key) else { return false };
        self.tell(key, Some(&old));
        true
    }

    /// Tells subscribers how an object differs from its last state. While a list runs they are not
    /// told: they get the differences at its end.
    fn tell(&mut self, key: &Key, before: Option<&Entry>) {
        if self.listed.is_some() {
            return;
        }
        let now = self.entries.get(key);
        self.subscribers.retain(|subscriber| {
            let is_for = |entry: &&Entry| matches(&subscriber.query, key, &entry.labels);
            let now = now.filter(is_for);
            if now.is_none() && !before.is_some_and(|before| is_for(&before)) {
                return true;
            }
            let state = now.map(|entry| entry.state(subscriber.form));
            subscriber.publisher.tell(ObjectId::new(self.gvk.clone(), &key.0, &key.1), state)
        });
    }

    /// A list begins.
    pub(super) fn begin(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// A list has ended: what it has not brought is gone, unless it is newer.
    pub(super) fn finish(&mut self, version: &str, began: Instant) {
        let Some(listed) = self.listed.take() else { return };
        self.set_version(version);
        let version: u64 = version.parse().unwrap_or(u64::MAX);
        self.entries.retain(|key, entry| listed.contains(key) || entry.version > version);
        self.graves.retain(|_, grave| grave.dug >= began);
        self.awaited.retain(|_, awaited| *awaited > version);
        self.subscribers.retain(|subscriber| subscriber.publisher.missed());
    }

    /// What is known of an object, whole.
    pub(super) fn get(&self, key: &Key) -> Known {
        let Query { namespace, name, labels, labelled } = &self.query;
        let elsewhere =
            (!namespace.is_empty() && *namespace != key.0) || (!name.is_empty() && *name != key.1);
        if self.incomparable || elsewhere || self.awaited.contains_key(key) {
            return Known::Nothing;
        }
        match self.entries.get(key) {
            Some(entry) => {
                let text =
                    if self.form == Form::Whole { Some(&entry.text) } else { entry.whole.as_ref() };
                text.map_or(Known::Nothing, |text| {
                    let (text, labels) = (Arc::clone(text), Arc::clone(&entry.labels));
                    Known::Text(Found { text, version: entry.version, labels })
                })
            }
            None if labels.is_empty() && labelled.is_empty() => Known::Absent,
            None => Known::Nothing,
        }
    }

    /// Whether this watch knows that an object is not any more what another watch has found: it has
    /// a later version, or it has heard more and does not have the object.
    pub(super) fn knows_better(&self, key: &Key, found: &Found) -> bool {
        match self.entries.get(key) {
            Some(entry) => entry.version > found.version,
            None => self.told >= found.version && matches(&self.query, key, &found.labels),
        }
    }

    /// Whether this watch has an object.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    /// The UID and resource version of an object.
    pub(super) fn identity(&self, key: &Key) -> Option<(String, u64)> {
        self.entries.get(key).map(|entry| (entry.uid.to_string(), entry.version))
    }

    /// The objects that match, ordered by namespace and name. Nothing if the server knows better.
    pub(super) fn list(&self, query: &Query) -> Option<Vec<Arc<[u8]>>> {
        if self.incomparable || !self.awaited.is_empty() {
            return None;
        }
        Some(self.matching(query).map(|(_, entry)| Arc::clone(&entry.text)).collect())
    }

    /// Namespaces, names and UIDs of the objects that match.
    pub(super) fn identities(&self, query: &Query) -> Vec<(Key, String)> {
        self.matching(query).map(|(key, entry)| (key.clone(), entry.uid.to_string())).collect()
    }

    /// The objects that match, as a subscription holds them.
    pub(super) fn states(&self, query: &Query, form: Form) -> Vec<(ObjectId, State)> {
        let id = |key: &Key| ObjectId::new(self.gvk.clone(), &key.0, &key.1);
        self.matching(query).map(|(key, entry)| (id(key), entry.state(form))).collect()
    }

    fn matching(&self, query: &Query) -> impl Iterator<Item = (&Key, &Entry)> {
        self.entries.iter().filter(move |(key, entry)| matches(query, key, &entry.labels))
    }

    pub(super) fn subscribe(&mut self, query: Query, form: Form, publisher: Publisher) {
        self.subscribers.push(Subscriber { query, form, publisher });
    }

    /// Ends all subscriptions.
    pub(super) fn end(&mut self) {
        self.subscribers.clear();
    }
}

#[cfg(test)]
mod tests {
    use biplane_cluster::watch::{Change, Subscription, subscription};
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str, version: u64, label: &str) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "ns", "name": name, "uid": uid,
                "resourceVersion": version.to_string(), "labels": {"l": label}},
            "data": {"version": version.to_string()}}))
        .unwrap()
    }

    fn cache(query: Query, form: Form) -> Cache {
        let mut cache = Cache::new(Gvk::new("v1", "ConfigMap"), query, form);
        cache.begin();
        cache.finish("1", Instant::now());
        cache
    }

    fn versions(cache: &Cache) -> Vec<u64> {
        cache.entries.values().map(|entry| entry.version).collect()
    }

    fn follow(cache: &mut Cache, query: Query) -> Subscription {
        let initial = cache.states(&query, Form::Whole);
        let (publisher, subscription) = subscription(16, Vec::new, initial);
        cache.subscribe(query, Form::Whole, publisher);
        subscription
    }

    fn read(subscription: &mut Subscription) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(change) = subscription.try_next() {
            said.push(match change {
                Change::Changed { object, before } => format!(
                    "{} {}->{}",
                    object.name(),
                    before.map(|b| b.resource_version().to_owned()).unwrap_or_default(),
                    object.resource_version()
                ),
                Change::Gone { last } => format!("-{}", last.name()),
                Change::Synced => "synced".into(),
                Change::Missed => "missed".into(),
            });
        }
        said
    }

    #[test]
    fn the_newest_version_wins_whichever_way_it_came() {
        let mut cache = cache(Query::default(), Form::Whole);
        let mut all = follow(&mut cache, Query::default());
        assert!(cache.put(&object("a", "u", 7, "x")), "the answer to a write");
        assert!(!cache.put(&object("a", "u", 5, "x")), "an older event of the watch");
        assert!(!cache.put(&object("a", "u", 7, "x")), "the event of the write");
        assert!(cache.put(&object("a", "u", 9, "x")));
        assert_eq!(versions(&cache), [9]);
        // What was not read is replaced.
        assert_eq!(read(&mut all), ["synced", "a ->9"]);
    }

    #[test]
    fn a_deleted_object_does_not_come_back_with_a_late_event() {
        let mut cache = cache(Query::default(), Form::Whole);
        cache.put(&object("a", "u", 5, "x"));
        cache.bury(&("ns".into(), "a".into()), "u");
        assert!(!cache.put(&object("a", "u", 6, "x")), "an event on its way");
        assert_eq!(cache.get(&("ns".into(), "a".into())), Known::Absent);
        cache.gone(&object("a", "u", 8, "x"));
        assert!(cache.graves.is_empty());
        cache.put(&object("b", "v", 9, "x"));
        cache.bury(&("ns".into(), "b".into()), "other");
        assert_eq!(versions(&cache), [9], "another object of that name was deleted");
        cache.bury(&("ns".into(), "b".into()), "v");
        assert!(cache.put(&object("b", "w", 12, "x")), "made anew");
    }

    #[test]
    fn the_late_answer_to_a_write_does_not_bring_back_what_the_watch_saw_go() {
        for label in ["x", "y"] {
            let query = Query::labels(BTreeMap::from([("l".to_owned(), "x".to_owned())]));
            let mut cache = cache(query.clone(), Form::Whole);
            let mut all = follow(&mut cache, query);
            cache.put(&object("a", "u", 5, "x"));
            cache.set_version("5");
            assert_eq!(read(&mut all), ["synced", "a ->5"]);
            cache.gone(&object("a", "u", 6, label));
            cache.set_version("6");
            assert!(!cache.put(&object("a", "u", 5, "x")), "the answer to our write");
            assert_eq!(read(&mut all), ["-a"]);
            assert!(cache.put(&object("a", "u", 7, "x")), "a write after it");
            assert_eq!(read(&mut all), ["a ->7"]);
        }
    }

    #[test]
    fn leaving_a_selection_is_gone_and_coming_back_is_new() {
        let labels = BTreeMap::from([("l".to_owned(), "x".to_owned())]);
        let query = Query::labels(labels);
        let mut narrow = cache(query.clone(), Form::Whole);
        let mut wide = cache(Query::default(), Form::Whole);
        for cache in [&mut narrow, &mut wide] {
            let mut selected = follow(cache, query.clone());
            cache.put(&object("a", "u", 5, "x"));
            assert_eq!(read(&mut selected), ["synced", "a ->5"]);
            cache.put(&object("a", "u", 6, "y"));
            assert_eq!(read(&mut selected), ["-a"]);
            assert!(!cache.put(&object("a", "u", 5, "x")), "an older event");
            cache.put(&object("a", "u", 7, "x"));
            assert_eq!(read(&mut selected), ["a ->7"]);
        }
        let key = ("ns".into(), "b".into());
        assert_eq!(narrow.get(&key), Known::Nothing, "it may exist without the label");
        assert_eq!(wide.get(&key), Known::Absent);
    }

    #[test]
    fn a_new_list_removes_what_vanished_and_keeps_what_is_newer() {
        let mut cache = cache(Query::default(), Form::Whole);
        for (name, version) in [("a", 5), ("b", 6)] {
            cache.put(&object(name, name, version, "x"));
        }
        let mut all = follow(&mut cache, Query::default());
        read(&mut all);
        let began = Instant::now();
        cache.begin();
        cache.put(&object("b", "b", 6, "x"));
        cache.put(&object("c", "c", 30, "x"));
        cache.listed.as_mut().unwrap().remove(&("ns".into(), "c".into()));
        cache.finish("20", began);
        assert_eq!(cache.entries.keys().map(|k| &*k.1).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(cache.version(), "20");
        assert_eq!(read(&mut all)[0], "missed");
    }

    #[test]
    fn a_watch_of_metadata_keeps_bodies_that_were_read() {
        let mut cache = cache(Query::default(), Form::Metadata);
        let key = ("ns".to_owned(), "a".to_owned());
        cache.put(&Form::Metadata.of(object("a", "u", 5, "x")));
        assert_eq!(cache.get(&key), Known::Nothing);
        cache.put(&object("a", "u", 5, "x"));
        assert!(matches!(cache.get(&key), Known::Text(_)));
        let listed = cache.list(&Query::default()).unwrap();
        assert!(!String::from_utf8_lossy(&listed[0]).contains("\"data\":"));
        cache.put(&Form::Metadata.of(object("a", "u", 6, "x")));
        assert_eq!(cache.get(&key), Known::Nothing, "the body is old");
        assert_eq!(cache.get(&("ns".into(), "b".into())), Known::Absent);
    }

    #[test]
    fn an_object_written_in_another_version_is_awaited() {
        let mut cache = cache(Query::default(), Form::Whole);
        let key = ("ns".to_owned(), "a".to_owned());
        cache.put(&object("a", "u", 5, "x"));
        cache.await_version(&object("a", "u", 7, "x"));
        assert_eq!(cache.get(&key), Known::Nothing);
        assert_eq!(cache.list(&Query::default()), None);
        cache.put(&object("a", "u", 6, "x"));
        assert_eq!(cache.get(&key), Known::Nothing);
        cache.put(&object("a", "u", 8, "x"));
        assert!(matches!(cache.get(&key), Known::Text(_)));
    }

    #[test]
    fn what_the_watch_has_told_already_is_not_awaited() {
        let mut cache = cache(Query::default(), Form::Whole);
        cache.put(&object("a", "u", 5, "x"));
        cache.gone(&object("a", "u", 6, "x"));
        cache.set_version("6");
        cache.await_version(&object("a", "u", 5, "x"));
        assert_eq!(cache.get(&("ns".into(), "a".into())), Known::Absent);
        assert!(cache.list(&Query::default()).is_some());
    }

    #[test]
    fn versions_that_are_no_numbers_are_not_compared() {
        let mut cache = cache(Query::default(), Form::Whole);
        let mut odd = object("a", "u", 5, "x");
        odd.set_meta("resourceVersion", "odd");
        cache.put(&odd);
        assert_eq!(cache.get(&("ns".into(), "a".into())), Known::Nothing);
        assert_eq!(cache.list(&Query::default()), None);
    }
}
