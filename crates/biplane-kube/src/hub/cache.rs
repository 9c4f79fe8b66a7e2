//! What a watch knows: the objects as text, and who is told about changes.
//!
//! Three sources fill it: the watch, answers to our own writes, and live reads. The newest version of
//! an object wins, whichever way it came. Versions are numbers that grow with every write; if a
//! server has others, the cache is not used for reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use biplane_cluster::watch::{Name, Publisher, State};
use biplane_cluster::{Form, Query};
use biplane_model::Gvk;
use tokio::time::Instant;

use super::item::{Item, Stored, matches};
use super::text::{Packing, Text};

/// How long a deleted object is remembered at least, if the watch does not report it.
const REMEMBERED: Duration = Duration::from_mins(10);
/// So many deleted objects are remembered before old ones are looked for.
const GRAVES: usize = 1024;

/// An object.
#[derive(Debug)]
struct Entry {
    /// In the form of the watch.
    stored: Arc<Stored>,
    /// The whole object at this version, if the watch has metadata only and somebody read it.
    whole: Option<Arc<Stored>>,
}

/// How an object arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// The watch itself tells it, or its list.
    Watch,
    /// A read or a write of ours was answered with it.
    Answer,
}

/// An object that is not there any more.
#[derive(Debug)]
struct Grave {
    uid: Box<str>,
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
    query: Query,
    form: Form,
    /// How texts are kept. Secrets are kept as they are: a dictionary would outlive them.
    packing: Option<Packing>,
    entries: BTreeMap<Name, Entry>,
    graves: BTreeMap<Name, Grave>,
    /// Objects that were seen in another version of their kind at these resource versions. The entry
    /// is of use when it has reached them.
    awaited: BTreeMap<Name, u64>,
    subscribers: Vec<Subscriber>,
    /// What a running list has brought.
    listed: Option<BTreeSet<Name>>,
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
    /// It exists. This is all of it.
    Object(Arc<Stored>),
    /// It does not exist.
    Absent,
    /// The server knows.
    Nothing,
}

impl Entry {
    fn version(&self) -> u64 {
        self.stored.version
    }

    fn state(&self, form: Form, fresh: Option<&Item<'_>>) -> State {
        // Only what is reported waits: of a Secret not its data.
        let fresh = fresh.and_then(|item| item.object).map(|object| form.of(object.clone()));
        State::packed(self.stored.clone(), form, fresh)
    }
}

