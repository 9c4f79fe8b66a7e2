//! Subscriptions: what exists, then every change, with a bound on what waits for a slow reader.
//!
//! A change that has not been read yet is replaced by the next change of the same object, so what
//! waits is bounded by the number of objects. That an object came and went is told, even if nobody
//! read that it came. Beyond the capacity, the reader is told that
//! something was missed and then gets everything that differs from what it was told before.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use biplane_model::Object;
use tokio::sync::Notify;

use crate::form::Form;

/// A report of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object is new, changed, or began to match.
    Changed {
        /// Its state now.
        object: Object,
        /// Its state when it was last reported. Absent if it is new to the reader.
        before: Option<Object>,
    },
    /// The object was deleted, or does not match any more.
    Gone {
        /// Its state when it was last reported, or before it went if it never was.
        last: Object,
    },
    /// All objects that existed when the subscription began, or after [`Change::Missed`], have been
    /// reported.
    Synced,
    /// Changes were lost. What differs from the earlier reports follows, and then
    /// [`Change::Synced`].
    Missed,
}

/// Namespace and name of an object. Clones share one text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Arc<str>);

impl Name {
    /// The name of an object. The namespace is empty if it is cluster-scoped.
    pub fn new(namespace: &str, name: &str) -> Self {
        // NUL is in neither of them and sorts first, so names are ordered by their namespaces.
        Self(format!("{namespace}\0{name}").into())
    }

    /// The name of an object.
    pub fn of(object: &Object) -> Self {
        Self::new(object.namespace(), object.name())
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once('\0').unwrap_or_default()
    }

    /// The namespace. Empty if the object is cluster-scoped.
    pub fn namespace(&self) -> &str {
        self.parts().0
    }

    /// The name in the namespace.
    pub fn name(&self) -> &str {
        self.parts().1
    }
}

/// An object in a form that takes little memory, which a cache keeps and shares.
pub trait Packed: fmt::Debug + Send + Sync {
    /// Its UID.
    fn uid(&self) -> &str;
    /// Its resource version, if that is a number.
    fn version(&self) -> Option<u64>;
    /// The object. `None` if it cannot be read.
    fn object(&self) -> Option<Object>;
}

/// An object as a subscription holds it.
#[derive(Clone, Debug)]
pub struct State(Held);

#[derive(Clone, Debug)]
enum Held {
    Parsed(Object),
    Packed {
        packed: Arc<dyn Packed>,
        form: Form,
        /// The same object, until it has been reported.
        fresh: Option<Object>,
    },
}

impl State {
    /// An object as a cache keeps it, of which `form` is reported. It is read when it is reported,
    /// unless `fresh` is the same object.
    pub fn packed(packed: Arc<dyn Packed>, form: Form, fresh: Option<Object>) -> Self {
        Self(Held::Packed { packed, form, fresh })
    }

    fn uid(&self) -> &str {
        match &self.0 {
            Held::Parsed(object) => object.uid(),
            Held::Packed { packed, .. } => packed.uid(),
        }
    }

    /// The same in the form that takes least memory.
    fn at_rest(&self) -> Self {
        match &self.0 {
            Held::Parsed(object) => object.clone().into(),
            Held::Packed { packed, form, .. } => Self::packed(Arc::clone(packed), *form, None),
        }
    }

    /// Returns the object. `None` if it cannot be read.
    fn object(self) -> Option<Object> {
        match self.0 {
            Held::Parsed(object) => Some(object),
            Held::Packed { packed, form, fresh } => {
                Some(form.of(fresh.or_else(|| packed.object())?))
            }
        }
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        if let (Held::Packed { packed, form, .. }, Held::Packed { packed: with, form: of, .. }) =
            (&self.0, &other.0)
            && form == of
        {
            if Arc::ptr_eq(packed, with) {
                return true;
            }
            if let (Some(one), Some(other)) = (packed.version(), with.version()) {
                return one == other && packed.uid() == with.uid();
            }
        }
        self.clone().object() == other.clone().object()
    }
}

impl From<Object> for State {
    fn from(object: Object) -> Self {
        Self(Held::Parsed(object))
    }
}

/// A [`Change`] that has not been read yet.
enum Report {
    Changed { object: State, before: Option<State> },
    Gone { last: State },
    Synced,
    Missed,
}

