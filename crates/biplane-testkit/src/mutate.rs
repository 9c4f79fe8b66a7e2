//! Runs a parser on mutated input: fuzzing without a special compiler.
//!
//! ```text
//! mutate("decode a request", &corpus, 10_000, |bytes| {
//!     let _ = Request::decode(bytes);
//! });
//! ```
//!
//! Every input depends only on a seed and the corpus. A failure shows the seed. If
//! `BIPLANE_MUTATE_SEED` is set to it, the same input is tried first. The caller says how many inputs
//! are tried, so that a test has the same result on a fast and on a slow machine. If
//! `BIPLANE_MUTATE_SECONDS` is set, the search goes on for that long instead.

mod damage;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use damage::damage;

use crate::random::Random;

/// When a search ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// After this many mutated inputs.
    Tries(u64),
    /// After this time.
    After(Duration),
}

/// Runs `run` on the corpus and on `tries` mutated copies of it.
///
/// # Panics
///
/// Panics if `run` panics, with the seed and the input in hexadecimal digits.
pub fn mutate(name: &str, corpus: &[&[u8]], tries: u64, run: impl Fn(&[u8])) {
    let seed = setting("BIPLANE_MUTATE_SEED").unwrap_or(0);
    let seconds = setting("BIPLANE_MUTATE_SECONDS").map(Duration::from_secs);
    search(name, corpus, seed, seconds.map_or(End::Tries(tries), End::After), &run);
}

fn setting(name: &str) -> Option<u64> {
    #[allow(clippy::disallowed_methods)] // set by the developer who runs the test
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    assert!(number.is_ok(), "{name} is not a whole number: {text:?}");
    number.ok()
}

fn search(name: &str, corpus: &[&[u8]], seed: u64, end: End, run: &dyn Fn(&[u8])) {
    for (index, input) in corpus.iter().enumerate() {
        attempt(input, run, || {
            format!("{name}: panicked on entry {index} of the corpus, unchanged")
        });
    }
    let start = Instant::now();
    for tries in 1.. {
        let seed = seed.wrapping_add(tries - 1);
        let input = damage(corpus, &mut Random::new(seed));
        attempt(&input, run, || format!("{name}: panicked with BIPLANE_MUTATE_SEED={seed}"));
        // Checked after the run, so that a requested seed is always tried.
        let is_over = match end {
            End::Tries(wanted) => tries >= wanted,
            End::After(time) => start.elapsed() >= time,
        };
        if is_over {
            break;
        }
    }
}

fn attempt(input: &[u8], run: &dyn Fn(&[u8]), what: impl Fn() -> String) {
    if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
        let mut hex = String::with_capacity(input.len() * 2);
        for byte in input {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        panic!("{}; input ({} bytes): {hex}", what(), input.len());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    use super::*;

    fn inputs(seed: u64, count: u64) -> Vec<Vec<u8>> {
        let corpus: &[&[u8]] = &[b"hello, world", b"12345678"];
        (seed..seed + count).map(|seed| damage(corpus, &mut Random::new(seed))).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_input() {
        assert_eq!(inputs(7, 500), inputs(7, 500));
        assert_ne!(inputs(7, 500), inputs(8, 500));
    }

    #[test]
    fn inputs_are_of_many_kinds() {
        let inputs = inputs(0, 2000);
        assert!(inputs.iter().collect::<BTreeSet<_>>().len() > 1500);
        assert!(inputs.iter().any(Vec::is_empty));
        assert!(inputs.iter().any(|i| i.len() > 1000));
        assert!(inputs.iter().any(|i| i.starts_with(b"hello") && i.ends_with(b"678")));
    }

    #[test]
    fn every_entry_of_the_corpus_is_tried_unchanged_first() {
        let seen = RefCell::new(Vec::new());
        search("t", &[b"a", b"bc"], 0, End::Tries(1), &|i| seen.borrow_mut().push(i.to_vec()));
        assert_eq!(seen.borrow()[..2], [b"a".to_vec(), b"bc".to_vec()]);
        assert_eq!(seen.borrow().len(), 3);
    }

    #[test]
    fn a_panic_is_reported_with_the_seed_that_brings_it_back() {
        let failure = |seed| {
            let fails = |input: &[u8]| assert!(input.len() > 3, "short");
            let report = catch_unwind(|| search("t", &[b"abcd"], seed, End::Tries(10_000), &fails));
            *report.unwrap_err().downcast::<String>().unwrap()
        };
        let first = failure(1);
        let seed = first.split("SEED=").nth(1).unwrap().split(';').next().unwrap();
        assert_eq!(failure(seed.parse().unwrap()), first);
        assert!(first.contains("; input ("), "{first}");
    }

    #[test]
    fn an_empty_corpus_is_enough() {
        search("t", &[], 0, End::After(Duration::ZERO), &|_| ());
    }
}