impl Cache {
    pub(super) fn new(gvk: &Gvk, query: Query, form: Form) -> Self {
        let is_secret = gvk.group.is_empty() && gvk.kind == "Secret";
        Self {
            query,
            form,
            packing: (!is_secret).then(Packing::new),
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

    /// An object as it is kept, in a form.
    fn stored(&mut self, item: &Item<'_>, form: Form) -> Arc<Stored> {
        let text = item.text(form);
        let text = match &mut self.packing {
            Some(packing) => packing.pack(&text, self.entries.len()),
            None => Text::plain(&text),
        };
        let (uid, version) = ((*item.uid).into(), item.version);
        Arc::new(Stored { uid, version, labels: item.labels.clone(), text })
    }

    /// The whole object, for a watch that has metadata only.
    fn whole(&mut self, item: &Item<'_>) -> Option<Arc<Stored>> {
        let is_more = self.form == Form::Metadata && item.is_whole();
        is_more.then(|| self.stored(item, Form::Whole))
    }

    /// Takes an object if it is newer than what is known. Returns whether it was.
    pub(super) fn put(&mut self, item: &Item<'_>, via: Via) -> bool {
        let (name, version) = (&item.name, item.version);
        self.incomparable |= version == 0;
        // An answer may be older than the list. Only the list itself says what it has.
        if let (Some(listed), Via::Watch) = (&mut self.listed, via) {
            listed.insert(name.clone());
        }
        if let Some(grave) = self.graves.get(name) {
            let same = *grave.uid == *item.uid;
            if same && grave.until.is_none_or(|until| version <= until) {
                return false;
            }
            self.graves.remove(name);
        }
        if self.awaited.get(name).is_some_and(|awaited| *awaited <= version) {
            self.awaited.remove(name);
        }
        let known = self.entries.get(name).map(Entry::version);
        if let Some(known) = known
            && !self.incomparable
            && known >= version
        {
            if known == version
                && let Some(whole) = self.whole(item)
                && let Some(entry) = self.entries.get_mut(name)
            {
                entry.whole = Some(whole);
            }
            return false;
        }
        // The answer to a write may arrive after the watch has told that the object went again.
        let is_past = self.listed.is_none() && version <= self.told && !self.incomparable;
        if is_past && known.is_none() {
            return false;
        }
        if !matches(&self.query, name, &item.labels) {
            return self.leave(name, &item.uid, version);
        }
        let new = Entry { stored: self.stored(item, self.form), whole: self.whole(item) };
        let old = self.entries.insert(name.clone(), new);
        self.tell(name, old.as_ref(), Some(item));
        true
    }

    /// An object in another version of its kind: what is known of it here is old now.
    pub(super) fn await_version(&mut self, item: &Item<'_>) {
        self.incomparable |= item.version == 0;
        if item.version <= self.told {
            return;
        }
        let is_old = match self.entries.get(&item.name) {
            Some(entry) => entry.version() < item.version,
            None => matches(&self.query, &item.name, &item.labels),
        };
        if is_old {
            self.awaited.insert(item.name.clone(), item.version);
        }
    }

    /// An object does not match the query of the watch any more, or never did.
    fn leave(&mut self, name: &Name, uid: &str, version: u64) -> bool {
        if !self.remove(name) {
            return false;
        }
        self.dig(name, Grave { uid: uid.into(), until: Some(version), dug: Instant::now() });
        true
    }

    /// Takes the last state of an object from the watch: it was deleted, or does not match any more.
    pub(super) fn gone(&mut self, last: &Item<'_>) {
        let Item { name, version, .. } = last;
        if self.graves.get(name).is_some_and(|grave| *grave.uid == *last.uid) {
            self.graves.remove(name);
        }
        self.awaited.remove(name);
        if let Some(listed) = &mut self.listed {
            listed.remove(name);
        }
        if self.entries.get(name).is_some_and(|e| self.incomparable || e.version() <= *version) {
            self.remove(name);
        }
    }

    /// An object was deleted, as a write or a read of ours found. Its watch events may be still on
    /// their way.
    pub(super) fn bury(&mut self, name: &Name, uid: &str) {
        self.awaited.remove(name);
        if self.entries.get(name).is_some_and(|entry| *entry.stored.uid != *uid) {
            return;
        }
        self.remove(name);
        self.dig(name, Grave { uid: uid.into(), until: None, dug: Instant::now() });
    }

    fn dig(&mut self, name: &Name, grave: Grave) {
        if self.graves.len() >= GRAVES {
            self.graves.retain(|_, grave| grave.dug.elapsed() < REMEMBERED);
        }
        self.graves.insert(name.clone(), grave);
    }

    fn remove(&mut self, name: &Name) -> bool {
        let Some(old) = self.entries.remove(name) else { return false };
        self.tell(name, Some(&old), None);
        true
    }

    /// Tells subscribers how an object differs from its last state. While a list runs they are not
    /// told: they get the differences at its end.
    fn tell(&mut self, name: &Name, before: Option<&Entry>, fresh: Option<&Item<'_>>) {
        if self.listed.is_some() {
            return;
        }
        let now = self.entries.get(name);
        self.subscribers.retain(|subscriber| {
            let is_for = |entry: &&Entry| matches(&subscriber.query, name, &entry.stored.labels);
            let now = now.filter(is_for);
            if now.is_none() && !before.is_some_and(|before| is_for(&before)) {
                return true;
            }
            let state = now.map(|entry| entry.state(subscriber.form, fresh));
            subscriber.publisher.tell(name.clone(), state)
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
        self.entries.retain(|name, entry| listed.contains(name) || entry.version() > version);
        self.graves.retain(|_, grave| grave.dug >= began);
        self.awaited.retain(|_, awaited| *awaited > version);
        self.subscribers.retain(|subscriber| subscriber.publisher.missed());
    }

    /// What is known of an object, whole.
    pub(super) fn get(&self, at: &Name) -> Known {
        let Query { namespace, name, labels, labelled } = &self.query;
        let elsewhere = (!namespace.is_empty() && namespace != at.namespace())
            || (!name.is_empty() && name != at.name());
        if self.incomparable || elsewhere || self.awaited.contains_key(at) {
            return Known::Nothing;
        }
        match self.entries.get(at) {
            Some(entry) => {
                let stored = if self.form == Form::Whole {
                    Some(&entry.stored)
                } else {
                    entry.whole.as_ref()
                };
                stored.map_or(Known::Nothing, |stored| Known::Object(Arc::clone(stored)))
            }
            None if labels.is_empty() && labelled.is_empty() => Known::Absent,
            None => Known::Nothing,
        }
    }

    /// Whether this watch knows that an object is not any more what another watch has found: it has
    /// a later version, or it has heard more and does not have the object.
    pub(super) fn knows_better(&self, name: &Name, found: &Stored) -> bool {
        match self.entries.get(name) {
            Some(entry) => entry.version() > found.version,
            None => self.told >= found.version && matches(&self.query, name, &found.labels),
        }
    }

    /// Whether this watch has an object.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.entries.contains_key(name)
    }

    /// The UID and resource version of an object.
    pub(super) fn identity(&self, name: &Name) -> Option<(String, u64)> {
        let stored = &self.entries.get(name)?.stored;
        Some((stored.uid.to_string(), stored.version))
    }

    /// The objects that match, ordered by namespace and name. Nothing if the server knows better.
    pub(super) fn list(&self, query: &Query) -> Option<Vec<Arc<Stored>>> {
        if self.incomparable || !self.awaited.is_empty() {
            return None;
        }
        Some(self.matching(query).map(|(_, entry)| Arc::clone(&entry.stored)).collect())
    }

    /// Namespaces, names and UIDs of the objects that match.
    pub(super) fn identities(&self, query: &Query) -> Vec<(Name, String)> {
        let matching = self.matching(query);
        matching.map(|(name, entry)| (name.clone(), entry.stored.uid.to_string())).collect()
    }

    /// The objects that match, as a subscription holds them.
    pub(super) fn states(&self, query: &Query, form: Form) -> Vec<(Name, State)> {
        let matching = self.matching(query);
        matching.map(|(name, entry)| (name.clone(), entry.state(form, None))).collect()
    }

    fn matching(&self, query: &Query) -> impl Iterator<Item = (&Name, &Entry)> {
        let matches =
            move |(name, entry): &(&Name, &Entry)| matches(query, name, &entry.stored.labels);
        self.entries.iter().filter(matches)
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
    use biplane_cluster::watch::{Change, Packed as _, Subscription, subscription};
    use biplane_model::Object;
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
        let mut cache = Cache::new(&Gvk::new("v1", "ConfigMap"), query, form);
        cache.begin();
        cache.finish("1", Instant::now());
        cache
    }

    impl Cache {
        /// Takes an object that the watch tells.
        fn hear(&mut self, object: &Object) -> bool {
            self.put(&Item::new(object, None), Via::Watch)
        }

        /// Takes an object that a read or a write is answered with.
        fn read(&mut self, object: &Object) -> bool {
            self.put(&Item::new(object, None), Via::Answer)
        }

        fn lose(&mut self, object: &Object) {
            self.gone(&Item::new(object, None));
        }
    }

    fn at(name: &str) -> Name {
        Name::new("ns", name)
    }

    fn versions(cache: &Cache) -> Vec<u64> {
        cache.entries.values().map(Entry::version).collect()
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
        assert!(cache.read(&object("a", "u", 7, "x")), "the answer to a write");
        assert!(!cache.hear(&object("a", "u", 5, "x")), "an older event of the watch");
        assert!(!cache.hear(&object("a", "u", 7, "x")), "the event of the write");
        assert!(cache.hear(&object("a", "u", 9, "x")));
        assert_eq!(versions(&cache), [9]);
        // What was not read is replaced.
        assert_eq!(read(&mut all), ["synced", "a ->9"]);
    }

    #[test]
    fn a_deleted_object_does_not_come_back_with_a_late_event() {
        let mut cache = cache(Query::default(), Form::Whole);
        cache.hear(&object("a", "u", 5, "x"));
        cache.bury(&at("a"), "u");
        assert!(!cache.hear(&object("a", "u", 6, "x")), "an event on its way");
        assert_eq!(cache.get(&at("a")), Known::Absent);
        cache.lose(&object("a", "u", 8, "x"));
        assert!(cache.graves.is_empty());
        cache.hear(&object("b", "v", 9, "x"));
        cache.bury(&at("b"), "other");
        assert_eq!(versions(&cache), [9], "another object of that name was deleted");
        cache.bury(&at("b"), "v");
        assert!(cache.hear(&object("b", "w", 12, "x")), "made anew");
    }

    #[test]
    fn the_late_answer_to_a_write_does_not_bring_back_what_the_watch_saw_go() {
        for label in ["x", "y"] {
            let query = Query::labels(BTreeMap::from([("l".to_owned(), "x".to_owned())]));
            let mut cache = cache(query.clone(), Form::Whole);
            let mut all = follow(&mut cache, query);
            cache.hear(&object("a", "u", 5, "x"));
            cache.set_version("5");
            assert_eq!(read(&mut all), ["synced", "a ->5"]);
            cache.lose(&object("a", "u", 6, label));
            cache.set_version("6");
            assert!(!cache.read(&object("a", "u", 5, "x")), "the answer to our write");
            assert_eq!(read(&mut all), ["-a"]);
            assert!(cache.hear(&object("a", "u", 7, "x")), "a write after it");
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
            cache.hear(&object("a", "u", 5, "x"));
            assert_eq!(read(&mut selected), ["synced", "a ->5"]);
            cache.hear(&object("a", "u", 6, "y"));
            assert_eq!(read(&mut selected), ["-a"]);
            assert!(!cache.hear(&object("a", "u", 5, "x")), "an older event");
            cache.hear(&object("a", "u", 7, "x"));
            assert_eq!(read(&mut selected), ["a ->7"]);
        }
        let key = at("b");
        assert_eq!(narrow.get(&key), Known::Nothing, "it may exist without the label");
        assert_eq!(wide.get(&key), Known::Absent);
    }

    #[test]
    fn a_new_list_removes_what_vanished_and_keeps_what_is_newer() {
        let mut cache = cache(Query::default(), Form::Whole);
        for (name, version) in [("a", 5), ("b", 6)] {
            cache.hear(&object(name, name, version, "x"));
        }
        let mut all = follow(&mut cache, Query::default());
        read(&mut all);
        let began = Instant::now();
        cache.begin();
        cache.hear(&object("b", "b", 6, "x"));
        assert!(cache.read(&object("c", "c", 30, "x")), "written after the list");
        cache.finish("20", began);
        assert_eq!(cache.entries.keys().map(Name::name).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(cache.version(), "20");
        assert_eq!(read(&mut all)[0], "missed");
    }

    #[test]
    fn what_was_read_during_a_list_goes_unless_the_list_has_it() {
        let mut cache = cache(Query::default(), Form::Whole);
        for name in ["a", "b"] {
            cache.hear(&object(name, name, 5, "x"));
        }
        let began = Instant::now();
        cache.begin();
        cache.read(&object("a", "a", 5, "x"));
        cache.read(&object("c", "c", 6, "x"));
        cache.hear(&object("b", "b", 5, "x"));
        // All but one were deleted after they were read and before the list.
        cache.finish("20", began);
        assert_eq!(cache.entries.keys().map(Name::name).collect::<Vec<_>>(), ["b"]);
        assert_eq!(cache.get(&at("a")), Known::Absent);
    }

    #[test]
    fn a_watch_of_metadata_keeps_bodies_that_were_read() {
        let mut cache = cache(Query::default(), Form::Metadata);
        let key = at("a");
        cache.hear(&Form::Metadata.of(object("a", "u", 5, "x")));
        assert_eq!(cache.get(&key), Known::Nothing);
        cache.hear(&object("a", "u", 5, "x"));
        assert!(matches!(cache.get(&key), Known::Object(_)));
        let listed = cache.list(&Query::default()).unwrap();
        assert!(listed[0].object().unwrap().get("data").is_none());
        cache.hear(&Form::Metadata.of(object("a", "u", 6, "x")));
        assert_eq!(cache.get(&key), Known::Nothing, "the body is old");
        assert_eq!(cache.get(&at("b")), Known::Absent);
    }

    #[test]
    fn an_object_written_in_another_version_is_awaited() {
        let mut cache = cache(Query::default(), Form::Whole);
        let key = at("a");
        cache.hear(&object("a", "u", 5, "x"));
        cache.await_version(&Item::new(&object("a", "u", 7, "x"), None));
        assert_eq!(cache.get(&key), Known::Nothing);
        assert_eq!(cache.list(&Query::default()), None);
        cache.hear(&object("a", "u", 6, "x"));
        assert_eq!(cache.get(&key), Known::Nothing);
        cache.hear(&object("a", "u", 8, "x"));
        assert!(matches!(cache.get(&key), Known::Object(_)));
    }

    #[test]
    fn what_the_watch_has_told_already_is_not_awaited() {
        let mut cache = cache(Query::default(), Form::Whole);
        cache.hear(&object("a", "u", 5, "x"));
        cache.lose(&object("a", "u", 6, "x"));
        cache.set_version("6");
        cache.await_version(&Item::new(&object("a", "u", 5, "x"), None));
        assert_eq!(cache.get(&at("a")), Known::Absent);
        assert!(cache.list(&Query::default()).is_some());
    }

    #[test]
    fn versions_that_are_no_numbers_are_not_compared() {
        let mut cache = cache(Query::default(), Form::Whole);
        let mut odd = object("a", "u", 5, "x");
        odd.set_meta("resourceVersion", "odd");
        cache.hear(&odd);
        assert_eq!(cache.get(&at("a")), Known::Nothing);
        assert_eq!(cache.list(&Query::default()), None);
    }
}
