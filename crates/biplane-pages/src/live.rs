//! News for pages that are open: how many runs were stored since the reader looked.
//!
//! However many readers there are, the store is asked once for all of them, and only while there
//! are some.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use biplane_recorder::query::archive::{RunFilter, is_kind};
use biplane_recorder::query::record::Head;
use tokio::sync::{mpsc, watch};

/// How many runs are remembered. More than that are told as so many.
const REMEMBERED: usize = 500;
/// How often a reader is written to, so that one who has gone is noticed.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How many readers there may be.
pub const READERS: usize = 256;

/// The runs that were stored last.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The key of the last one.
    pub newest: i64,
    /// Those that were stored since somebody looks, the oldest first.
    runs: VecDeque<Arc<Head>>,
}

impl Seen {
    /// Adds runs, which are in the order of their keys.
    pub fn add(&mut self, heads: Vec<Head>) {
        let newest = self.newest;
        for head in heads.into_iter().filter(|head| head.key > newest) {
            self.newest = head.key;
            self.runs.push_back(Arc::new(head));
        }
        while self.runs.len() > REMEMBERED {
            self.runs.pop_front();
        }
    }

    /// How many runs after a key fit a filter. How they end is not known when they begin.
    pub fn count(&self, after: i64, filter: &RunFilter) -> usize {
        self.runs.iter().filter(|head| head.key > after && fits(head, filter)).count()
    }
}

fn fits(head: &Head, filter: &RunFilter) -> bool {
    let is = |wanted: &Option<String>, text: &str| wanted.as_ref().is_none_or(|w| w == text);
    let has = |function: &String| head.steps.iter().any(|(.., name)| name == function);
    filter.kind.as_ref().is_none_or(|kind| is_kind(kind, &head.owner))
        && is(&filter.name, &head.owner.name)
        && is(&filter.namespace, &head.owner.namespace)
        && is(&filter.composition, &head.composition)
        && filter.function.as_ref().is_none_or(has)
}

/// What all readers share.
#[derive(Clone, Debug)]
pub struct News {
    seen: Arc<watch::Sender<Seen>>,
    is_polling: Arc<AtomicBool>,
    readers: Arc<AtomicUsize>,
}

impl Default for News {
    fn default() -> Self {
        Self {
            seen: Arc::new(watch::Sender::new(Seen::default())),
            is_polling: Arc::default(),
            readers: Arc::default(),
        }
    }
}

/// Counts a reader for as long as it is there.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl News {
    /// A stream of events for a reader who knows everything up to a key. Without one, everything
    /// that is there now. `None` if there are too many readers.
    pub fn follow(&self, since: Option<i64>, filter: RunFilter) -> Option<mpsc::Receiver<String>> {
        let before = self.readers.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(&self.readers));
        if before >= READERS {
            return None;
        }
        let mut seen = self.seen.subscribe();
        let (send, receive) = mpsc::channel(4);
        tokio::spawn(async move {
            let _counted = counted;
            let known = since.unwrap_or_else(|| seen.borrow().newest);
            let mut told = None;
            loop {
                let count = seen.borrow_and_update().count(known, &filter);
                if told != Some(count) {
                    told = Some(count);
                    // The id is what the reader knows, so that one who comes back is told the same.
                    if send.send(format!("id: {known}\ndata: {count}\n\n")).await.is_err() {
                        return;
                    }
                }
                tokio::select! {
                    changed = seen.changed() => if changed.is_err() { return },
                    () = tokio::time::sleep(SIGN_OF_LIFE) => {
                        if send.send(":\n\n".to_owned()).await.is_err() {
                            return;
                        }
                    }
                    () = send.closed() => return,
                }
            }
        });
        Some(receive)
    }

    /// Tells what was stored.
    pub fn tell(&self, heads: Vec<Head>) {
        if !heads.is_empty() {
            self.seen.send_modify(|seen| seen.add(heads));
        }
    }

    /// Says which run is the last that everybody knows, if nobody has looked yet.
    pub fn begin(&self, newest: i64) {
        self.seen.send_if_modified(|seen| {
            let is_older = seen.newest < newest;
            seen.newest = seen.newest.max(newest);
            is_older
        });
    }

    /// The key of the last run that is known.
    pub fn newest(&self) -> i64 {
        self.seen.borrow().newest
    }

    /// Whether anybody follows.
    pub fn has_readers(&self) -> bool {
        self.seen.receiver_count() > 0
    }

    /// Whether the caller is to ask the store from now on. It must end with [`Self::stop`].
    pub fn start(&self) -> bool {
        !self.is_polling.swap(true, Ordering::AcqRel)
    }

    /// Nobody asks the store any more.
    pub fn stop(&self) {
        self.is_polling.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use biplane_recorder::query::record::ObjectRef;

    use super::*;

    fn head(key: i64, composition: &str) -> Head {
        Head {
            key,
            composition: composition.to_owned(),
            owner: ObjectRef { kind: "Store".into(), ..ObjectRef::default() },
            ..Head::default()
        }
    }

    #[tokio::test]
    async fn readers_are_told_how_many_runs_they_have_not_seen() {
        let news = News::default();
        news.begin(7);
        let mut all = news.follow(None, RunFilter::default()).unwrap();
        let stores = RunFilter { composition: Some("stores".to_owned()), ..RunFilter::default() };
        let mut some = news.follow(None, stores).unwrap();
        assert_eq!(all.recv().await.unwrap(), "id: 7\ndata: 0\n\n");
        assert_eq!(some.recv().await.unwrap(), "id: 7\ndata: 0\n\n");
        news.tell(vec![head(8, "other"), head(9, "stores")]);
        assert_eq!(all.recv().await.unwrap(), "id: 7\ndata: 2\n\n");
        assert_eq!(some.recv().await.unwrap(), "id: 7\ndata: 1\n\n");
        // One who comes back is told the same.
        let mut again = news.follow(Some(7), RunFilter::default()).unwrap();
        assert_eq!(again.recv().await.unwrap(), "id: 7\ndata: 2\n\n");
        drop((all, some));
        assert!(news.has_readers());
    }

    #[tokio::test]
    async fn there_are_only_so_many_readers() {
        let news = News::default();
        let readers: Vec<_> =
            (0..READERS).map(|_| news.follow(None, RunFilter::default()).unwrap()).collect();
        assert!(news.follow(None, RunFilter::default()).is_none());
        drop(readers);
    }

    #[test]
    fn only_the_last_runs_are_remembered() {
        let mut seen = Seen::default();
        seen.add((1..=600).map(|key| head(key, "")).collect());
        assert_eq!((seen.newest, seen.count(0, &RunFilter::default())), (600, REMEMBERED));
        seen.add(vec![head(5, "")]);
        assert_eq!(seen.newest, 600);
    }
}