impl Report {
    fn change(self) -> Option<Change> {
        Some(match self {
            Self::Changed { object, before } => {
                Change::Changed { object: object.object()?, before: before.and_then(State::object) }
            }
            Self::Gone { last } => Change::Gone { last: last.object()? },
            Self::Synced => Change::Synced,
            Self::Missed => Change::Missed,
        })
    }
}

/// Room for so many unread changes is kept when all have been read. Further ones are kept packed.
const FEW: usize = 16;

/// A stream of changes. Dropping it ends the watch.
pub struct Subscription {
    mailbox: Arc<Mailbox>,
    /// Lists all matching objects.
    list: Box<dyn FnMut() -> Vec<(Name, State)> + Send>,
    /// What the reader knows.
    told: BTreeMap<Name, State>,
    ready: VecDeque<Report>,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("told", &self.told.len()).finish_non_exhaustive()
    }
}

/// Unread changes of one subscription.
#[derive(Debug)]
struct Mailbox {
    capacity: usize,
    unread: Mutex<Unread>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Unread {
    order: VecDeque<Name>,
    /// What is new about each object in `order`.
    news: BTreeMap<Name, News>,
    missed: bool,
    /// The watch has ended.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

/// What is new about an object since the reader was told of it.
#[derive(Debug)]
struct News {
    /// Its state. `None` if it is gone.
    now: Option<State>,
    /// Its last state, if it is gone and the reader may have been told of none.
    last: Option<State>,
}

impl Unread {
    /// Takes the state of an object, or that it is gone, in place of what is unread about it.
    fn take(&mut self, name: Name, now: Option<State>) {
        match self.news.entry(name) {
            Entry::Vacant(place) => {
                self.order.push_back(place.key().clone());
                place.insert(News { now, last: None });
            }
            Entry::Occupied(mut place) => {
                let news = place.get_mut();
                let unread = std::mem::replace(&mut news.now, now);
                news.last = if news.now.is_some() { None } else { unread.or(news.last.take()) };
            }
        }
    }

    fn miss(&mut self) {
        self.order.clear();
        self.news.clear();
        self.missed = true;
    }
}

impl Mailbox {
    fn unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end of a subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Publisher(Arc<Mailbox>);

impl Publisher {
    /// Reports the new state of an object, or that it is gone. Returns whether anybody still reads.
    pub fn tell(&self, name: Name, state: Option<State>) -> bool {
        {
            let mut unread = self.0.unread();
            if unread.abandoned {
                return false;
            }
            if !unread.missed {
                // A reader that is behind parses again what it reads. Until then, that is less memory.
                let is_behind = unread.order.len() >= FEW;
                let state = if is_behind { state.map(|state| state.at_rest()) } else { state };
                unread.take(name, state);
                if unread.order.len() > self.0.capacity {
                    unread.miss();
                }
            }
        }
        self.0.arrived.notify_one();
        true
    }

    /// Reports that changes were lost. The reader gets what differs in a new list. Returns whether
    /// anybody still reads.
    pub fn missed(&self) -> bool {
        let mut unread = self.0.unread();
        if unread.abandoned {
            return false;
        }
        unread.miss();
        drop(unread);
        self.0.arrived.notify_one();
        true
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.unread().ended = true;
        self.0.arrived.notify_one();
    }
}

/// Creates a subscription to objects of one kind that begins with those in `initial`. `list` returns
/// all matching objects, for a reader that missed something.
pub fn subscription(
    capacity: usize,
    list: impl FnMut() -> Vec<(Name, State)> + Send + 'static,
    initial: Vec<(Name, State)>,
) -> (Publisher, Subscription) {
    let mailbox = Arc::new(Mailbox { capacity, unread: Mutex::default(), arrived: Notify::new() });
    let mut subscription = Subscription {
        mailbox: Arc::clone(&mailbox),
        list: Box::new(list),
        told: BTreeMap::new(),
        ready: VecDeque::new(),
    };
    subscription.catch_up(initial);
    (Publisher(mailbox), subscription)
}

impl Subscription {
    /// Waits for the next change. `None` if the watch has ended.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.try_next() {
                return Some(change);
            }
            if self.mailbox.unread().ended {
                return None;
            }
            self.mailbox.arrived.notified().await;
        }
    }

