//! What a ledger keeps in memory to find something in runs: what is usual, and what goes on.

use std::collections::{BTreeMap, VecDeque};

use super::rows::FindingKind;

/// So many durations of a step are kept, and so many are needed to know what is usual.
const USUAL: usize = 32;
const ENOUGH: usize = 10;
/// A call is slow if it takes so many times as long as usual, and so much longer, in microseconds.
const SLOWER: i64 = 4;
const LONGER: i64 = 250_000;
/// So many slow calls in a row are a finding; after so many more, they are what is usual.
const SLOW_CALLS: u32 = 3;
const SETTLED: u32 = 50;
/// The durations of more steps are not kept in memory.
const MOST_STEPS: usize = 2048;

/// What is kept in memory to find something. All of it can be lost.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// What was found since somebody asked.
    pub(super) found: Vec<FindingKind>,
    /// How long steps take, by pipeline and position.
    usual: BTreeMap<(i64, i64), Usual>,
    /// The findings that go on, by owner. `None`: they have not been read yet.
    pub(super) open: Option<BTreeMap<i64, Vec<Open>>>,
}

#[derive(Debug, Default)]
struct Usual {
    took: VecDeque<i64>,
    slow: u32,
}

/// A finding that goes on, and how many runs did not show it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) id: i64,
    pub(super) kind: FindingKind,
    pub(super) since: u32,
}

impl Watch {
    /// Forgets what may not be in the store.
    pub(super) fn forget(&mut self) {
        self.found.clear();
        self.open = None;
    }

    /// Takes a duration. Returns what is usual if this and those before are slow.
    pub(super) fn took(&mut self, place: (i64, i64), took: i64) -> Option<i64> {
        if self.usual.len() >= MOST_STEPS && !self.usual.contains_key(&place) {
            self.usual.clear();
        }
        let usual = self.usual.entry(place).or_default();
        let median = usual.median();
        let is_slow = usual.took.len() >= ENOUGH
            && took > median.saturating_mul(SLOWER)
            && took - median >= LONGER;
        if !is_slow {
            usual.slow = 0;
            usual.took.push_back(took);
            if usual.took.len() > USUAL {
                usual.took.pop_front();
            }
            return None;
        }
        usual.slow += 1;
        if usual.slow > SLOW_CALLS + SETTLED {
            *usual = Usual { took: VecDeque::from([took]), slow: 0 };
            return None;
        }
        (usual.slow >= SLOW_CALLS).then_some(median)
    }
}

impl Usual {
    fn median(&self) -> i64 {
        let mut sorted: Vec<i64> = self.took.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_slow_calls_in_a_row_are_a_finding_until_they_are_usual() {
        let mut watch = Watch::default();
        let usual = |watch: &mut Watch| watch.took((1, 0), 40_000);
        for _ in 0..ENOUGH {
            assert_eq!(usual(&mut watch), None);
        }
        // Now and then something takes longer.
        for _ in 0..5 {
            assert_eq!(watch.took((1, 0), 2_000_000), None);
            assert_eq!(watch.took((1, 0), 2_000_000), None);
            assert_eq!(usual(&mut watch), None);
        }
        // What is short stays so, many times as long as usual or not.
        for _ in 0..ENOUGH {
            assert_eq!(watch.took((2, 0), 100), None);
            assert_eq!(watch.took((2, 0), 100_000), None);
        }
        let mut reported = 0;
        for _ in 0..100 {
            reported += u32::from(watch.took((1, 0), 2_000_000) == Some(40_000));
        }
        assert_eq!(reported, SETTLED + 1);
        assert_eq!(watch.took((1, 0), 2_000_000), None);
    }

    #[test]
    fn what_is_unknown_is_not_slow() {
        let mut watch = Watch::default();
        for took in [1, 1_000_000, 1, 1_000_000, 1, 60_000_000, 60_000_000, 60_000_000] {
            assert_eq!(watch.took((1, 0), took), None);
        }
    }
}
