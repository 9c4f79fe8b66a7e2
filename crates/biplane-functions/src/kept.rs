//! A cache that counts bytes: what is prepared from an input is kept for the next call with it.
//!
//! Entries are found by a hash of their key. Comparing keys and preparing values happens without the
//! lock, so that one large input delays nobody else. Only what can be used again is kept, so that
//! failures cost no memory.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// A cache with keys that are cheap to clone.
pub(crate) struct Kept<K, V> {
    max_bytes: usize,
    max_entries: usize,
    entries: Mutex<Entries<K, V>>,
}

/// Returns the hash of a key.
pub(crate) fn hash(key: &impl Hash) -> u64 {
    let mut quick = Quick(0);
    key.hash(&mut quick);
    quick.finish()
}

/// A hasher that is several times faster than that of the standard library. Who finds keys with the
/// same hash makes them replace each other, and nothing else.
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(ODD);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

struct Entries<K, V> {
    all: Vec<Entry<K, V>>,
    bytes: usize,
    /// Counts uses.
    now: u64,
}

struct Entry<K, V> {
    hash: u64,
    key: K,
    value: Arc<V>,
    bytes: usize,
    used: u64,
}

impl<K: Clone, V> Kept<K, V> {
    /// Creates a cache for this many bytes. An entry of more than a quarter of them is not kept.
    pub(crate) fn new(max_bytes: usize, max_entries: usize) -> Self {
        let entries = Entries { all: Vec::new(), bytes: 0, now: 0 };
        Self { max_bytes, max_entries, entries: Mutex::new(entries) }
    }

    /// Returns the value of a key that is known to be the same, by a quick comparison.
    pub(crate) fn find(&self, is: impl Fn(&K) -> bool) -> Option<Arc<V>> {
        self.look_up(|entry| is(&entry.key)).map(|(_, value)| value)
    }

    /// Returns the entry with a hash. The caller compares its key.
    pub(crate) fn find_hash(&self, hash: u64) -> Option<(K, Arc<V>)> {
        self.look_up(|entry| entry.hash == hash)
    }

    fn look_up(&self, is: impl Fn(&Entry<K, V>) -> bool) -> Option<(K, Arc<V>)> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.now += 1;
        let now = entries.now;
        let found = entries.all.iter_mut().find(|entry| is(entry))?;
        found.used = now;
        Some((found.key.clone(), Arc::clone(&found.value)))
    }

    /// Keeps a value. It replaces one with the same hash, and those that were not used for longest.
    pub(crate) fn keep(&self, hash: u64, key: K, value: Arc<V>, bytes: usize) {
        if bytes > self.max_bytes / 4 {
            return;
        }
        let mut dropped = Vec::new();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = entries.all.iter().position(|entry| entry.hash == hash) {
            dropped.push(entries.remove(same));
        }
        while entries.bytes + bytes > self.max_bytes || entries.all.len() >= self.max_entries {
            let ages = entries.all.iter().enumerate().min_by_key(|(_, entry)| entry.used);
            let Some((oldest, _)) = ages else { break };
            dropped.push(entries.remove(oldest));
        }
        entries.now += 1;
        let used = entries.now;
        entries.bytes += bytes;
        entries.all.push(Entry { hash, key, value, bytes, used });
        // Freeing takes time, too.
        drop(entries);
        drop(dropped);
    }
}

impl<K, V> Entries<K, V> {
    fn remove(&mut self, index: usize) -> Entry<K, V> {
        let entry = self.all.swap_remove(index);
        self.bytes -= entry.bytes;
        entry
    }
}

impl<K, V> fmt::Debug for Kept<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("max_bytes", &self.max_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: &Kept<u32, u32>, key: u32, bytes: usize) {
        kept.keep(hash(&key), key, Arc::new(key), bytes);
    }

    fn has(kept: &Kept<u32, u32>, key: u32) -> bool {
        kept.find_hash(hash(&key)).is_some_and(|(known, value)| known == key && *value == key)
    }

    #[test]
    fn bytes_are_counted_and_the_least_used_go() {
        let kept = Kept::new(100, 10);
        for key in 0..4 {
            keep(&kept, key, 25);
        }
        assert!(has(&kept, 0), "it was not used for longest until now");
        keep(&kept, 4, 25);
        assert_eq!([0, 1, 2, 3, 4].map(|key| has(&kept, key)), [true, false, true, true, true]);
        assert_eq!(kept.entries.lock().unwrap().bytes, 100);
    }

    #[test]
    fn what_is_large_is_not_kept() {
        let kept = Kept::new(100, 10);
        keep(&kept, 0, 26);
        assert!(!has(&kept, 0));
    }

    #[test]
    fn the_number_is_limited_and_the_same_is_kept_once() {
        let kept = Kept::new(100, 2);
        for key in [0, 1, 1, 2] {
            keep(&kept, key, 1);
        }
        assert_eq!([0, 1, 2].map(|key| has(&kept, key)), [false, true, true]);
        assert_eq!(kept.entries.lock().unwrap().bytes, 2);
        assert_eq!(kept.find(|key| *key == 1).as_deref(), Some(&1));
    }
}