    /// Returns the next change if there is one already.
    pub fn try_next(&mut self) -> Option<Change> {
        loop {
            while let Some(report) = self.ready.pop_front() {
                if self.ready.is_empty() {
                    self.ready.shrink_to(FEW);
                }
                if let Some(change) = report.change() {
                    return Some(change);
                }
                tracing::error!("an object that was reported is not a JSON object");
            }
            let (name, news) = {
                let mut unread = self.mailbox.unread();
                if std::mem::take(&mut unread.missed) {
                    drop(unread);
                    self.ready.push_back(Report::Missed);
                    let all = (self.list)();
                    self.catch_up(all);
                    continue;
                }
                let name = unread.order.pop_front()?;
                let Some(news) = unread.news.remove(&name) else { continue };
                if unread.order.is_empty() {
                    unread.order.shrink_to(FEW);
                }
                (name, news)
            };
            self.report(name, news.now, news.last);
        }
    }

    /// Reports how a whole list differs from what the reader knows.
    fn catch_up(&mut self, all: Vec<(Name, State)>) {
        let all: BTreeMap<Name, State> = all.into_iter().collect();
        let gone = |name: &&Name| !all.contains_key(*name);
        let gone: Vec<_> = self.told.keys().filter(gone).cloned().collect();
        for name in gone {
            self.report(name, None, None);
        }
        for (name, object) in all {
            self.report(name, Some(object), None);
        }
        self.ready.push_back(Report::Synced);
    }

    /// Reports the state of an object, or that it is gone. One that came and went unread is
    /// reported too: somebody may have made it and must know that it is not there any more.
    fn report(&mut self, name: Name, state: Option<State>, last: Option<State>) {
        let before = self.told.remove(&name);
        let Some(object) = state else {
            let another = last.filter(|last| before.as_ref().is_none_or(|b| b.uid() != last.uid()));
            let gone = before.into_iter().chain(another);
            self.ready.extend(gone.map(|last| Report::Gone { last }));
            return;
        };
        let before = match before {
            // An object of the same name that was made anew is another object.
            Some(last) if last.uid() != object.uid() => {
                self.ready.push_back(Report::Gone { last });
                None
            }
            before => before,
        };
        self.told.insert(name, object.at_rest());
        if before.as_ref() != Some(&object) {
            self.ready.push_back(Report::Changed { object, before });
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.mailbox.unread().abandoned = true;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: u64) -> Object {
        let metadata = json!({"name": "a", "uid": uid, "resourceVersion": version.to_string()});
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        Object::from_value(value).unwrap()
    }

    /// What a reader of `initial` is told who reads after all of `happened`.
    fn told(initial: Option<Object>, happened: Vec<Option<Object>>) -> Vec<String> {
        let name = Name::of(&object("u", 1));
        let first = initial.into_iter().map(|o| (Name::of(&o), State::from(o))).collect();
        let (publisher, mut reader) = subscription(16, Vec::new, first);
        while reader.try_next().is_some_and(|change| change != Change::Synced) {}
        for state in happened {
            publisher.tell(name.clone(), state.map(State::from));
        }
        std::iter::from_fn(|| reader.try_next())
            .map(|change| match change {
                Change::Changed { object, .. } => {
                    format!("{} {}", object.uid(), object.resource_version())
                }
                Change::Gone { last } => format!("-{} {}", last.uid(), last.resource_version()),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_came_and_went_unread_is_told_as_gone() {
        let (a1, a2, b) = (object("a", 1), object("a", 2), object("b", 5));
        let table: [(_, Vec<Option<Object>>, &[&str]); 6] = [
            (None, vec![Some(a1.clone()), None], &["-a 1"]),
            (None, vec![Some(a1.clone()), Some(a2.clone()), None, None], &["-a 2"]),
            (None, vec![Some(a1.clone()), None, Some(b.clone())], &["b 5"]),
            (Some(a1.clone()), vec![Some(a2), None], &["-a 1"]),
            (Some(a1.clone()), vec![None, Some(b.clone()), None], &["-a 1", "-b 5"]),
            (Some(a1), vec![None, Some(b)], &["-a 1", "b 5"]),
        ];
        for (initial, happened, expected) in table {
            assert_eq!(told(initial, happened.clone()), expected, "{happened:?}");
        }
    }
}
