//! Subscriptions: what exists, then every change, with a bound on what waits for a slow reader.
//!
//! A change that has not been read yet is replaced by the next change of the same object, so what
//! waits is bounded by the number of objects. Beyond the capacity, the reader is told that
//! something was missed and then gets everything that differs from what it was told before.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use biplane_model::{Object, ObjectId};
use tokio::sync::Notify;

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
        /// Its state when it was last reported.
        last: Object,
    },
    /// All objects that existed when the subscription began, or after [`Change::Missed`], have been
    /// reported.
    Synced,
    /// Changes were lost. What differs from the earlier reports follows, and then
    /// [`Change::Synced`].
    Missed,
}

/// A stream of changes. Dropping it ends the watch.
pub struct Subscription {
    mailbox: Arc<Mailbox>,
    /// Lists all matching objects.
    list: Box<dyn FnMut() -> Vec<Object> + Send>,
    /// What the reader knows.
    told: BTreeMap<ObjectId, Object>,
    ready: VecDeque<Change>,
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
    order: VecDeque<ObjectId>,
    /// The newest state of each object in `order`. `None` if it is gone.
    states: BTreeMap<ObjectId, Option<Object>>,
    missed: bool,
    /// The watch has ended.
    ended: bool,
    /// Nobody reads any more.
    abandoned: bool,
}

impl Mailbox {
    fn unread(&self) -> MutexGuard<'_, Unread> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end of a subscription. Dropping it ends the subscription.
#[derive(Debug)]
pub(crate) struct Publisher(Arc<Mailbox>);

impl Publisher {
    /// Reports the new state of an object, or that it is gone. Returns whether anybody still reads.
    pub(crate) fn tell(&self, id: ObjectId, state: Option<Object>) -> bool {
        {
            let mut unread = self.0.unread();
            if unread.abandoned {
                return false;
            }
            if !unread.missed {
                if unread.states.insert(id.clone(), state).is_none() {
                    unread.order.push_back(id);
                }
                if unread.order.len() > self.0.capacity {
                    unread.order.clear();
                    unread.states.clear();
                    unread.missed = true;
                }
            }
        }
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

/// Creates a subscription that begins with the objects in `initial`. `list` returns all matching
/// objects, for a reader that missed something.
pub(crate) fn subscription(
    capacity: usize,
    list: impl FnMut() -> Vec<Object> + Send + 'static,
    initial: Vec<Object>,
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
            if let Some(change) = self.ready.pop_front() {
                return Some(change);
            }
            let (id, state) = {
                let mut unread = self.mailbox.unread();
                if std::mem::take(&mut unread.missed) {
                    drop(unread);
                    self.ready.push_back(Change::Missed);
                    let all = (self.list)();
                    self.catch_up(all);
                    continue;
                }
                let id = unread.order.pop_front()?;
                let state = unread.states.remove(&id).flatten();
                (id, state)
            };
            self.report(id, state);
        }
    }

    /// Reports how a whole list differs from what the reader knows.
    fn catch_up(&mut self, all: Vec<Object>) {
        let all: BTreeMap<ObjectId, Object> = all.into_iter().map(|o| (o.id(), o)).collect();
        let gone: Vec<_> = self.told.keys().filter(|id| !all.contains_key(id)).cloned().collect();
        for id in gone {
            self.report(id, None);
        }
        for (id, object) in all {
            self.report(id, Some(object));
        }
        self.ready.push_back(Change::Synced);
    }

    fn report(&mut self, id: ObjectId, state: Option<Object>) {
        let before = self.told.remove(&id);
        let Some(object) = state else {
            self.ready.extend(before.map(|last| Change::Gone { last }));
            return;
        };
        let before = match before {
            // An object of the same name that was made anew is another object.
            Some(last) if last.uid() != object.uid() => {
                self.ready.push_back(Change::Gone { last });
                None
            }
            before => before,
        };
        self.told.insert(id, object.clone());
        if before.as_ref() != Some(&object) {
            self.ready.push_back(Change::Changed { object, before });
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.mailbox.unread().abandoned = true;
    }
}
