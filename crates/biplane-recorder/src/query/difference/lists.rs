//! How lists are compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::path::{Segment, scalar};
use super::{Comparison, What};

/// Fields that identify an item, the likeliest first.
const KEYS: [&[&str]; 5] = [&["name"], &["type"], &["key"], &["id"], &["uid"]];

/// Fields that identify an item according to the schemas of Kubernetes (`x-kubernetes-list-map-keys`).
const SCHEMA_KEYS: [&[&str]; 8] = [
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["containerPort"],
    &["port"],
    &["mountPath"],
    &["devicePath"],
    &["topologyKey", "whenUnsatisfiable"],
    &["ip"],
];

/// The largest table for a longest common subsequence.
const CELLS: usize = 1_000_000;

type Key = Vec<(String, String)>;

impl Comparison<'_> {
    pub(super) fn lists(&mut self, before: &[Value], after: &[Value]) {
        if before == after && !before.iter().any(|item| item.is_object() || item.is_string()) {
            return;
        }
        if let Some((before_keys, after_keys)) = keys(before, after) {
            self.by_key(before, after, &before_keys, &after_keys);
        } else if before.iter().chain(after).all(is_plain) {
            self.by_sequence(before, after);
        } else {
            self.by_position(before, after);
        }
    }

    fn by_key(&mut self, before: &[Value], after: &[Value], keys: &[Key], after_keys: &[Key]) {
        let place: BTreeMap<&Key, usize> = keys.iter().zip(0..).collect();
        let stays: BTreeSet<&Key> = after_keys.iter().collect();
        let common: Vec<usize> =
            after_keys.iter().filter_map(|key| place.get(key).copied()).collect();
        let in_order = longest_increasing(&common);
        for (from, (key, item)) in keys.iter().zip(before).enumerate() {
            if !stays.contains(key) {
                let what = What::Removed { value: item.clone(), from: Some(from) };
                self.at(Segment::Item(key.clone()), |this| this.push(what));
            }
        }
        for (to, (key, item)) in after_keys.iter().zip(after).enumerate() {
            self.at(Segment::Item(key.clone()), |this| match place.get(key) {
                None => this.push(What::Added { value: item.clone(), to: Some(to) }),
                Some(&from) => {
                    if !in_order.contains(&from) {
                        this.push(What::Moved { from, to });
                    }
                    if let Some(was) = before.get(from) {
                        this.values(was, item);
                    }
                }
            });
        }
    }

    /// Plain values have no identity. What is in the longest common subsequence stayed. A value that
    /// is gone in one place and new in another has moved.
    fn by_sequence(&mut self, before: &[Value], after: &[Value]) {
        let Some((mut gone, mut new)) = outside_common(before, after) else {
            return self.by_position(before, after);
        };
        *self.nodes = self.nodes.saturating_sub(before.len() + after.len());
        let mut moved = Vec::new();
        gone.retain(|&from| {
            let same = new.iter().position(|&to| before.get(from) == after.get(to));
            match same {
                Some(at) => {
                    moved.push((from, new.remove(at)));
                    false
                }
                None => true,
            }
        });
        for from in gone {
            if let Some(value) = before.get(from) {
                let what = What::Removed { value: value.clone(), from: Some(from) };
                self.at(Segment::Index(from), |this| this.push(what));
            }
        }
        let moved = moved.into_iter().map(|(from, to)| (to, Some(from)));
        let mut arrived: Vec<_> = new.into_iter().map(|to| (to, None)).chain(moved).collect();
        arrived.sort_unstable();
        for (to, from) in arrived {
            let what = match (from, after.get(to)) {
                (Some(from), _) => What::Moved { from, to },
                (None, Some(value)) => What::Added { value: value.clone(), to: Some(to) },
                (None, None) => continue,
            };
            self.at(Segment::Index(to), |this| this.push(what));
        }
        for (index, value) in after.iter().enumerate() {
            if super::is_redacted(value) && before.contains(value) {
                let mut path = self.path.clone();
                path.push(Segment::Index(index));
                self.found.unknown.push(super::Path(path));
            }
        }
    }

    fn by_position(&mut self, before: &[Value], after: &[Value]) {
        for index in 0..before.len().max(after.len()) {
            self.at(Segment::Index(index), |this| match (before.get(index), after.get(index)) {
                (Some(before), Some(after)) => this.values(before, after),
                (Some(value), None) => {
                    this.push(What::Removed { value: value.clone(), from: Some(index) });
                }
                (None, Some(value)) => {
                    this.push(What::Added { value: value.clone(), to: Some(index) });
                }
                (None, None) => {}
            });
        }
    }

    fn at(&mut self, segment: Segment, compare: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        compare(self);
        self.path.pop();
    }
}

fn is_plain(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// The keys of all items of both lists, if one choice of fields identifies them.
fn keys(before: &[Value], after: &[Value]) -> Option<(Vec<Key>, Vec<Key>)> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    KEYS.iter()
        .chain(&SCHEMA_KEYS)
        .find_map(|fields| Some((unique(before, fields)?, unique(after, fields)?)))
}

/// The keys of the items of a list, if every item has one of its own.
pub(in crate::query) fn unique(list: &[Value], fields: &[&str]) -> Option<Vec<Key>> {
    let key = |item: &Value| -> Option<Key> {
        let pair = |field: &&str| Some(((*field).to_owned(), scalar(item.get(field)?)?));
        fields.iter().map(pair).collect()
    };
    let keys: Vec<Key> = list.iter().map(key).collect::<Option<_>>()?;
    let distinct: BTreeSet<&Key> = keys.iter().collect();
    (distinct.len() == keys.len()).then_some(keys)
}

/// The keys of the items of one list.
pub(in crate::query) fn keys_of(list: &[Value]) -> Option<Vec<Key>> {
    keys(list, &[]).map(|(keys, _)| keys)
}

/// The positions in the first and in the second list that are outside their longest common
/// subsequence. `None` if the lists are too long to find it.
fn outside_common(before: &[Value], after: &[Value]) -> Option<(Vec<usize>, Vec<usize>)> {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (a, b) = (before.get(start..)?, after.get(start..)?);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(..a.len() - end)?, b.get(..b.len() - end)?);
    let (rows, columns) = (a.len(), b.len());
    if (rows + 1).checked_mul(columns + 1)? > CELLS {
        return None;
    }
    // length[i][j] is the length of the longest common subsequence of a[i..] and b[j..].
    let mut length = vec![vec![0_u32; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            length[i][j] = if a[i] == b[j] {
                length[i + 1][j + 1] + 1
            } else {
                length[i + 1][j].max(length[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    while i < rows && j < columns {
        if a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if length[i + 1][j] >= length[i][j + 1] {
            gone.push(start + i);
            i += 1;
        } else {
            new.push(start + j);
            j += 1;
        }
    }
    gone.extend((i..rows).map(|i| start + i));
    new.extend((j..columns).map(|j| start + j));
    Some((gone, new))
}

/// The values of a longest increasing subsequence of distinct numbers.
fn longest_increasing(numbers: &[usize]) -> BTreeSet<usize> {
    // ends[n] is the index of the smallest number that ends an increasing subsequence of n + 1.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (index, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|&end| numbers[end] < *number);
        previous.push(length.checked_sub(1).map(|before| ends[before]));
        match ends.get_mut(length) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut found = BTreeSet::new();
    let mut at = ends.last().copied();
    while let Some(index) = at {
        found.insert(numbers[index]);
        at = previous[index];
    }
    found
}
